// What becomes of pages whose process ends without closing them: a soft NIC is never closed by programs that
// just end, and some end badly.
//
//   a process that exits   unlinks the names that it still holds: an exit handler that touches nothing else,
//                          since other threads may be writing to the pages
//   one that was killed    leaves files: whoever opens a page next removes those of its own user, and `weft
//                          stat` removes all that it may
//
// A forked child holds none of its parent's names.
#pragma once
#include <cstdint>
#include <string>

#include "page/page.h"

namespace weft::page {

// Whether the process that keeps a page is certainly gone. One of another namespace of process numbers is
// unknown, and so is one that could not tell when it began: these stay.
bool gone(std::uint64_t pid, std::uint64_t began_then, std::uint64_t space);

// Removes the pages of user `uid` whose processes are gone.
void sweep(const std::string& directory, std::uint32_t uid);

// From here on, `path` goes when this process exits; the place in the list of names, or -1: it is full.
int hold(const std::string& path);
void let_go(int place);

}  // namespace weft::page
