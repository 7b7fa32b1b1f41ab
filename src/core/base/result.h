// Errors as values. Two kinds, never mixed:
//
//   Result<T>   input from people and files: a sentence that names the field, the value and the
//               allowed range. Shown to the user as it is; the command line exits with 2.
//   Outcome<T>  verbs calls inside core: one of errno's answers, no allocation, so that a full queue
//               costs nothing to report.
//
// Input from the network is neither: it becomes a counted drop reason or a protocol NAK.
#pragma once
#include <cstring>
#include <string>
#include <tl/expected.hpp>

namespace weft {

struct Error {
  std::string message;
  int number = 0;  // the errno of the system call that failed, if one did
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(std::string message) {
  return tl::unexpected<Error>(Error{std::move(message)});
}

// Of a system call that failed with `number`. It is taken at once: whatever is closed on the way out may
// leave another one in errno.
inline tl::unexpected<Error> fail_system(const std::string& what, int number) {
  return tl::unexpected<Error>(Error{what + ": " + std::strerror(number), number});
}

// What a verbs call can answer; live/abi maps each to its errno.
enum class Errc : unsigned char {
  kInvalid,       // EINVAL: an argument is wrong
  kNoMemory,      // ENOMEM: a queue or table is full
  kBusy,          // EBUSY: still in use
  kUnsupported,   // EOPNOTSUPP
  kNotFound,      // ENOENT: no such object
  kFault,         // EFAULT: memory that is not there, or not with that right
  kNoDescriptor,  // EMFILE: no file descriptor is left
};

template <class T>
using Outcome = tl::expected<T, Errc>;

inline tl::unexpected<Errc> fail(Errc e) { return tl::unexpected<Errc>(e); }

}  // namespace weft
