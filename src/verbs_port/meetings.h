// Connections of the port through librdmacm: identifiers, one channel, and what their events mean here.
//
// A service is a port of the TCP space. The queue pairs are the port's own, so the steps that librdmacm would
// take are taken here: the peer's answer brings the queue pair to RTS with what rdma_init_qp_attr() says and
// the connection's terms say otherwise. Nothing waits: the channel does not block, and look() takes what is
// there.
//
// In front of the data that the ends tell each other stand two bytes: how many they are, and this end's
// largest MTU as verbs numbers it. RDMA-CM says neither.
#pragma once
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "core/verbs/port.h"

namespace weft {

class Meetings {
 public:
  // `find` tells the queue pair of a number, or nullptr.
  Meetings(std::function<ibv_qp*(Qpn)> find, std::deque<PortEvent>& events)
      : find_(std::move(find)), events_(events) {}
  ~Meetings() { close(); }
  Meetings(const Meetings&) = delete;
  Meetings& operator=(const Meetings&) = delete;

  Result<void> open(const wire::Address& own, std::uint32_t most_mtu);
  Outcome<void> listen(std::uint16_t service);
  Outcome<ConnectionId> connect(const wire::Address& to, std::uint16_t service, Qpn qpn,
                                const ConnectTerms& terms, const ConnectData& data);
  Outcome<void> accept(ConnectionId id, Qpn qpn, const ConnectTerms& terms, const ConnectData& data);
  Outcome<void> reject(ConnectionId id, const ConnectData& why);
  Outcome<void> disconnect(ConnectionId id);
  void look();
  void close();  // every connection ends
  int fd() const { return channel_->fd; }

 private:
  enum class Stage : std::uint8_t { kAsking, kAsked, kAnswered, kOpen, kOver };
  struct Meeting {
    rdma_cm_id* id = nullptr;
    ConnectionId self{};
    Stage stage = Stage::kAsking;
    std::uint16_t service = 0;
    Qpn qpn = kNoQpn;
    ConnectTerms terms;
    ConnectData data;  // ours, to be told
    std::uint8_t peer_mtu = 0;
  };

  // A ConnectionId is a place among the meetings and how often the place has served.
  static constexpr unsigned kPlaceBits = 20;
  static std::uint32_t place_of(ConnectionId id) { return id.v & ((1U << kPlaceBits) - 1U); }
  bool add(Meeting m, ConnectionId& id);  // false: no room, or no memory
  Meeting* find(ConnectionId id, Stage stage);
  std::uint8_t mtu_of(const ConnectTerms& terms) const;
  std::uint8_t* fill(const Meeting& m, const ConnectData& data, std::uint8_t* room) const;
  rdma_conn_param param_of(const Meeting& m, std::uint8_t* room) const;
  Outcome<void> raise(Meeting& m);
  void fall(Qpn qpn);
  void end(Meeting& m);
  void happened(rdma_cm_event& e);
  void requested(const rdma_cm_event& e);
  void go_on(Meeting& m, ConnectionId id, const rdma_cm_event& e);
  void say(PortEventKind kind, ConnectionId id, const Meeting& m, const ConnectData& data = {});

  std::function<ibv_qp*(Qpn)> find_;
  std::deque<PortEvent>& events_;
  rdma_event_channel* channel_ = nullptr;
  wire::Address own_;
  std::uint32_t most_mtu_ = 1024;
  std::vector<rdma_cm_id*> listeners_;
  std::vector<Meeting> meetings_;   // by place
  std::deque<std::uint32_t> free_;  // places, the one that has been free longest first
  std::map<const rdma_cm_id*, ConnectionId> known_;
  std::vector<rdma_cm_id*> over_;  // to be destroyed when no event of theirs is held
};

}  // namespace weft
