#include "live/wires/open.h"

#include <array>

#include "core/wire/codec.h"
#include "live/wires/both.h"
#include "live/wires/packet.h"
#include "live/wires/shm.h"
#include "live/wires/udp.h"

namespace weft::live {
namespace {

struct Row {
  const char* name;
  Result<std::unique_ptr<Wire>> (*open)(const wire::Address& address);
};

template <class Kind, auto... kChoices>
Result<std::unique_ptr<Wire>> open_as(const wire::Address& address) {
  auto wire = Kind::open(address, wire::kUdpPort, {}, kChoices...);
  if (!wire) return tl::unexpected(wire.error());
  return std::unique_ptr<Wire>(std::move(*wire));
}

// In the order of WireKind.
constexpr std::array kWires{
    Row{"auto", open_as<ShmWire>},
    Row{"udp", open_as<UdpWire>},
    Row{"shm", open_as<ShmWire>},
    Row{"packet", open_as<PacketWire>},
    Row{"xdp", open_as<PacketWire, PacketWire::Receive::kXdp>},
};

}  // namespace

std::optional<WireKind> find_wire(std::string_view name) {
  for (std::size_t i = 0; i < kWires.size(); ++i) {
    if (name == kWires[i].name) return static_cast<WireKind>(i);
  }
  return std::nullopt;
}

std::string wire_names() {
  std::string names;
  for (std::size_t i = 0; i < kWires.size(); ++i) {
    if (i != 0) names += i + 1 == kWires.size() ? " or " : ", ";
    names += kWires[i].name;
  }
  return names;
}

Result<std::unique_ptr<Wire>> open_wire(WireKind kind, const Addresses& own) {
  const Row& row = kWires[static_cast<std::size_t>(kind)];
  if (!own.both()) return row.open(own.first);
  if (kind != WireKind::kAuto && kind != WireKind::kUdp)
    return fail(std::string("the ") + row.name + " wire has one address; give it " + to_text(own.first) +
                " or " + to_text(own.second) + ", or take --wire udp");
  auto both = BothWire::open(own, wire::kUdpPort);
  if (!both) return tl::unexpected(both.error());
  return std::unique_ptr<Wire>(std::move(*both));
}

}  // namespace weft::live
