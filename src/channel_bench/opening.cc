#include "channel_bench/opening.h"

#include <cerrno>
#include <cstring>

namespace weft::bench {
namespace {

using tools::now_ns;

constexpr std::uint64_t kAgain = 5'000'000;  // ns, before a refused channel is asked for again
constexpr std::uint64_t kSettled =
    20'000'000;  // ns: queue pairs go into their cache in the turns after a close

}  // namespace

void Opening::ask(std::uint32_t count) {
  for (std::uint32_t i = 0; i < count && why_.empty(); ++i) ask_since(now_ns());
}

void Opening::ask_since(std::uint64_t since) {
  weft_channel* c = nullptr;
  const int error = weft_connect(pair_.session().get(), far_.address().c_str(),
                                 static_cast<std::uint16_t>(kServices + pair_.id()), 0, &c);
  if (error == 0) {
    asked_[c] = since;
  } else if (error == ENOMEM || error == EAGAIN) {  // places of closed channels come back with the next turn
    again_.emplace_back(now_ns(), since);
  } else {
    why_ = std::strerror(error);
  }
}

void Opening::see(const weft_notice& n) {
  const auto it = asked_.find(n.channel);
  if (it == asked_.end()) return;
  if (n.kind == WEFT_OPENED) {
    us_.push_back(static_cast<double>(now_ns() - it->second) / 1e3);
    open_.push_back(n.channel);
  } else if (n.kind == WEFT_CLOSED && std::strstr(n.why, "refused") != nullptr) {
    ++refused_;
    again_.emplace_back(now_ns() + kAgain, it->second);
  } else if (n.kind == WEFT_CLOSED) {
    why_ = n.why;
  } else {
    return;
  }
  asked_.erase(it);
}

void Opening::step() {
  const std::uint64_t now = now_ns();
  for (std::size_t i = 0; i < again_.size() && why_.empty();) {
    if (again_[i].first > now) {
      ++i;
      continue;
    }
    const std::uint64_t since = again_[i].second;
    again_[i] = again_.back();
    again_.pop_back();
    ask_since(since);
    if (!again_.empty() && again_.back().second == since) break;  // there is no place yet
  }
}

Result<void> Opening::wait_for(std::uint32_t count, double seconds) {
  ask(count);
  const bool ended = poll_until(
      pair_.session(), seconds, [this](const weft_notice& n) { see(n); },
      [this] {
        step();
        return missing() == 0 || !why_.empty();
      },
      1);
  if (!why_.empty()) return fail("a channel: " + why_);
  if (!ended)
    return fail(std::to_string(missing()) + " of " + std::to_string(count) + " channels do not open");
  return {};
}

Result<void> close_all(const tools::Session& session, const std::vector<weft_channel*>& channels,
                       double seconds) {
  for (weft_channel* const c : channels) weft_close(c);
  std::size_t left = channels.size();
  if (!poll_until(
          session, seconds, [&](const weft_notice& n) { left -= n.kind == WEFT_CLOSED ? 1U : 0U; },
          [&] { return left == 0; }, 1))
    return fail(std::to_string(left) + " channels do not close");
  const std::uint64_t settled = now_ns() + kSettled;
  poll_until(
      session, 1, [](const weft_notice&) {}, [&] { return now_ns() > settled; });
  return {};
}

}  // namespace weft::bench
