#include "live/capture/packet_trace.h"

#include <algorithm>
#include <utility>

#include "core/wire/bytes.h"
#include "core/wire/codec.h"
#include "core/wire/icrc.h"
#include "core/wire/ip.h"
#include "live/wires/udp.h"

namespace weft::live {

Result<std::unique_ptr<PacketTrace>> PacketTrace::open(const Config& config) {
  auto file = TraceFile::open(config.file);
  if (!file) return tl::unexpected(file.error());
  return std::unique_ptr<PacketTrace>(new PacketTrace(config, std::move(*file)));
}

PacketTrace::PacketTrace(const Config& config, std::unique_ptr<TraceFile> file)
    : own_(config.own),
      port_(config.port),
      file_(std::move(file)),
      buffer_(file_->ring()),
      out_(&buffer_),
      writer_(out_, "weft0 " + to_text(config.own.first), config.unix_start_ns, config.snap_length) {
  file_->ring().commit();
}

// The IPv4 identification that makes the ICRC right; 0 if none does, and then the ICRC is wrong for whoever
// looks.
std::uint16_t PacketTrace::identification_of(const RxTrain& frame, const wire::Address& destination) {
  if (!wire::is_v4_mapped(frame.source)) return 0;
  if (frame.header_seen) return frame.identification;
  if (frame.bytes < wire::kBthBytes + wire::kIcrcBytes) return 0;
  const std::span<const std::uint8_t> bytes(frame.data, frame.bytes);
  const auto udp_length = static_cast<std::uint16_t>(wire::kUdpBytes + frame.bytes);
  wire::Icrc icrc = seeds_.get({.source = frame.source,
                                .destination = destination,
                                .source_port = frame.source_port,
                                .udp_length = udp_length});
  icrc.packet(bytes.first(frame.bytes - wire::kIcrcBytes));
  std::uint16_t identification = 0;
  const bool solved =
      wire::solve_identification(icrc.value(), wire::load_le32(&bytes[frame.bytes - wire::kIcrcBytes]),
                                 wire::bytes_after_identification(udp_length), identification);
  return solved ? identification : std::uint16_t{0};
}

// A thread that posts may have looked at the clock before it waited for its turn. A trace goes forward.
Time PacketTrace::not_before(Time now) { return last_ = std::max(last_, now); }

void PacketTrace::received(const RxTrain& frame, Time now, std::string_view fate) {
  const wire::Address& destination = frame.for_group() ? frame.group : own_.towards(frame.source);
  trace::PacketInfo info{.time = not_before(now),
                         .source = frame.source,
                         .destination = destination,
                         .source_port = frame.source_port,
                         .identification = identification_of(frame, destination),
                         .tos = frame.tos,
                         .ttl = frame.ttl,
                         .dont_fragment = frame.dont_fragment,
                         .direction = trace::Direction::kIn,
                         .comment = fate};
  writer_.datagram(info, {frame.data, frame.bytes});
  file_->packet(file_->ring().commit());
}

void PacketTrace::sent(const TxTrain& frame, std::uint16_t identification, Time now, std::string_view fate) {
  const trace::PacketInfo info{.time = not_before(now),
                               .source = own_.towards(frame.destination),
                               .destination = frame.destination,
                               .source_port = port_,
                               .identification = identification,
                               .tos = frame.ip.traffic_class,
                               .ttl = frame.ip.hop_limit,
                               .direction = trace::Direction::kOut,
                               .comment = fate};
  writer_.datagram(info, frame.bytes);
  file_->packet(file_->ring().commit());
}

void PacketTrace::visit_counters(const Wire::SeeCounter& see) const {
  see("trace_packets", "packets for the trace", file_->taken());
  see("trace_lost", "packets that the trace lacks", file_->lost());
}

}  // namespace weft::live
