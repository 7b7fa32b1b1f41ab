#include "verbs_port/verbs_port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "core/verbs/ladder.h"
#include "verbs_port/convert.h"
#include "verbs_port/handshake.h"

namespace weft {
namespace {

constexpr std::uint8_t kPortNumber = 1;
constexpr std::uint32_t kMostInline = 64;
constexpr int kWaiting = 16;  // of listen()

sockaddr_in socket_address(const wire::Address& a, std::uint16_t port) {
  sockaddr_in sa{};
  sa.sin_family = AF_INET;
  sa.sin_port = htons(port);
  std::memcpy(&sa.sin_addr, &a.bytes[12], 4);
  return sa;
}

class IbverbsPort final : public VerbsPort {
 public:
  ~IbverbsPort() override {
    for (Meeting& m : meetings_) m.hang_up();
    for (const auto& [socket, service] : listeners_) close(socket);
    for (const auto& [number, qp] : qps_) ibv_destroy_qp(qp);
    for (ibv_cq* cq : cqs_) {
      if (cq != nullptr) ibv_destroy_cq(cq);
    }
    for (const auto& [key, m] : memory_) give_back(m);
    if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
    if (domain_ != nullptr) ibv_dealloc_pd(domain_);
    if (context_ != nullptr) ibv_close_device(context_);
  }

  Result<void> open(const std::string& name) {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    for (int i = 0; i < count && context_ == nullptr; ++i) {
      if (name.empty() || name == ibv_get_device_name(list[i])) try_device(list[i]);
    }
    if (list != nullptr) ibv_free_device_list(list);
    if (context_ == nullptr)
      return fail(name.empty() ? "there is no RDMA device with an IPv4 address"
                               : "there is no RDMA device '" + name + "' with an IPv4 address");
    domain_ = ibv_alloc_pd(context_);
    channel_ = ibv_create_comp_channel(context_);
    if (domain_ == nullptr || channel_ == nullptr)
      return fail(std::string("the device: ") + std::strerror(errno));
    for (const int fd : {channel_->fd, context_->async_fd})
      fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return {};
  }

  PortFacts facts() const override { return {address_, false, kMostInline}; }

  Outcome<PortMemory> allocate(std::uint64_t length, std::uint8_t access, MemoryKind kind) override {
    if (kind == MemoryKind::kCounted) return fail(Errc::kUnsupported);
    void* at = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return fail(Errc::kNoMemory);
    ibv_mr* mr = ibv_reg_mr(domain_, at, length, access);
    if (mr == nullptr) {
      const int error = errno;
      munmap(at, length);
      return fail(code_of(error));
    }
    memory_[{mr->lkey}] = mr;
    auto* bytes = static_cast<std::uint8_t*>(at);
    return PortMemory{{mr->lkey}, {mr->rkey}, reinterpret_cast<std::uint64_t>(at), length, {bytes, length}};
  }
  Outcome<void> release(Key lkey) override {
    const auto it = memory_.find(lkey);
    if (it == memory_.end()) return fail(Errc::kNotFound);
    const auto gone = answer(give_back(it->second));
    if (gone) memory_.erase(it);
    return gone;
  }

  Outcome<CqId> create_cq(std::uint32_t entries) override {
    const CqId id{static_cast<std::uint32_t>(cqs_.size())};
    ibv_cq* cq = ibv_create_cq(context_, static_cast<int>(entries),
                               reinterpret_cast<void*>(std::uintptr_t{id.v}), channel_, 0);
    if (cq == nullptr) return fail(code_of(errno));
    cqs_.push_back(cq);
    return id;
  }
  Outcome<void> destroy_cq(CqId cq) override {
    if (cq.v >= cqs_.size() || cqs_[cq.v] == nullptr) return fail(Errc::kNotFound);
    const auto gone = answer(ibv_destroy_cq(cqs_[cq.v]));
    if (gone) cqs_[cq.v] = nullptr;
    return gone;
  }

  Outcome<Qpn> create_qp(const PortQueuePair& wanted) override {
    ibv_qp_init_attr init{};
    init.send_cq = cqs_[wanted.send_cq.v];
    init.recv_cq = cqs_[wanted.recv_cq.v];
    init.cap = {wanted.caps.max_send_wr, wanted.caps.max_recv_wr, wanted.caps.max_send_sge,
                wanted.caps.max_recv_sge, wanted.caps.max_inline};
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = wanted.signal_all ? 1 : 0;
    ibv_qp* qp = ibv_create_qp(domain_, &init);
    if (qp == nullptr) return fail(code_of(errno));
    qps_[{qp->qp_num}] = qp;
    return Qpn{qp->qp_num};
  }
  Outcome<void> destroy_qp(Qpn qpn) override {
    const auto it = qps_.find(qpn);
    if (it == qps_.end()) return fail(Errc::kNotFound);
    const auto gone = answer(ibv_destroy_qp(it->second));
    if (gone) qps_.erase(it);
    return gone;
  }
  Outcome<QpState> state(Qpn qpn) const override {
    const auto it = qps_.find(qpn);
    if (it == qps_.end()) return fail(Errc::kNotFound);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    if (const int error = ibv_query_qp(it->second, &attr, IBV_QP_STATE, &init); error != 0)
      return fail(code_of(error));
    return static_cast<QpState>(attr.qp_state);
  }

  Outcome<void> listen(std::uint16_t service) override {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return fail(Errc::kNoMemory);
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_in self = socket_address(address_, service);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&self), sizeof self) != 0 || ::listen(fd, kWaiting) != 0) {
      close(fd);
      return fail(Errc::kBusy);
    }
    listeners_.emplace_back(fd, service);
    return {};
  }

  Outcome<ConnectionId> connect(const wire::Address& to, std::uint16_t service, Qpn qpn,
                                const ConnectTerms& terms, const ConnectData& data) override {
    const auto now = state(qpn);
    if (!now || *now != QpState::kReset) return fail(Errc::kInvalid);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return fail(Errc::kNoMemory);
    const sockaddr_in self = socket_address(address_, 0);
    const sockaddr_in peer = socket_address(to, service);
    Meeting m;
    m.fd = fd;
    m.peer = to;
    m.service = service;
    m.asked = true;
    m.end = {qpn, terms};
    m.to_send = hello(m.end, data);
    m.sending = true;
    if (bind(fd, reinterpret_cast<const sockaddr*>(&self), sizeof self) != 0 ||
        (::connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0 && errno != EINPROGRESS))
      m.hang_up();  // poll_event() tells
    meetings_.push_back(m);
    return ConnectionId{static_cast<std::uint32_t>(meetings_.size() - 1)};
  }

  Outcome<void> accept(ConnectionId id, Qpn qpn, const ConnectTerms& terms,
                       const ConnectData& data) override {
    if (id.v >= meetings_.size() || meetings_[id.v].stage != Stage::kAsked) return fail(Errc::kNotFound);
    Meeting& m = meetings_[id.v];
    m.end = {qpn, terms};
    if (const auto up = raise(m); !up) return up;
    m.to_send = hello(m.end, data);
    m.sending = true;
    m.stage = Stage::kOpen;
    PortEvent e;
    e.kind = PortEventKind::kEstablished;
    e.connection = id;
    e.qpn = qpn;
    events_.push_back(e);
    return {};
  }
  Outcome<void> reject(ConnectionId id) override {
    if (id.v >= meetings_.size() || meetings_[id.v].stage != Stage::kAsked) return fail(Errc::kNotFound);
    meetings_[id.v].hang_up();
    meetings_[id.v].stage = Stage::kOver;
    return {};
  }
  Outcome<void> disconnect(ConnectionId id) override {
    if (id.v >= meetings_.size() || meetings_[id.v].stage != Stage::kOpen) return fail(Errc::kNotFound);
    meetings_[id.v].hang_up();
    meetings_[id.v].stage = Stage::kOver;
    fall(meetings_[id.v].end.qpn);
    return {};
  }

  Posted post_send(Qpn qpn, std::span<const SendWr> list) override {
    Posted posted;
    const auto it = qps_.find(qpn);
    if (it == qps_.end()) return {0, fail(Errc::kNotFound)};
    for (const SendWr& from : list) {
      ibv_send_wr wr = request_of(from);
      ibv_send_wr* bad = nullptr;
      gather(from.sges, wr.sg_list, wr.num_sge);
      posted.refused = answer(ibv_post_send(it->second, &wr, &bad));
      if (!posted.refused) break;
      ++posted.taken;
    }
    return posted;
  }
  Posted post_recv(Qpn qpn, std::span<const RecvWr> list) override {
    Posted posted;
    const auto it = qps_.find(qpn);
    if (it == qps_.end()) return {0, fail(Errc::kNotFound)};
    for (const RecvWr& from : list) {
      ibv_recv_wr wr{};
      ibv_recv_wr* bad = nullptr;
      wr.wr_id = from.wr_id;
      gather(from.sges, wr.sg_list, wr.num_sge);
      posted.refused = answer(ibv_post_recv(it->second, &wr, &bad));
      if (!posted.refused) break;
      ++posted.taken;
    }
    return posted;
  }
  void ring() override {}  // ibv_post_send() has rung

  std::uint32_t poll(CqId cq, std::span<Completion> out) override {
    std::uint32_t n = 0;
    for (ibv_wc wc; n < out.size() && ibv_poll_cq(cqs_[cq.v], 1, &wc) > 0;) {
      out[n++] = completion_of(wc);
    }
    return n;
  }
  Outcome<void> arm(CqId cq, bool solicited_only) override {
    return answer(ibv_req_notify_cq(cqs_[cq.v], solicited_only ? 1 : 0));
  }

  bool poll_event(PortEvent& out) override {
    look();
    if (events_.empty()) return false;
    out = events_.front();
    events_.pop_front();
    return true;
  }

 private:
  enum class Stage : std::uint8_t { kHearing, kAsked, kOpen, kOver };
  struct OwnEnd {
    Qpn qpn = kNoQpn;
    ConnectTerms terms;
  };
  // One TCP connection, and the connection that it is about.
  struct Meeting {
    int fd = -1;
    wire::Address peer;
    std::uint16_t service = 0;
    bool asked = false;  // by us
    Stage stage = Stage::kHearing;
    OwnEnd end;
    Hello theirs;
    std::array<std::uint8_t, Hello::kBytes> to_send{};
    std::array<std::uint8_t, Hello::kBytes> heard{};
    bool sending = false;
    std::size_t sent = 0;
    std::size_t got = 0;
    void hang_up() {
      if (fd >= 0) close(fd);
      fd = -1;
    }
  };

  // The address of one host in GID form; RoCE v2 where there is a choice is what drivers list last.
  void try_device(ibv_device* device) {
    ibv_context* context = ibv_open_device(device);
    if (context == nullptr) return;
    ibv_port_attr port{};
    if (ibv_query_port(context, kPortNumber, &port) == 0) {
      for (int i = port.gid_tbl_len; i-- > 0;) {
        ibv_gid gid{};
        if (ibv_query_gid(context, kPortNumber, i, &gid) != 0) continue;
        if (std::any_of(gid.raw, gid.raw + 10, [](std::uint8_t b) { return b != 0; }) ||
            gid.raw[10] != 0xFF || gid.raw[11] != 0xFF)
          continue;
        std::copy(gid.raw, gid.raw + 16, address_.bytes.begin());
        gid_index_ = static_cast<std::uint8_t>(i);
        most_mtu_ = 128U << static_cast<unsigned>(port.active_mtu);
        context_ = context;
        return;
      }
    }
    ibv_close_device(context);
  }

  static int give_back(ibv_mr* mr) {
    void* at = mr->addr;
    const std::size_t length = mr->length;
    const int error = ibv_dereg_mr(mr);
    if (error == 0) munmap(at, length);
    return error;
  }

  void gather(std::span<const Sge> from, ibv_sge*& list, int& count) {
    sges_.clear();
    for (const Sge& s : from) sges_.push_back({s.address, s.length, s.lkey.v});
    list = sges_.data();
    count = static_cast<int>(sges_.size());
  }

  std::array<std::uint8_t, Hello::kBytes> hello(const OwnEnd& end, const ConnectData& data) const {
    return Hello{end.qpn, end.terms.psn, std::min(end.terms.mtu, most_mtu_), end.terms.reads, data}.encode();
  }

  Outcome<void> raise(const Meeting& m) {
    const auto it = qps_.find(m.end.qpn);
    if (it == qps_.end()) return fail(Errc::kNotFound);
    const ConnectTerms& t = m.end.terms;
    ibv_qp_attr a{};
    a.port_num = kPortNumber;
    a.qp_access_flags = t.access;
    a.path_mtu = verbs_mtu(std::min({t.mtu, most_mtu_, m.theirs.mtu}));
    a.dest_qp_num = m.theirs.qpn.v;
    a.rq_psn = m.theirs.psn.v;
    a.sq_psn = t.psn.v;
    a.max_rd_atomic = a.max_dest_rd_atomic = std::min(t.reads, m.theirs.reads);
    a.min_rnr_timer = t.min_rnr_timer;
    a.timeout = t.timeout;
    a.retry_cnt = t.retry_count;
    a.rnr_retry = t.rnr_retry;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = kPortNumber;
    a.ah_attr.sl = t.service_level;
    a.ah_attr.grh.sgid_index = gid_index_;
    a.ah_attr.grh.hop_limit = 64;
    std::copy(m.peer.bytes.begin(), m.peer.bytes.end(), a.ah_attr.grh.dgid.raw);
    int error = 0;
    climb(QpType::kRc, {}, [&](const QpAttr& step, std::uint32_t mask) {
      a.qp_state = static_cast<ibv_qp_state>(step.state);
      error = ibv_modify_qp(it->second, &a, static_cast<int>(mask));
      return error == 0;
    });
    return answer(error);
  }
  void fall(Qpn qpn) {
    const auto it = qps_.find(qpn);
    if (it == qps_.end()) return;
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_ERR;
    ibv_modify_qp(it->second, &a, IBV_QP_STATE);
  }

  // --- everything that may have happened ---
  void look() {
    for (const auto& [socket, service] : listeners_) hear(socket, service);
    for (std::size_t i = 0; i < meetings_.size(); ++i) {
      if (meetings_[i].stage != Stage::kOver) tend({static_cast<std::uint32_t>(i)}, meetings_[i]);
    }
    ibv_cq* cq = nullptr;
    for (void* id = nullptr; ibv_get_cq_event(channel_, &cq, &id) == 0;) {
      ibv_ack_cq_events(cq, 1);
      PortEvent e;
      e.cq = {static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(id))};
      events_.push_back(e);
    }
    for (ibv_async_event a; ibv_get_async_event(context_, &a) == 0; ibv_ack_async_event(&a)) {
      if (a.event_type != IBV_EVENT_QP_FATAL && a.event_type != IBV_EVENT_QP_REQ_ERR &&
          a.event_type != IBV_EVENT_QP_ACCESS_ERR)
        continue;
      PortEvent e;
      e.kind = PortEventKind::kQpError;
      e.qpn = {a.element.qp->qp_num};
      events_.push_back(e);
    }
  }

  void hear(int socket, std::uint16_t service) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const int fd = accept4(socket, reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    Meeting m;
    m.fd = fd;
    m.service = service;
    std::array<std::uint8_t, 4> b{};
    std::memcpy(b.data(), &from.sin_addr, 4);
    m.peer = wire::Address::v4(b[0], b[1], b[2], b[3]);
    meetings_.push_back(m);
  }

  void tend(ConnectionId id, Meeting& m) {
    if (m.fd >= 0 && m.sending) {
      const ssize_t n = send(m.fd, m.to_send.data() + m.sent, m.to_send.size() - m.sent, MSG_NOSIGNAL);
      if (n > 0) m.sent += static_cast<std::size_t>(n);
      if (m.sent == m.to_send.size()) m.sending = false;
      if (n < 0 && errno != EAGAIN && errno != ENOTCONN && errno != EINTR) m.hang_up();
    }
    if (m.fd >= 0) listen_to(id, m);
    if (m.fd < 0) ended(id, m);
  }

  void listen_to(ConnectionId id, Meeting& m) {
    const std::size_t room = m.heard.size() - m.got;
    std::uint8_t surplus = 0;
    void* to = room != 0 ? static_cast<void*>(m.heard.data() + m.got) : static_cast<void*>(&surplus);
    const ssize_t n = recv(m.fd, to, room != 0 ? room : 1, 0);
    if (n < 0 && (errno == EAGAIN || errno == ENOTCONN || errno == EINTR)) return;
    if (n <= 0 || room == 0) return m.hang_up();  // nobody says anything behind a Hello
    m.got += static_cast<std::size_t>(n);
    if (m.got < m.heard.size()) return;
    const auto said = Hello::decode(m.heard);
    if (!said) return m.hang_up();
    m.theirs = *said;
    PortEvent e;
    e.connection = id;
    e.service = m.service;
    e.data = said->data;
    if (m.asked) {
      if (!raise(m)) return m.hang_up();
      m.stage = Stage::kOpen;
      e.kind = PortEventKind::kEstablished;
      e.qpn = m.end.qpn;
    } else {
      m.stage = Stage::kAsked;
      e.kind = PortEventKind::kConnectRequest;
    }
    events_.push_back(e);
  }

  // The other side closed, or it could not be reached.
  void ended(ConnectionId id, Meeting& m) {
    PortEvent e;
    e.connection = id;
    e.qpn = m.end.qpn;
    e.service = m.service;
    const Stage stage = m.stage;
    m.stage = Stage::kOver;
    if (stage == Stage::kOpen) fall(m.end.qpn);
    e.kind = stage == Stage::kOpen ? PortEventKind::kDisconnected : PortEventKind::kRejected;
    if (stage == Stage::kOpen || m.asked) events_.push_back(e);
  }

  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  wire::Address address_;
  std::uint8_t gid_index_ = 0;
  std::uint32_t most_mtu_ = 1024;
  std::vector<ibv_cq*> cqs_;  // by CqId
  std::map<Qpn, ibv_qp*> qps_;
  std::map<Key, ibv_mr*> memory_;
  std::vector<std::pair<int, std::uint16_t>> listeners_;
  std::vector<Meeting> meetings_;  // by ConnectionId
  std::deque<PortEvent> events_;
  std::vector<ibv_sge> sges_;  // scratch of one request
};

}  // namespace

Result<std::unique_ptr<VerbsPort>> open_ibverbs(const std::string& device) {
  auto port = std::make_unique<IbverbsPort>();
  if (const auto open = port->open(device); !open) return tl::unexpected(open.error());
  return port;
}

}  // namespace weft
