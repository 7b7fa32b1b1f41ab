// Work in child processes, some of them at a time. A child that crashes or is killed takes its own piece of
// work with it and nothing else; children die with their parent.
//
// A child is a fork that never returns to its caller: it computes a text, writes it into a pipe and exits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weft::lab {

struct ChildResult {
  std::string text;          // what the child computed
  std::string died;          // empty, or how: "killed by signal 9 (Killed)"
  std::uint64_t memory = 0;  // the most it had resident, in bytes
};

struct PoolCalls {
  std::function<std::string(const std::string& piece)> work;  // in the child
  std::function<bool(std::size_t, const ChildResult&)> done;  // in the parent; false: begin no more
  std::function<void()> turn;                                 // in the parent, twice a second or more
};

enum class PoolEnd : unsigned char { kAll, kStopped, kInterrupted };

// Begins the pieces in this order, at most `at_once` at a time. SIGINT and SIGTERM end it with kInterrupted,
// and children that still run are killed.
PoolEnd run_pool(const std::vector<std::string>& pieces, unsigned at_once, const PoolCalls& calls);

}  // namespace weft::lab
