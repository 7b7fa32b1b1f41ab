// The connections of a host of the live target: a program that listens, accepts, rejects, connects and parts.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "tests/fuzz/input.h"
#include "tests/fuzz/live_host.h"

namespace weft::fuzz {

class Party final : public live::ConnectionSink {
 public:
  static constexpr std::size_t kMost = 6;

  explicit Party(Host& host) : host_(host), calls_(host.context->connections()) {
    for (const auto space : {wire::PortSpace::kTcp, wire::PortSpace::kUdp}) {
      cm::ListenAttr attr;
      attr.space = space;
      attr.port = kService;
      attr.backlog = 4;
      CHECK(calls_.listen(attr, *this).has_value());
    }
  }

  live::ConnectionSink* requested(const cm::CmEvent& e) override {
    if (ends_.size() == kMost) return nullptr;
    ends_.push_back(std::make_unique<One>());
    ends_.back()->conn = e.conn;
    ends_.back()->last = e.kind;
    return ends_.back().get();
  }
  void happened(const cm::CmEvent&) override {}

  void connect(const wire::Address& from, const wire::Address& to) {
    Queue* const q = ends_.size() < kMost ? host_.create(QpType::kRc, false) : nullptr;
    if (q == nullptr) return;
    q->patient = true;
    ends_.push_back(std::make_unique<One>());
    ends_.back()->queue = q;
    cm::ConnectAttr attr;
    attr.local = from;
    attr.peer = to;
    attr.port = kService;
    attr.qpn = q->qpn;
    static_cast<void>(calls_.connect(attr, *ends_.back(), ends_.back()->conn));
  }
  void resolve(const wire::Address& from, const wire::Address& to) {
    if (ends_.size() == kMost) return;
    ends_.push_back(std::make_unique<One>());
    cm::ResolveAttr attr;
    attr.local = from;
    attr.peer = to;
    attr.port = kService;
    static_cast<void>(calls_.resolve(attr, *ends_.back(), ends_.back()->conn));
  }

  // The program does what its connection asks for, or something else.
  void act(Input& in) {
    if (ends_.empty()) return;
    One& one = *ends_[in.u8() % ends_.size()];
    if (!one.conn) return;
    const std::uint32_t how = in.below(16);
    using cm::CmEventKind;
    if (how == 0) return static_cast<void>(calls_.reject(*one.conn, one, {}));
    if (how == 1) return static_cast<void>(calls_.disconnect(*one.conn, one));
    if (how == 2) return calls_.forget(*one.conn, one);
    if (how == 3) return static_cast<void>(calls_.notify(*one.conn, one));
    if (one.last == CmEventKind::kResolveRequest) {
      static_cast<void>(calls_.answer(*one.conn, one, {.qpn = {2}, .qkey = kQkey, .private_data = {}}));
    } else if (one.last == CmEventKind::kConnectRequest && one.queue == nullptr) {
      one.queue = host_.create(QpType::kRc, in.flag());
      if (one.queue == nullptr) return;
      one.queue->patient = true;
      cm::AcceptAttr attr;
      attr.qpn = one.queue->qpn;
      static_cast<void>(calls_.accept(*one.conn, one, attr, one.queue->qp));
    } else if (one.last == CmEventKind::kConnectResponse && one.queue->qp != nullptr) {
      static_cast<void>(calls_.complete(*one.conn, one, *one.queue->qp));
    } else if (one.last == CmEventKind::kDisconnected) {
      static_cast<void>(calls_.disconnect(*one.conn, one));
    }
  }

 private:
  struct One final : live::ConnectionSink {
    live::ConnectionSink* requested(const cm::CmEvent&) override { return nullptr; }
    void happened(const cm::CmEvent& e) override {
      // Nothing comes after the last event.
      CHECK(!over);
      last = e.kind;
      over = last == cm::CmEventKind::kRejected || last == cm::CmEventKind::kUnreachable ||
             last == cm::CmEventKind::kTimewaitExit || last == cm::CmEventKind::kResolved ||
             last == cm::CmEventKind::kRefused;
    }
    std::optional<cm::ConnId> conn;
    std::optional<cm::CmEventKind> last;
    bool over = false;
    Queue* queue = nullptr;
  };

  Host& host_;
  live::Connections calls_;
  std::vector<std::unique_ptr<One>> ends_;
};

}  // namespace weft::fuzz
