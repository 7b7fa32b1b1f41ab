// What an administrator wants of a context's parameters (adm/settings.h), followed while the program runs
// (X-RDMA §6.4). The paper has an idle thread for this. Here it is a part of the turn: the file's watch wakes
// a program that sleeps, and one that spins asks it ten times a second. So a context stays one thread's, and
// a message costs nothing for it (docs/decisions/an-administrator-has-no-thread.md).
//
// A change of the file is applied once: what the program sets itself afterwards stays until the file says
// something else of that parameter. A parameter that the file no longer names goes back to what it was.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adm/settings.h"
#include "adm/watch.h"
#include "channel/context.h"

namespace weft::channel {

class Administered {
 public:
  explicit Administered(Context& context);

  int fd() const { return watch_.fd(); }  // -1: there is nothing to watch
  // Of a program that spins.
  void turn(Time now) {
    if (now >= next_) look(now);
  }
  // Before a program sleeps: it finds whatever made fd() readable.
  void look(Time now);
  void rebase(Duration by) { next_ = next_.ps > by.ps ? next_ - by : Time{}; }

  std::uint64_t file() const { return file_; }        // adm::number_of; 0: none
  std::uint64_t version() const { return version_; }  // of the file that was applied last
  std::uint64_t refused() const { return refused_; }  // of its lines for this program

 private:
  void apply(const adm::Settings& settings);

  Context& context_;
  const std::string path_;
  const std::uint64_t file_;
  const std::string program_;
  adm::Watch watch_;
  Time next_{};
  bool stale_ = true;
  std::uint64_t version_ = 0;
  std::uint64_t refused_ = 0;
  struct Kept {
    std::optional<std::uint64_t> given;  // what the file wanted last
    std::uint64_t own = 0;               // what the program had before
    bool refused = false;
  };
  std::vector<Kept> kept_;  // by place in params()
};

}  // namespace weft::channel
