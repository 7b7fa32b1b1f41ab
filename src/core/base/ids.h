// Names of things: strongly typed integers for queue pairs, keys, regions and the like.
//
// An Id has identity and order (so that it can key an ordered table) and nothing else; arithmetic
// on one is a bug, which is the point. Sequence numbers have arithmetic and live in seq.h.
#pragma once
#include <compare>
#include <cstdint>

namespace weft {

template <class Tag, class Rep>
struct Id {
  Rep v{};
  constexpr auto operator<=>(const Id&) const = default;
};

using Qpn = Id<struct QpnTag, std::uint32_t>;  // queue pair number, 24 bits on the wire
using Key = Id<struct KeyTag, std::uint32_t>;  // lkey or rkey: index, tag (docs/protocol/verbs.md#keys)
using RegionId =
    Id<struct RegionTag, std::uint32_t>;           // slot of the key table; only the world knows its address
using PdId = Id<struct PdTag, std::uint32_t>;      // protection domain
using CqId = Id<struct CqTag, std::uint32_t>;      // completion queue
using SrqId = Id<struct SrqTag, std::uint32_t>;    // shared receive queue
using AhId = Id<struct AhTag, std::uint32_t>;      // address handle
using PathId = Id<struct PathTag, std::uint32_t>;  // row of the path table

inline constexpr Qpn kNoQpn{0xFFFF'FFFF};
inline constexpr SrqId kNoSrq{0xFFFF'FFFF};

}  // namespace weft
