// One world of channels, drawn from its seed: hosts of a pair world under its referee, a program on each that
// sends, asks, answers, holds on to messages, cancels, closes; queue pairs that fail and programs that end in
// the middle. Judged by check/messages.h, which knows messages only, and at the end by what the contexts have
// left.
#pragma once
#include <cstdint>
#include <string>

#include "pair/recorder.h"

namespace weft::channel_world {

struct SeedResult {
  bool clean = false;
  std::string findings;  // one line each, when not clean
  std::uint64_t messages = 0;
  std::uint64_t packets = 0;
  std::uint64_t reconnects = 0;
  std::uint64_t nops = 0;
  std::uint64_t early = 0;
  std::uint64_t probes = 0;
  std::uint64_t large = 0;
  std::uint64_t reused = 0;
  std::uint64_t unknown = 0;  // messages that were told so
  std::uint64_t crashes = 0;
  std::uint64_t traced = 0;     // messages that came with stamps
  std::uint64_t moves = 0;      // connections over another carrier than the one before
  std::uint64_t frames = 0;     // over streams
  std::uint64_t shared = 0;     // 1: with a shared receive queue
  std::uint64_t used_up = 0;    // turns in which every shared receive had been taken
  std::uint64_t not_ready = 0;  // frames that found no receive, where that may be
};

SeedResult run_seed(std::uint64_t seed, pair::Recorder* recorder = nullptr);

}  // namespace weft::channel_world
