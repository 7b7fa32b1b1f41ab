#include "pair/recorder.h"

#include <cstdio>
#include <ostream>

#include "trace/pcapng.h"
#include "trace/text.h"

namespace weft::pair {

Recorder::Recorder(std::ostream* text, std::ostream* capture) : text_(text) {
  if (capture != nullptr) capture_ = std::make_unique<trace::PcapngWriter>(*capture, "pair");
}

Recorder::~Recorder() = default;

void Recorder::packet(Time now, const wire::Address& from, const wire::Address& to, const wire::Header& h,
                      std::span<const std::uint8_t> payload, std::string_view fate) {
  trace::PacketInfo info;
  info.time = now;
  info.source = from;
  info.destination = to;
  info.comment = fate;
  if (text_ != nullptr) {
    *text_ << trace::to_text(info, h, static_cast<std::uint32_t>(payload.size())) << '\n';
  }
  if (capture_ != nullptr) capture_->packet(info, h, payload);
}

void Recorder::note(Time now, std::string_view what) {
  if (text_ == nullptr) return;
  char time[40];
  std::snprintf(time, sizeof time, "%lld.%06lldus ", static_cast<long long>(now.ps / 1'000'000),
                static_cast<long long>(now.ps % 1'000'000));
  *text_ << time << what << '\n';
}

}  // namespace weft::pair
