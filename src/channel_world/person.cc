// What one host's program does: it sends, asks, answers, holds on to messages, cancels, closes, and ends in
// the middle.
#include <algorithm>
#include <cstring>

#include "channel_world/town.h"
#include "core/base/check.h"

namespace weft::channel_world {
namespace {

using channel::Fate;

// What every message begins with, and the rest of its bytes follow from it.
struct Name {
  std::uint16_t channel;
  std::uint8_t from;
  std::uint8_t unused;
  std::uint32_t number;
};
static_assert(sizeof(Name) == kLeast);

// What stands behind the name: eight bytes at a time, other ones in every message and at every place of it.
// Filling and comparing is most of what a world does, so it has to be cheap.
struct Content {
  explicit Content(const Name& n)
      : word(((std::uint64_t{n.number} << 24) + (std::uint64_t{n.channel} << 8) + n.from) * kStep) {}

  void write(std::uint8_t* data, std::size_t n) {
    for (; n >= sizeof word; n -= sizeof word, data += sizeof word, word += kStep)
      std::memcpy(data, &word, sizeof word);
    std::memcpy(data, &word, n);
  }
  bool stands_in(const std::uint8_t* data, std::size_t n) {
    std::uint64_t wrong = 0;
    for (; n >= sizeof word; n -= sizeof word, data += sizeof word, word += kStep) {
      std::uint64_t found;
      std::memcpy(&found, data, sizeof found);
      wrong |= found ^ word;
    }
    return wrong == 0 && std::memcmp(data, &word, n) == 0;
  }

  static constexpr std::uint64_t kStep = 0x9e37'79b9'7f4a'7c15;  // odd, its bytes all different
  std::uint64_t word;
};

}  // namespace

Person::Person(Town& town, pair::WorldPort& port, std::uint32_t host, std::uint64_t seed)
    : town_(town),
      port_(port),
      host_(host),
      random_(seed),
      clocks_(Prng(seed).fork(3)),
      traces_(Prng(seed).fork(4)),
      naps_(Prng(seed).fork(5)) {
  begin();
}

void Person::begin() {
  auto made = Context::open(port_, town_.plan().config, random_.next(), town_.streams(host_));
  CHECK(made.has_value());
  context_ = std::move(*made);
  back_ = Duration{} - seconds(3600);  // there is room to go back
}

void Person::ask(const wire::Address& to) {
  const auto made = context_->connect(to, kService, 0);
  if (!made) return;
  Talk t;
  t.number = town_.number_of((*made)->session);
  t.to_send = town_.plan().messages;
  talks_[*made] = t;
}

std::vector<Channel*> Person::open_channels() {
  std::vector<Channel*> open;
  for (const auto& [c, t] : talks_) {
    if (t.open && c->qpn != kNoQpn) open.push_back(c);
  }
  return open;
}

void Person::move_one(Prng& random) {
  std::vector<Channel*> open;
  for (const auto& [c, t] : talks_) {
    if (t.open && c->state == Channel::State::kOpen) open.push_back(c);
  }
  if (open.empty()) return;
  Channel& c = *open[random.below(open.size())];
  const bool back = c.carrier == channel::Carrier::kTcp;
  if (random.chance(100'000)) {
    (void)context_->set("mock", back ? 0 : 1);  // all of them
  } else {
    (void)context_->move(c, back ? channel::Carrier::kRdma : channel::Carrier::kTcp);
  }
}

std::uint32_t Person::length() {
  const Plan& p = town_.plan();
  if (random_.chance(p.large)) return p.config.small + static_cast<std::uint32_t>(random_.between(0, 40'000));
  return static_cast<std::uint32_t>(random_.between(kLeast, p.config.small));
}

Message* Person::write(const Talk& t, std::uint32_t number, std::uint32_t n) {
  Message* const m = context_->allocate(n);
  if (m == nullptr) return nullptr;
  const Name name{static_cast<std::uint16_t>(t.number), t.side, 0, number};
  Content(name).write(m->data + kLeast, n - kLeast);
  std::memcpy(m->data, &name, sizeof name);
  return m;
}

void Person::send(Channel& c, Talk& t, Time now) {
  const Messages::Flow flow{t.number, t.side};
  const bool request = random_.chance(town_.plan().requests);
  const bool tell = random_.chance(500'000);
  // The number that the message will have if it is accepted.
  const std::uint32_t number = town_.messages().accepted(flow, request ? Messages::Sort::kRequest
                                                               : tell  ? Messages::Sort::kTold
                                                                       : Messages::Sort::kSilent);
  Message* const m = write(t, number, length());
  t.next = now + nanoseconds(1);
  if (m != nullptr && request) {
    const Time deadline = random_.chance(300'000)
                              ? local(now) + microseconds(static_cast<std::int64_t>(random_.between(1, 3000)))
                              : kNever;
    const auto id = context_->call(c, m, cookie(flow, number), deadline);
    if (id) {
      if (random_.chance(100'000)) (void)context_->cancel(*id);
      --t.to_send;
      t.refused = 0;
      return;
    }
  } else if (m != nullptr && context_->send(c, m, cookie(flow, number), tell)) {
    --t.to_send;
    t.refused = 0;
    return;
  }
  if (m != nullptr) context_->release(m);
  town_.messages().withdrawn(flow, number);
  // Who is refused again and again, as while a session waits for its peer to come back, asks less often.
  t.next = now + microseconds(20 << std::min(t.refused++, 4U));
}

void Person::received(const Notice& n, Time now) {
  Name name{};
  const bool named = n.message->length >= kLeast;
  if (named) std::memcpy(&name, n.message->data, sizeof name);
  const Talk& t = talks_.at(n.channel);
  const Messages::Flow flow{t.number, static_cast<std::uint8_t>(1 - t.side)};
  const bool right = named && name.channel == t.number && name.from == flow.from &&
                     Content(name).stands_in(n.message->data + kLeast, n.message->length - kLeast);
  town_.messages().handed(flow, name.number, right, now);
  judge_trace(n, now);
  if (n.kind == Notice::Kind::kResponse) {
    town_.messages().ended({t.number, t.side}, static_cast<std::uint32_t>(n.cookie), Messages::End::kAnswered,
                           now);
  }
  const Duration hold = town_.plan().hold.ps == 0 ? Duration{}
                                                  : Duration{static_cast<std::int64_t>(random_.below(
                                                        static_cast<std::uint64_t>(town_.plan().hold.ps)))};
  held_.push_back({n.message, flow, name.number, now + hold, n.kind == Notice::Kind::kRequest});
}

void Person::let_go(Held& h, Time now) {
  const auto talk = talks_.find(h.message->channel);
  if (h.to_answer && talk != talks_.end() && talk->second.open) {
    const Messages::Flow back{talk->second.number, talk->second.side};
    const std::uint32_t number = town_.messages().accepted(back, Messages::Sort::kAnswer, h.number);
    Message* const m = write(talk->second, number, length());
    if (m == nullptr || !context_->answer(*h.message, m, 0, cookie(back, number))) {
      if (m != nullptr) context_->release(m);
      town_.messages().withdrawn(back, number);
      h.until = now + microseconds(20);
      return;
    }
  }
  town_.messages().given_back(h.flow, h.number, now);
  context_->release(h.message);
  h.message = nullptr;
}

void Person::notice(const Notice& n, Time now) {
  switch (n.kind) {
    case Notice::Kind::kAsked: {
      Talk t;
      t.number = town_.number_of(n.channel->session);
      t.side = 1;
      t.to_send = town_.plan().messages;
      talks_[n.channel] = t;
      return context_->accept(*n.channel, 0);
    }
    case Notice::Kind::kOpened: {
      Talk& t = talks_.at(n.channel);
      t.open = true;
      t.next = now;
      return town_.messages().opened({t.number, t.side}, town_.plan().config.depth);
    }
    case Notice::Kind::kMessage:
    case Notice::Kind::kRequest:
    case Notice::Kind::kResponse:
      return received(n, now);
    case Notice::Kind::kOutcome: {
      const Messages::Flow flow{static_cast<std::uint32_t>(n.cookie >> 40U),
                                static_cast<std::uint8_t>(n.cookie >> 32U & 1U)};
      town_.unknown += n.fate == Fate::kUnknown ? 1U : 0U;
      return town_.messages().ended(flow, static_cast<std::uint32_t>(n.cookie),
                                    static_cast<Messages::End>(n.fate), now);
    }
    case Notice::Kind::kClosed: {
      const auto it = talks_.find(n.channel);
      if (it == talks_.end()) return;
      town_.over.insert(it->second.number * 2 + it->second.side);
      past_.reconnects += n.channel->counts().reconnects;
      past_.nops += n.channel->counts().nops;
      past_.early += n.channel->early;
      past_.probes += n.channel->counts().probes;
      past_.large += n.channel->counts().large_received;
      past_.moves += n.channel->counts().moves;
      talks_.erase(it);
      return;
    }
  }
}

// All hosts of a world live by one clock, so what a program is told of its peer's must allow that they are
// equal, whatever was rebased; and no message arrives before it left.
void Person::judge_trace(const Notice& n, Time now) {
  channel::Trace t;
  if (!context_->trace_of(*n.message, t)) return;
  ++town_.traced;
  if (!t.offset_known) return;
  const auto error = static_cast<std::int64_t>(t.error_ns);
  if (t.offset_ns > error || t.offset_ns < -error)
    town_.report().add(now, "clocks", "host %u takes its peer's clock for %lld ns off, wrong by %lld at most",
                       host_, static_cast<long long>(t.offset_ns), static_cast<long long>(error));
  if (t.network_ns < -error)
    town_.report().add(now, "clocks", "host %u has a message %lld ns before it left", host_,
                       static_cast<long long>(-t.network_ns));
}

void Person::act(Time now) {
  if (context_ == nullptr || now < asleep_until_) return;
  if (town_.plan().nap.ps != 0 && naps_.chance(50'000)) {
    asleep_until_ =
        now +
        Duration{static_cast<std::int64_t>(naps_.below(static_cast<std::uint64_t>(town_.plan().nap.ps)))};
    return;
  }
  if (traces_.chance(town_.plan().switches)) {
    const std::uint64_t mask = context_->config().trace_mask != 0 ? 0 : traces_.next();
    CHECK(context_->set("trace_sample_mask", mask).has_value());
  }
  if (clocks_.chance(1'000)) {
    const Duration by = microseconds(static_cast<std::int64_t>(clocks_.below(20'000)));
    context_->at(local(now));
    context_->rebase(by);
    back_ += by;
  }
  context_->poll(local(now));
  context_->check_invariants();
  for (Notice n; context_->next(n);) notice(n, now);
  for (int i = 0; i < 2 && !held_.empty(); ++i) {
    const std::size_t begin = random_.below(held_.size());
    for (std::size_t k = 0; k < held_.size(); ++k) {
      Held& h = held_[(begin + k) % held_.size()];
      if (h.message != nullptr && h.until <= now) let_go(h, now);
    }
    std::erase_if(held_, [](const Held& h) { return h.message == nullptr; });
  }
  for (auto& [c, t] : talks_) {
    while (t.open && !t.closing && t.to_send != 0 && t.next <= now) {
      send(*c, t, now);
      t.next = std::max(t.next, now + town_.plan().think);
      if (town_.plan().rude && random_.chance(5'000)) {
        t.closing = true;
        context_->abort(*c);
      }
    }
    if (t.open && t.to_send == 0) town_.done[t.number].insert(t.side);
    const bool finished = town_.done[t.number].size() == 2 || town_.over.contains(t.number * 2 + 1 - t.side);
    if (t.open && !t.closing && t.side == 0 && finished) {
      t.closing = true;
      context_->close(*c);
    }
  }
  context_->poll(local(now));
  context_->check_invariants();
  for (Notice n; context_->next(n);) notice(n, now);
}

Time Person::next_wake() const {
  if (context_ == nullptr) return kNever;
  if (town_.now() < asleep_until_) return asleep_until_;
  Time at = context_->next_wake();
  if (at != kNever) at = at + back_;
  for (const Held& h : held_) at = std::min(at, h.until);
  for (const auto& [c, t] : talks_) {
    if (t.open && !t.closing && t.to_send != 0) at = std::min(at, t.next);
  }
  return at;
}

std::string Person::busy_with() const {
  std::string text;
  for (const auto& [channel, t] : talks_) {
    text += "channel " + std::to_string(t.number) + (t.open ? " open" : " not open") +
            (t.closing ? ", closing" : "") + ", " + std::to_string(t.to_send) + " to send; ";
  }
  return text + std::to_string(held_.size()) + " messages held" +
         (context_->buried() ? "" : ", bodies of ended connections");
}

void Person::gather(SeedResult& out) const {
  out.reconnects += past_.reconnects;
  out.nops += past_.nops;
  out.early += past_.early;
  out.probes += past_.probes;
  out.large += past_.large;
  out.moves += past_.moves;
  out.frames += past_.frames + (context_ != nullptr ? context_->counts().stream_frames : 0);
  if (context_ != nullptr) out.used_up += context_->shared_receives().counts().used_up;
  out.reused += past_.reused + (context_ != nullptr ? context_->counts().reused_qps : 0);
}

// The program ends where it is, and another begins in its place.
void Person::crash(Time) {
  for (const auto& [c, t] : talks_) {
    town_.messages().sender_crashed({t.number, t.side});
    town_.messages().receiver_crashed({t.number, static_cast<std::uint8_t>(1 - t.side)});
    town_.over.insert(t.number * 2 + t.side);
  }
  for (const Held& h : held_) town_.messages().receiver_crashed(h.flow);
  talks_.clear();
  held_.clear();
  past_.reused += context_->counts().reused_qps;
  past_.frames += context_->counts().stream_frames;
  context_.reset();
  begin();
}

void Person::leave() { context_.reset(); }

}  // namespace weft::channel_world
