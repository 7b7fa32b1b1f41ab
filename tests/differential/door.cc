#include "tests/differential/door.h"

#include "core/base/check.h"
#include "core/verbs/ladder.h"

namespace weft::differential {
namespace {

constexpr QpCaps kCaps = {16, 16, 1, 1, 0};

class CoreDoor final : public Door {
 public:
  CoreDoor(Host& host, std::size_t number, const wire::Address& peer)
      : host_(host), peer_(peer), memory_(fresh_memory(number)) {
    Device& d = host.device();
    pd_ = *d.alloc_pd();
    cq_ = *d.create_cq(1024);
    mr_ = *d.register_mr(pd_, kMemoryAt, kMemory, kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic);
    host.set_region(mr_.region, memory_.data());
  }
  wire::Address address() const override { return host_.address(); }
  Keys keys() const override { return {mr_.lkey, mr_.rkey}; }

  Outcome<Qpn> create_qp() override {
    QpInit init;
    init.pd = pd_;
    init.send_cq = init.recv_cq = cq_;
    init.caps = kCaps;
    const auto made = device().create_qp(init);
    if (!made) return made;
    QpAttr a;
    a.state = QpState::kInit;
    a.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
    CHECK(device().modify_qp(*made, a, ladder(QpType::kRc)[0].mask, Time{}).has_value());
    return made;
  }
  // As the engine does: the last ACK may be lost, and soon nobody is here to send it again.
  Outcome<void> destroy_qp(Qpn qpn) override {
    for (int i = 0; i < 3; ++i) device().acknowledge_again(qpn);
    host_.send();
    return sent(device().destroy_qp(qpn));
  }
  Outcome<QpAttr> query_qp(Qpn qpn) const override { return host_.device().query_qp(qpn); }
  Outcome<void> fail_qp(Qpn qpn, Time now) override {
    QpAttr a;
    a.state = QpState::kErr;
    return sent(device().modify_qp(qpn, a, kAttrState, now));
  }
  std::optional<Outcome<void>> raise(Qpn qpn, const QpAttr& attr, std::optional<wire::Mode> mode,
                                     Time now) override {
    PathAttr path{.peer = peer_};
    if (!mode) mode = host_.manager().mode_towards(peer_, attr.dest_qpn);
    if (!mode) {
      const cm::Known known = host_.discovery().look_up(now, host_.address(), peer_, attr.dest_qpn);
      if (known.knowledge == cm::Knowledge::kAsking) {
        host_.send();
        return std::nullopt;
      }
      mode = known.mode;
      path.credit = {known.capability.buffer_share};
    }
    QpAttr a = attr;
    a.mode = *mode;
    const auto opened = device().open_path(path);
    if (!opened) return fail(opened.error());
    a.path = *opened;
    return sent(climb(QpType::kRc, a, [&](const QpAttr& at, std::uint32_t mask) {
      return device().modify_qp(qpn, at, mask, now);
    }));
  }
  std::size_t post_sends(Qpn qpn, std::span<const SendWr* const> list) override {
    std::size_t taken = 0;
    while (taken != list.size() && device().post_send(qpn, *list[taken])) ++taken;
    host_.send();
    return taken;
  }
  Outcome<void> post_receive(Qpn qpn, const RecvWr& wr) override { return device().post_recv(qpn, wr); }
  std::uint32_t poll(std::span<Completion> out) override { return device().poll_cq(cq_, out); }
  bool device_event(DeviceEvent& out) override { return device().poll_event(out); }

  Outcome<cm::ListenerId> listen(const cm::ListenAttr& attr) override { return manager().listen(attr); }
  void close(cm::ListenerId listener, Time now) override {
    static_cast<void>(sent(manager().close(listener, now)));
  }
  Outcome<cm::ConnId> connect(const cm::ConnectAttr& attr, Time now) override {
    return sent(manager().connect(attr, now));
  }
  Outcome<void> accept(cm::ConnId conn, const cm::AcceptAttr& attr, bool whole, Time now) override {
    if (!whole) {
      if (const auto up = climb_to(QpState::kRtr, conn, attr.qpn, now); !up) return up;
      return sent(manager().accept(conn, attr, now));
    }
    if (const auto accepted = manager().accept(conn, attr, now); !accepted) return accepted;
    return sent(climb_to(QpState::kRts, conn, attr.qpn, now));
  }
  Outcome<void> finish(cm::ConnId conn, Qpn qpn, Time now) override {
    return sent(climb_to(QpState::kRts, conn, qpn, now));
  }
  Outcome<void> complete(cm::ConnId conn, Qpn qpn, Time now) override {
    if (const auto up = climb_to(QpState::kRts, conn, qpn, now); !up) return up;
    return sent(manager().establish(conn, now));
  }
  Outcome<void> reject(cm::ConnId conn, std::span<const std::uint8_t> said, Time now) override {
    return sent(manager().reject(conn, said, now));
  }
  Outcome<void> notify(cm::ConnId conn, Time now) override { return sent(manager().notify(conn, now)); }
  Outcome<void> disconnect(cm::ConnId conn, Time now) override {
    return sent(manager().disconnect(conn, now));
  }
  void abandon(cm::ConnId conn, Time now) override { static_cast<void>(sent(manager().abandon(conn, now))); }
  bool next_event(cm::CmEvent& out) override { return manager().poll_event(out); }

  std::string counted() const override { return counted_text(host_.manager(), host_.discovery()); }
  const std::vector<std::uint8_t>& bytes() const override { return memory_; }

 private:
  Device& device() { return host_.device(); }
  cm::Cm& manager() { return host_.manager(); }

  // What a call made possible leaves before the next one.
  template <class T>
  Outcome<T> sent(Outcome<T> done) {
    host_.send();
    return done;
  }
  // Through the states that remain, as the connection has agreed.
  Outcome<void> climb_to(QpState last, cm::ConnId conn, Qpn qpn, Time now) {
    const auto info = manager().info(conn);
    if (!info) return fail(info.error());
    for (const LadderStep& step : ladder(QpType::kRc)) {
      const auto is = device().query_qp(qpn);
      if (!is) return fail(is.error());
      const bool done = is->state != QpState::kInit && step.state <= is->state;
      if (step.state > last || done) continue;
      auto setup = manager().qp_setup(conn, step.state);
      if (!setup) return fail(setup.error());
      if ((setup->mask & kAttrPath) != 0) {
        const auto path =
            device().open_path({.peer = info->peer, .traffic_class = info->tos, .hop_limit = 0});
        if (!path) return fail(path.error());
        setup->attr.path = *path;
      }
      // The mode that was agreed is the queue pair's from its first step, as the engine's is.
      setup->attr.mode = info->mode;
      if (const auto risen = device().modify_qp(qpn, setup->attr, setup->mask, now); !risen) return risen;
    }
    return {};
  }

  Host& host_;
  wire::Address peer_;
  std::vector<std::uint8_t> memory_;
  PdId pd_{};
  CqId cq_{};
  MrInfo mr_;
};

}  // namespace

std::unique_ptr<Door> open_door(Host& host, std::size_t number, const wire::Address& peer) {
  return std::make_unique<CoreDoor>(host, number, peer);
}

std::string counted_text(const cm::Cm& manager, const cm::Discovery& discovery) {
  const cm::CmCounters& c = manager.counters();
  const cm::DiscoveryCounters& d = discovery.counters();
  std::string text = "manager";
  for (const std::uint64_t n : {c.received, c.sent, c.repeated, c.duplicates, c.strays, c.refused, c.early,
                                c.overflow, std::uint64_t{manager.connections()}})
    text.append(" ").append(std::to_string(n));
  text += ", discovery";
  for (const std::uint64_t n :
       {d.queries, d.answers, d.asked, d.strays, d.renewed, d.overflow, std::uint64_t{discovery.peers()}})
    text.append(" ").append(std::to_string(n));
  return text;
}

}  // namespace weft::differential
