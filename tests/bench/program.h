// What the programs of google-benchmark share: one core, and the project's own spelling of where the JSON
// goes.
#pragma once
#include <benchmark/benchmark.h>
#include <sched.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace weft::bench {

inline int program(const char* name, int argc, char** argv, void (*register_rows)()) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  register_rows();
  std::vector<std::string> words(argv, argv + argc);
  if (words.back() == "--json") {
    std::fprintf(stderr, "%s: --json needs a FILE.\n", name);
    return 2;
  }
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (words[i] != "--json") continue;
    words[i] = "--benchmark_out=" + words[i + 1];
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  std::vector<char*> pointers;
  for (std::string& w : words) pointers.push_back(w.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace weft::bench
