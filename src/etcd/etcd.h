// Keys of an etcd cluster, by the JSON gateway of its version 3 over HTTP (etcd 3.4 and later): all keys that
// begin with a prefix, a transaction that puts and deletes, and waiting for a change. Every call may wait for
// the network, kPatience seconds at most for each member that is asked, in turn, until one answers.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace weft::etcd {

inline constexpr int kPatience = 3;      // seconds
inline constexpr int kLongestWait = 30;  // of a wait for a change

struct Entry {
  std::string key;  // without the prefix
  std::string value;
};
struct Entries {
  std::vector<Entry> all;  // by key
  std::int64_t revision = 0;
};
struct Write {
  std::string key;                   // without the prefix
  std::optional<std::string> value;  // nothing: it is deleted
};

class Cluster {
 public:
  // Members as "http://HOST:PORT" (or https, by the system's certificates); any of them will do.
  static Result<Cluster> at(const std::vector<std::string>& members, const std::string& prefix);

  Result<Entries> read();
  // All of it or nothing; the revision that it makes.
  Result<std::int64_t> write(const std::vector<Write>& writes);
  // Until a key changes that was read at `revision`, or kLongestWait seconds are over, or the member is lost:
  // whichever it was, read() tells.
  void wait(std::int64_t revision);

  const std::string& name() const { return members_[current_]; }

 private:
  Result<std::string> ask(const char* path, const std::string& question);

  std::vector<std::string> members_;
  std::string prefix_;
  std::size_t current_ = 0;
};

}  // namespace weft::etcd
