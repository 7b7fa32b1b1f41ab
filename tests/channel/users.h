// Programs above channels that talk to each other: one asks, one answers. The same in every world.
#pragma once
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "channel/context.h"

namespace weft::channel_test {

using channel::Channel;
using channel::Config;
using channel::Context;
using channel::Fate;
using channel::Message;
using channel::Notice;
using channel::Reason;

inline constexpr std::uint16_t kService = 4711;

// A context and what happened in it.
struct User {
  User(VerbsPort& port, const Config& config, std::uint64_t seed, channel::StreamPort* streams = nullptr) {
    auto made = Context::open(port, config, seed, streams);
    if (made) context = std::move(*made);
    error = made ? "" : made.error().message;
  }
  void poll(Time now) {
    context->poll(now + skew);
    context->check_invariants();
    for (Notice n; context->next(n);) notices.push_back(n);
  }
  // The oldest notice, or one of kind kClosed without a channel.
  Notice take() {
    if (notices.empty()) return {};
    const Notice n = notices.front();
    notices.pop_front();
    return n;
  }
  // A message of this length whose bytes follow from `salt`.
  Message* make(std::uint32_t length, std::uint32_t salt) {
    Message* const m = context->allocate(length);
    if (m == nullptr) return nullptr;
    for (std::uint32_t i = 0; i < length; ++i) m->data[i] = byte(i, salt);
    return m;
  }
  static std::uint8_t byte(std::uint32_t i, std::uint32_t salt) {
    return static_cast<std::uint8_t>(i * 7 + i / 251 + salt);
  }
  static bool filled(const Message& m, std::uint32_t length, std::uint32_t salt) {
    if (m.length != length) return false;
    for (std::uint32_t i = 0; i < length; ++i) {
      if (m.data[i] != byte(i, salt)) return false;
    }
    return true;
  }

  std::unique_ptr<Context> context;
  std::string error;
  Duration skew{};  // its clock shows so much more
  std::deque<Notice> notices;
};

}  // namespace weft::channel_test
