// The two ends of a benchmark. The far one is a child process on another address; the near one measures, and
// tells it what to do, a line of text at a time, over a socket between them:
//
//   context ID NAME=VALUE…   open a context that listens on service kServices + ID      ok
//   end ID                   close it                                                    ok
//   set ID NAME VALUE        an online parameter                                         ok
//   serve ID HOLD_US SLEEPS  accept channels, send back messages, answer requests with as many bytes as they
//                            had, until the next line; a message is held for so long; 1: it sleeps while
//                            nothing happens                                             ok, at once
//   raw BYTES RECEIVES WHO   a plain queue pair that meets WHO                           ok WHO
//   echo BYTES HOLD_US       send back messages of that queue pair, until the next line; 0 bytes: only take
//                            them                                                        ok, at once
//   accept                   accept connections of a plain program (plain_cm.h), until the next line
//                                                                                            ok, or no, at
//                                                                                            once
//   stop                     end serving and the like                                    ok
//   cost                     nanoseconds of waiting for a core                           ok N
//
// An answer that is not `ok` is `no` and a sentence.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/result.h"

namespace weft::bench {

inline constexpr std::uint16_t kServices = 4780;

// What the child does: it is started as `PROGRAM far-end SOCKET CORE`.
int be_far(int socket, int core);

class FarEnd {
 public:
  // `core` is where it is pinned; -1: nowhere.
  static Result<std::unique_ptr<FarEnd>> start(const std::string& address, int core);
  ~FarEnd();
  FarEnd(const FarEnd&) = delete;
  FarEnd& operator=(const FarEnd&) = delete;

  // Its answer behind `ok `, or why not. It answers within `seconds`.
  Result<std::string> ask(const std::string& line, int seconds = 20);
  const std::string& address() const { return address_; }
  pid_t process() const { return child_; }

  // It dies where it stands, and says nothing to anybody.
  void kill_it();
  // Another one, in the place of one that was killed.
  Result<void> replace();

 private:
  FarEnd(std::string address, int core) : address_(std::move(address)), core_(core) {}
  Result<void> begin();
  std::string address_;
  int core_;
  pid_t child_ = -1;
  int socket_ = -1;
};

}  // namespace weft::bench
