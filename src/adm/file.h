// The file of a host's parameters (settings.h): every program that has a context reads it and watches it
// (watch.h); `weft adm` writes it, by renaming, so that a reader finds it whole.
//
//   where     WEFT_PARAMETERS in the environment, else /run/weft/parameters
//   trusted   it is root's or the reader's own, and nobody else may write it; any other is not read
//   writers   take a lock, a file beside it, for each change. An agent that brings parameters from a cluster
//             holds another for as long as it lives: meanwhile nobody else changes the file.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "adm/settings.h"

namespace weft::adm {

// Empty: WEFT_PARAMETERS=0, this program is nobody's to administer.
std::string settings_path();

// A number for a file's name: how a program's page tells which one it follows. Never 0.
std::uint64_t number_of(const std::string& path);

// What it says; a file that is not there says nothing.
Result<Settings> load(const std::string& path);

// Loads it, lets `change` work on it, and writes it with the next version. `change` may refuse.
Result<Settings> change(const std::string& path, const std::function<Result<void>(Settings&)>& change);

// Whether an agent has the file.
bool has_agent(const std::string& path);

// Being that agent, until it is destroyed.
class Agency {
 public:
  static Result<std::unique_ptr<Agency>> begin(const std::string& path);
  ~Agency();
  Agency(const Agency&) = delete;
  Agency& operator=(const Agency&) = delete;

 private:
  explicit Agency(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace weft::adm
