// Which queue pairs are attached to which groups (ibv_attach_mcast). The Device knows no groups: a datagram
// to one is given to each of these queue pairs, as if it had been sent to it
// (docs/protocol/unreliable.md#groups).
//
// A group is there as long as it has a member. Few groups with few members, so they are searched; all of them
// have their place from the start, so that attaching needs no memory.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/wire/packet.h"

namespace weft::live {

inline constexpr std::uint32_t kMostGroups = 64;
inline constexpr std::uint32_t kMostMembers = 64;  // of one group

class Memberships {
 public:
  Memberships() { groups_.reserve(kMostGroups); }

  // Empty: there is no such group.
  std::span<const Qpn> members_of(const wire::Address& group) const {
    for (const Group& g : groups_) {
      if (g.address == group) return g.all();
    }
    return {};
  }
  bool contains(const wire::Address& group, Qpn qpn) const { return has(members_of(group), qpn); }
  bool has_groups_of(Qpn qpn) const {
    return std::any_of(groups_.begin(), groups_.end(), [&](const Group& g) { return has(g.all(), qpn); });
  }
  bool has_room_in(const wire::Address& group) const {
    const std::size_t members = members_of(group).size();
    return members != 0 ? members < kMostMembers : groups_.size() < kMostGroups;
  }
  // Requires room, and that the queue pair is not in it yet.
  void add(const wire::Address& group, Qpn qpn) {
    auto it =
        std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return g.address == group; });
    if (it == groups_.end()) it = groups_.insert(it, Group{group, {}, 0});
    it->members[it->count++] = qpn;
  }
  // Takes the queue pair out of the groups that `which` names; tells the addresses of those that it was the
  // last one of, and that are gone.
  template <class Which, class Gone>
  void remove(Qpn qpn, const Which& which, const Gone& gone) {
    std::erase_if(groups_, [&](Group& g) {
      if (!which(g.address)) return false;
      const auto end = g.members.begin() + g.count;
      g.count = static_cast<std::uint32_t>(std::remove(g.members.begin(), end, qpn) - g.members.begin());
      if (g.count != 0) return false;
      gone(g.address);
      return true;
    });
  }

 private:
  struct Group {
    wire::Address address;
    std::array<Qpn, kMostMembers> members;
    std::uint32_t count = 0;
    std::span<const Qpn> all() const { return {members.data(), count}; }
  };
  static bool has(std::span<const Qpn> members, Qpn qpn) {
    return std::find(members.begin(), members.end(), qpn) != members.end();
  }

  std::vector<Group> groups_;
};

}  // namespace weft::live
