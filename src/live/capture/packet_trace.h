// A packet trace of a soft NIC: every frame, as it is on the wire, into a pcapng file that Wireshark opens.
// Headers below the UDP payload are those that the frame has where the wire saw them, and those that it must
// have where the kernel wrote or removed them: of an IPv4 identification that nobody saw, the one that the
// ICRC names. MAC addresses are made up (trace/frame.h).
//
// A frame's direction stands in its flags, what an impairment did to it in its comment. A frame is written
// with the time at which its train was given to the wire, or taken from it.
#pragma once
#include <cstdint>
#include <memory>
#include <ostream>
#include <streambuf>
#include <string>

#include "core/base/result.h"
#include "live/capture/trace_file.h"
#include "live/wires/frame_log.h"
#include "live/wires/icrc_seeds.h"
#include "trace/pcapng.h"

namespace weft::live {

class PacketTrace final : public FrameLog {
 public:
  struct Config {
    std::string file;
    Addresses own;                    // ours
    std::uint16_t port = 0;           // ours
    std::uint64_t unix_start_ns = 0;  // what Time 0 is, since 1970
    std::uint32_t snap_length = 0;    // bytes of a frame that are kept; 0: all
  };
  static Result<std::unique_ptr<PacketTrace>> open(const Config& config);

  void received(const RxTrain& frame, Time now, std::string_view fate) override;
  void sent(const TxTrain& frame, std::uint16_t identification, Time now, std::string_view fate) override;
  void abandon(int nowhere) override { file_->abandon(nowhere); }
  void visit_counters(const Wire::SeeCounter& see) const override;

  void finish() { file_->finish(); }
  const std::string& name() const { return file_->name(); }

 private:
  // What the writer of the format writes to.
  class IntoRing final : public std::streambuf {
   public:
    explicit IntoRing(BlockRing& ring) : ring_(ring) {}

   private:
    std::streamsize xsputn(const char* s, std::streamsize n) override {
      ring_.put({reinterpret_cast<const std::uint8_t*>(s), static_cast<std::size_t>(n)});
      return n;
    }
    int_type overflow(int_type c) override {
      const char one = traits_type::to_char_type(c);
      xsputn(&one, 1);
      return traits_type::not_eof(c);
    }
    BlockRing& ring_;
  };

  PacketTrace(const Config& config, std::unique_ptr<TraceFile> file);
  std::uint16_t identification_of(const RxTrain& frame, const wire::Address& destination);

  Time not_before(Time now);

  const Addresses own_;
  const std::uint16_t port_;
  std::unique_ptr<TraceFile> file_;
  IntoRing buffer_;
  std::ostream out_;
  trace::PcapngWriter writer_;
  IcrcSeeds seeds_;
  Time last_{};
};

}  // namespace weft::live
