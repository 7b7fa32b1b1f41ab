// The drop-in librdmacm.so.1: the objects that programs hold, and how they lead to ours.
//
// Each begins with the public struct of <rdma/rdma_cma.h>, so that a pointer to one is a pointer to the
// other. The protocol is core/cm's, and its clock and wire are the Nic's (live/engine/connections.h). What is
// left to this folder is what RDMA-CM adds for a program: identifiers, event channels, ports, and the steps
// of a queue pair that the library takes for the program.
//
//   the Nic's driver          happened()  ->  Happening in the id's channel
//   the program's own thread  rdma_get_cm_event()  ->  the library's step, if there is one  ->  rdma_cm_event
//
// So a step that belongs to an event (queue pair to RTS, RTU) is taken when the program asks for the event,
// in its own thread, as librdmacm over the kernel does.
//
// Threads: any call from any thread, but one identifier is one thread's at a time, as its man pages have it,
// except that rdma_get_cm_event() may run beside it. `base.channel` changes while nobody is told anything
// (Connections::quietly).
#pragma once
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "live/engine/connections.h"
#include "live/engine/wait_queue.h"

namespace weft::live::rdmacm {

struct CmId;

// Something that a program is to be told about an identifier.
struct Happening {
  CmId* id = nullptr;     // its events are counted there; a listener's for a request
  CmId* fresh = nullptr;  // CONNECT_REQUEST: the new identifier
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_RESOLVED;
  int status = 0;
  cm::CmEvent told;         // by the manager, if it was
  void* context = nullptr;  // of a join: comes back with its event
};

struct Channel {
  rdma_event_channel base{};
  std::unique_ptr<WaitQueue<Happening>> queue;
};

// Takes it out of the book; threads that wait in it go on waiting.
struct CloseChannel {
  void operator()(Channel* channel) const;
};
using OwnedChannel = std::unique_ptr<Channel, CloseChannel>;

struct EventHandle {
  rdma_cm_event base{};
  Happening from;
};

enum class Stage : std::uint8_t {
  kIdle,
  kBound,
  kResolved,  // the peer's address is known
  kListening,
  kRequested,  // a new identifier, to be accepted or rejected
  kConnecting,
  kConnected,
};

// A group that an identifier has joined.
struct Membership {
  wire::Address group;
  bool sends_only = false;
  bool attached = false;  // its queue pair is
};

struct CmId {
  CmId();
  ~CmId();
  CmId(const CmId&) = delete;
  CmId& operator=(const CmId&) = delete;

  rdma_cm_id base{};

  // Told under the Nic's ownership.
  struct Sink final : ConnectionSink {
    explicit Sink(CmId& i) : id(i) {}
    ConnectionSink* requested(const cm::CmEvent& event) override;
    void happened(const cm::CmEvent& event) override;
    CmId& id;
  } sink{*this};

  Stage stage = Stage::kIdle;
  bool asks = false;               // the end that connects
  std::optional<cm::ConnId> conn;  // of this end
  std::optional<cm::ListenerId> listener;
  std::uint16_t own_port = 0;  // taken in the port book, in host order
  bool reuse_address = false;
  std::uint8_t tos = 0;
  std::uint8_t ack_timeout = 0;  // 0: the library's choice
  std::uint32_t taken = 0;       // events not yet acknowledged, under the channel's lock
  OwnedChannel own;              // created without a channel: calls wait for their event
  std::unique_ptr<ibv_sa_path_rec> path;
  std::optional<ibv_qp_init_attr> endpoint;  // of the queue pairs that rdma_get_request() makes
  std::uint8_t responder_resources = 0;      // as the request offered
  std::uint8_t initiator_depth = 0;
  std::vector<Membership> groups;

  Channel& channel() { return *reinterpret_cast<Channel*>(base.channel); }
  void tell(Happening happening);  // to its channel
  bool waits() const { return own != nullptr; }
};

// Of a call to verbs that has just failed.
inline int own_errno() { return errno != 0 ? errno : EINVAL; }

inline CmId& id_of(rdma_cm_id* id) { return *reinterpret_cast<CmId*>(id); }

bool is_datagram(const CmId& id);

// --- id.cc: answers are error numbers, 0 for done ---
int create(rdma_event_channel* channel, void* context, rdma_port_space space, ibv_qp_type type,
           std::unique_ptr<CmId>& out);
void destroy(CmId& id);
// An identifier without a channel waits for the event of the call it has just made.
int complete(CmId& id);
int migrate(CmId& id, rdma_event_channel* channel);

// --- channel.cc ---
OwnedChannel new_channel();
int next_event(Channel& channel, rdma_cm_event*& out);
void acknowledge(rdma_cm_event* event);

// --- address.cc ---
int bind(CmId& id, const sockaddr* address);
int resolve_address(CmId& id, const sockaddr* from, const sockaddr* to);
int resolve_route(CmId& id);
void show_route(CmId& id, const wire::Address& from, const wire::Address& to);

// --- connect.cc ---
int connect(CmId& id, const rdma_conn_param* param);
// The step of the end that asked, when the peer has answered.
int take_up(CmId& id);
int fail_queue_pair(CmId& id);

// --- queue_pair.cc ---
void copy_init(const ibv_qp_init_attr& from, ibv_pd* pd, ibv_qp_init_attr_ex& to);
int create_queue_pair(CmId& id, ibv_qp_init_attr_ex& init);
void destroy_queue_pair(CmId& id);
// What verbs is to show of a queue pair that the engine has brought up.
void show_connected(CmId& id);

// --- multicast.cc ---
int attach_groups(CmId& id);  // a new queue pair, to the groups that its identifier has joined before
void detach_groups(CmId& id);

}  // namespace weft::live::rdmacm
