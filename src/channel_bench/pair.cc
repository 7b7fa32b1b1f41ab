// What parts share: a context at either end with a channel between them.
#include <array>
#include <cstring>

#include "channel_bench/bench.h"

namespace weft::bench {

bool poll_until(const tools::Session& session, double seconds,
                const std::function<void(const weft_notice&)>& see, const std::function<bool()>& done,
                int nap_ms) {
  const std::uint64_t end = tools::now_ns() + static_cast<std::uint64_t>(seconds * 1e9);
  while (!done()) {
    session.wait(nap_ms, see);
    if (tools::now_ns() > end) return done();
  }
  return true;
}

void turn_for(const tools::Session& session, std::uint64_t ns) {
  const std::uint64_t until = tools::now_ns() + ns;
  poll_until(
      session, 1e6,
      [&](const weft_notice& n) {
        if (n.message != nullptr) weft_release(session.get(), n.message);
      },
      [&] { return tools::now_ns() > until; }, 1);
}

Result<double> call_us(const Pair& pair, std::uint32_t bytes, std::uint32_t rounds, int nap_ms) {
  weft_context* const context = pair.session().get();
  std::vector<double> us;
  for (std::uint32_t i = 0; i < rounds + rounds / 10; ++i) {
    const std::uint64_t began = tools::now_ns();
    weft_message* const m = weft_allocate(context, bytes);
    if (m == nullptr || weft_call(pair.channel(), m, 0, 0, nullptr) != 0)
      return fail("a request is not taken");
    bool answered = false;
    bool lost = false;
    const auto see = [&](const weft_notice& n) {
      answered = answered || n.kind == WEFT_RESPONSE;
      lost = lost || n.kind == WEFT_CLOSED || n.kind == WEFT_OUTCOME;
      if (n.message != nullptr) weft_release(context, n.message);
    };
    poll_until(
        pair.session(), 10, see, [&] { return answered || lost; }, nap_ms);
    if (!answered) return fail("a request has no answer");
    if (i >= rounds / 10) us.push_back(static_cast<double>(tools::now_ns() - began) / 1e3);
  }
  return median(std::move(us));
}

Result<std::unique_ptr<Pair>> Pair::open(FarEnd& far, std::uint16_t id,
                                         const std::vector<std::string>& parameters) {
  std::string line = "context " + std::to_string(id);
  for (const std::string& p : parameters) line += " " + p;
  if (const auto opened = far.ask(line); !opened) return tl::unexpected(opened.error());
  auto pair = std::unique_ptr<Pair>(new Pair(far, id));
  auto session = tools::Session::open("", parameters);
  if (!session) return tl::unexpected(session.error());
  pair->session_ = std::move(*session);
  if (auto served = pair->serve(0, true); !served) return tl::unexpected(served.error());
  if (const int error = weft_connect(pair->session_->get(), far.address().c_str(),
                                     static_cast<std::uint16_t>(kServices + id), 0, &pair->channel_);
      error != 0)
    return fail(std::string("a channel: ") + std::strerror(error));
  bool open = false;
  std::string why = "it does not open";
  poll_until(
      pair->session(), 10,
      [&](const weft_notice& n) {
        open = open || n.kind == WEFT_OPENED;
        if (n.kind == WEFT_CLOSED) why = n.why;
      },
      [&] { return open || why != "it does not open"; }, 1);
  if (!open) return fail("a channel to " + far.address() + ": " + why);
  if (auto stopped = pair->stop(); !stopped) return tl::unexpected(stopped.error());
  return pair;
}

Pair::~Pair() {
  session_.reset();
  (void)far_.ask("end " + std::to_string(id_));
}

Result<void> Pair::set(const char* name, std::uint64_t value) {
  std::array<char, 256> why{};
  if (weft_set(session_->get(), name, value, why.data(), why.size()) != 0)
    return fail(std::string(why.data()));
  const auto there = far_.ask("set " + std::to_string(id_) + " " + name + " " + std::to_string(value));
  if (!there) return tl::unexpected(there.error());
  return {};
}

Result<void> Pair::serve(std::uint32_t hold_us, bool sleeps) {
  const auto done =
      far_.ask("serve " + std::to_string(id_) + " " + std::to_string(hold_us) + (sleeps ? " 1" : " 0"));
  if (!done) return tl::unexpected(done.error());
  return {};
}

Result<void> Pair::stop() {
  const auto done = far_.ask("stop");
  if (!done) return tl::unexpected(done.error());
  return {};
}

}  // namespace weft::bench
