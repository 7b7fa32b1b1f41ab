// What stands between programs in C and our C++: no exception leaves, and a call that answers with an error
// number leaves it in errno, too.
//
// Only what the standard library throws is caught: a thread that is cancelled inside one of our calls unwinds
// through here, and must.
#pragma once
#include <cerrno>
#include <cstddef>
#include <exception>
#include <new>
#include <system_error>
#include <type_traits>

namespace weft::live::abi {

inline int errno_of(const std::exception& e) {
  const auto* const system = dynamic_cast<const std::system_error*>(&e);
  return system != nullptr && system->code().value() > 0 ? system->code().value() : ENOMEM;
}

// Why a call that answers with a pointer answers nullptr. What is destroyed on the way out may call the
// system, which leaves its own answer in errno; at_edge sets it last.
inline thread_local int refusal = 0;
inline std::nullptr_t refuse(int error) {
  errno = refusal = error;
  return nullptr;
}

// Runs a call of the ABI: nullptr or the error number instead of an exception, and errno.
template <class Call>
auto at_edge(const Call& call) -> decltype(call()) {
  using Answer = decltype(call());
  try {
    if constexpr (std::is_pointer_v<Answer>) refusal = 0;
    const Answer answer = call();
    if constexpr (std::is_same_v<Answer, int>) {
      if (answer > 0) errno = answer;
    } else if constexpr (std::is_pointer_v<Answer>) {
      if (answer == nullptr && refusal != 0) errno = refusal;
    }
    return answer;
  } catch (const std::exception& e) {
    errno = errno_of(e);
    if constexpr (std::is_same_v<Answer, int>) {
      return errno;
    } else {
      return nullptr;
    }
  }
}

// An enumeration as it came from C, where it may hold any number: reading it as one would be undefined.
template <class Enum>
std::underlying_type_t<Enum> raw(const Enum& from) {
  std::underlying_type_t<Enum> number;
  __builtin_memcpy(&number, &from, sizeof number);
  return number;
}

}  // namespace weft::live::abi
