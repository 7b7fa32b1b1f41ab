// What a box knows of parity on the line (docs/ARCHITECTURE.md, "Parity on the line"): the group that it is
// sending, and what it keeps of the line to restore packets from.
//
//   Covering    near side: one group at a time. It is opened by a data frame that leaves, and closed by its
//               last member or by time; then its parity frames leave, and only then another group begins
//   Restoring   far side: the last frames of the line, groups that miss members, and packets that came ahead
//               of a gap and are not reported yet
//
// The bytes are the world's. It is told which member of the group a data frame is (Out::member), which row a
// parity frame carries (Out::parity), and from what it restores (Restore).
#pragma once
#include <tsl/robin_map.h>

#include <array>
#include <cstdint>
#include <vector>

#include "core/transport/ring.h"
#include "wan/logic/box.h"
#include "wan/logic/config.h"
#include "wan/logic/parity_frame.h"

namespace weft::wan {

struct Covering {
  ParityHeader group;
  Frame first;  // of the group: parity goes between the same addresses
  std::uint8_t members = 0;
  std::uint8_t next_row = 0;
  bool closing = false;       // its parity frames leave
  Time opened{};              // with the first member
  std::uint32_t longest = 0;  // block
  std::uint64_t number = 0;   // of the last group
  ParityBytes bytes{};
  std::uint32_t header_bytes = 0;  // 0: not written yet
};

struct Restoring {
  static constexpr std::uint32_t kRecent = 256;  // frames; four of the largest groups
  static constexpr std::uint32_t kGroups = 16;   // that miss members at one time
  static constexpr std::uint32_t kUnnamed = 8192;
  static constexpr std::uint64_t kVerifyEvery = 32;  // groups that miss nothing
  static constexpr std::uint64_t kOldest = 64;       // groups behind the newest that was verified

  // A frame of the line. Its body belongs to the store first, and here when the store has let go of it.
  struct Recent {
    std::uint64_t lease = 0;
    WirePsn psn{};
    BodyId body = kNoBody;
    Time at{};
    bool only_here = false;
  };
  struct Group {
    bool used = false;
    ParityHeader header;
    ParityBytes bytes{};  // as it came, but for the row
    Time at{};
    std::array<BodyId, ParityTerms::kMostRepair> rows{};
    std::uint8_t rows_here = 0;
  };
  // Came ahead of a gap; the partner hears of it when parity had its time.
  struct Unnamed {
    std::uint32_t giving = 0;
    std::uint64_t lease = 0;
    Seq seq{};
    Time due{};
  };

  explicit Restoring(bool there)
      : recent(there ? kRecent : 0), groups(there ? kGroups : 0), unnamed(there ? kUnnamed : 1) {}

  std::vector<Recent> recent;  // a ring; `head` and `tail` run freely
  std::uint32_t head = 0;
  std::uint32_t tail = 0;
  std::vector<Group> groups;
  std::uint32_t waiting = 0;  // groups in use
  bool look = false;          // something came that they may have missed
  Ring<Unnamed> unnamed;
  std::uint64_t newest = 0;  // group that was verified
  // Of the group that was given out to be restored.
  ParityHeader last;
  std::uint64_t last_wanted = 0;
};

}  // namespace weft::wan
