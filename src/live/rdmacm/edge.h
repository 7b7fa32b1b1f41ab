// What stands between programs in C and this folder: a call answers 0, or -1 with the reason in errno, and no
// exception leaves.
#pragma once
#include <cerrno>
#include <exception>

#include "live/abi/edge.h"

#define WEFT_EXPORT extern "C" __attribute__((visibility("default")))

namespace weft::live::rdmacm {

// `call` answers with an error number, 0 for done.
template <class Call>
int at_edge(const Call& call) {
  int failed = 0;
  try {
    failed = call();
  } catch (const std::exception& e) {
    failed = abi::errno_of(e);
  }
  if (failed == 0) return 0;
  errno = failed;
  return -1;
}

// For calls that answer with a pointer.
template <class Call>
auto pointer_at_edge(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& e) {
    errno = abi::errno_of(e);
    return nullptr;
  }
}

}  // namespace weft::live::rdmacm
