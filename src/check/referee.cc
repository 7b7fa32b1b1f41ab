#include "check/referee.h"

namespace weft::check {

void Referee::connected(const QpFacts& a, const QpFacts& b) {
  ledger_.connected(a);
  ledger_.connected(b);
  wire_.connected(a, b);
  progress_.connected(a);
  progress_.connected(b);
}

void Referee::completed(HostId host, const Completion& c, Time now) {
  progress_.happened(now);
  completions_.completed(host, c, wire_.silence({host, c.qpn}), now);
}

void Referee::placed(const Placed& p, const wire::Header& h, std::span<const std::uint8_t> bytes, Time now) {
  progress_.happened(now);
  delivery_.placed(p, h, bytes, now);
  wire_.placed(p, h, now);
}

void Referee::finish(Time now) {
  completions_.finish(now);
  delivery_.verify_memory(now);
  ledger_.each_endpoint([&](Endpoint& e) {
    const Endpoint* p = ledger_.peer(e);
    const auto works = [](const Endpoint& x) {
      return !x.destroyed && !x.forced_error && !x.send_failed && !x.receive_failed && !x.receives_flushed &&
             !x.posted_bad && !x.bad_receive;
    };
    if (p != nullptr && works(e) && works(*p)) wire_.finish(e.facts.self, now);
  });
}

}  // namespace weft::check
