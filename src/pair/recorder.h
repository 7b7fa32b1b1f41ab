// What happens in a pair world, for people: a line of text per packet and event, and a pcapng capture.
// Both are optional and neither changes anything.
#pragma once
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/base/units.h"
#include "core/wire/packet.h"

namespace weft::trace {
class PcapngWriter;
}

namespace weft::pair {

class Recorder {
 public:
  // Either stream may be null.
  Recorder(std::ostream* text, std::ostream* capture);
  ~Recorder();

  // One packet as it leaves its host, and what becomes of it ("lost", "again after 3 us"; may be empty).
  void packet(Time now, const wire::Address& from, const wire::Address& to, const wire::Header& h,
              std::span<const std::uint8_t> payload, std::string_view fate);
  // Anything else.
  void note(Time now, std::string_view what);
  bool wants_text() const { return text_ != nullptr; }

 private:
  std::ostream* text_;
  std::unique_ptr<trace::PcapngWriter> capture_;
};

}  // namespace weft::pair
