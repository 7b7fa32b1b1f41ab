#include "cli/stopwatch.h"

#include <sys/resource.h>

#include <chrono>
#include <ctime>

namespace weft::cli {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Stopwatch::Stopwatch() : start_ns_(now_ns()) {}

double Stopwatch::seconds() const { return static_cast<double>(now_ns() - start_ns_) / 1e9; }

std::uint64_t steady_ns() { return static_cast<std::uint64_t>(now_ns()); }

std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void sleep_seconds(double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  const timespec nap{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
  nanosleep(&nap, nullptr);
}

double wall_seconds() { return static_cast<double>(now_ns()) / 1e9; }

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto s = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return s(usage.ru_utime) + s(usage.ru_stime);
}

std::uint64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024U;
}

}  // namespace weft::cli
