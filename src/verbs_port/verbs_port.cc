#include "verbs_port/verbs_port.h"

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <tsl/robin_map.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "verbs_port/convert.h"
#include "verbs_port/meetings.h"

namespace weft {
namespace {

constexpr std::uint8_t kPortNumber = 1;
constexpr std::uint32_t kMostInline = 64;
constexpr int kPolled = 16;  // completions in one call

// Every post looks for its queue pair, so not in a tree.
struct QpnHash {
  std::size_t operator()(Qpn q) const { return q.v * 0x9E37'79B9'7F4A'7C15ULL >> 32U; }
};

class Ibverbs final : public IbverbsPort {
 public:
  ~Ibverbs() override {
    meetings_.close();
    for (const auto& [number, qp] : qps_) ibv_destroy_qp(qp);
    for (ibv_srq* srq : srqs_) {
      if (srq != nullptr) ibv_destroy_srq(srq);
    }
    for (ibv_cq* cq : cqs_) {
      if (cq != nullptr) ibv_destroy_cq(cq);
    }
    for (const auto& [key, m] : memory_) give_back(m);
    if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
    if (domain_ != nullptr) ibv_dealloc_pd(domain_);
    if (context_ != nullptr) ibv_close_device(context_);
    if (epoll_ >= 0) close(epoll_);
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
    if (auto met = meetings_.open(address_, most_mtu_); !met) return met;
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    for (const int fd : {channel_->fd, context_->async_fd, meetings_.fd()}) {
      if (!watch(fd)) return fail(std::string("the device's events: ") + std::strerror(errno));
    }
    return {};
  }

  int event_fd() const override { return epoll_; }
  bool watch(int fd) override {
    epoll_event watched{};
    watched.events = EPOLLIN;
    return epoll_ >= 0 && epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &watched) == 0;
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
    memory_[{mr->lkey}] = {mr, true};
    auto* bytes = static_cast<std::uint8_t*>(at);
    return PortMemory{{mr->lkey}, {mr->rkey}, reinterpret_cast<std::uint64_t>(at), length, {bytes, length}};
  }
  Outcome<PortMemory> adopt(std::span<std::uint8_t> bytes, std::uint8_t access) override {
    ibv_mr* mr = ibv_reg_mr(domain_, bytes.data(), bytes.size(), access);
    if (mr == nullptr) return fail(code_of(errno));
    memory_[{mr->lkey}] = {mr, false};
    return PortMemory{
        {mr->lkey}, {mr->rkey}, reinterpret_cast<std::uint64_t>(bytes.data()), bytes.size(), bytes};
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

  Outcome<SrqId> create_srq(std::uint32_t entries) override {
    ibv_srq_init_attr init{};
    init.attr = {entries, 1, 0};
    ibv_srq* srq = ibv_create_srq(domain_, &init);
    if (srq == nullptr) return fail(code_of(errno));
    srqs_.push_back(srq);
    return SrqId{static_cast<std::uint32_t>(srqs_.size() - 1)};
  }
  Outcome<void> destroy_srq(SrqId srq) override {
    if (srq.v >= srqs_.size() || srqs_[srq.v] == nullptr) return fail(Errc::kNotFound);
    const auto gone = answer(ibv_destroy_srq(srqs_[srq.v]));
    if (gone) srqs_[srq.v] = nullptr;
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
    if (wanted.srq != kNoSrq) {
      init.srq = srqs_[wanted.srq.v];
      init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
    }
    ibv_qp* qp = ibv_create_qp(domain_, &init);
    if (qp == nullptr) return fail(code_of(errno));
    qps_[{qp->qp_num}] = qp;
    return Qpn{qp->qp_num};
  }
  Outcome<void> prepare(Qpn qpn) override {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = kPortNumber;
    attr.qp_access_flags =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;  // the connection's terms replace them
    return modify(qpn, attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  }
  Outcome<Qpn> recycle(Qpn qpn) override {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RESET;
    if (const auto done = modify(qpn, attr, IBV_QP_STATE); !done) return fail(done.error());
    return qpn;
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

  Outcome<void> listen(std::uint16_t service) override { return meetings_.listen(service); }
  Outcome<ConnectionId> connect(const wire::Address& to, std::uint16_t service, Qpn qpn,
                                const ConnectTerms& terms, const ConnectData& data) override {
    const auto now = state(qpn);
    if (!now || (*now != QpState::kReset && *now != QpState::kInit)) return fail(Errc::kInvalid);
    return meetings_.connect(to, service, qpn, terms, data);
  }
  Outcome<void> accept(ConnectionId id, Qpn qpn, const ConnectTerms& terms,
                       const ConnectData& data) override {
    return meetings_.accept(id, qpn, terms, data);
  }
  Outcome<void> reject(ConnectionId id, const ConnectData& why) override { return meetings_.reject(id, why); }
  Outcome<void> disconnect(ConnectionId id) override { return meetings_.disconnect(id); }

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
    const auto it = qps_.find(qpn);
    if (it == qps_.end()) return {0, fail(Errc::kNotFound)};
    return post_receives(list, [qp = it->second](ibv_recv_wr& wr) {
      ibv_recv_wr* bad = nullptr;
      return ibv_post_recv(qp, &wr, &bad);
    });
  }
  Posted post_shared(SrqId srq, std::span<const RecvWr> list) override {
    if (srq.v >= srqs_.size() || srqs_[srq.v] == nullptr) return {0, fail(Errc::kNotFound)};
    return post_receives(list, [queue = srqs_[srq.v]](ibv_recv_wr& wr) {
      ibv_recv_wr* bad = nullptr;
      return ibv_post_srq_recv(queue, &wr, &bad);
    });
  }
  void ring() override {}  // ibv_post_send() has rung

  std::uint32_t poll(CqId cq, std::span<Completion> out) override {
    std::uint32_t n = 0;
    ibv_wc wc[kPolled];
    for (int more = kPolled; more == kPolled && n < out.size();) {
      const auto room = static_cast<int>(std::min<std::size_t>(kPolled, out.size() - n));
      more = ibv_poll_cq(cqs_[cq.v], room, wc);
      for (int i = 0; i < more; ++i) fill(out[n++], wc[i]);
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
        most_mtu_ = 128U << static_cast<unsigned>(port.active_mtu);
        context_ = context;
        return;
      }
    }
    ibv_close_device(context);
  }

  struct Registered {
    ibv_mr* mr = nullptr;
    bool ours = false;  // and the memory is to be unmapped with it
  };
  static int give_back(const Registered& m) {
    void* at = m.mr->addr;
    const std::size_t length = m.mr->length;
    const int error = ibv_dereg_mr(m.mr);
    if (error == 0 && m.ours) munmap(at, length);
    return error;
  }

  Outcome<void> modify(Qpn qpn, ibv_qp_attr& attr, int mask) {
    const auto it = qps_.find(qpn);
    if (it == qps_.end()) return fail(Errc::kNotFound);
    return answer(ibv_modify_qp(it->second, &attr, mask));
  }

  template <class Post>
  Posted post_receives(std::span<const RecvWr> list, Post post) {
    Posted posted;
    for (const RecvWr& from : list) {
      ibv_recv_wr wr{};
      wr.wr_id = from.wr_id;
      gather(from.sges, wr.sg_list, wr.num_sge);
      posted.refused = answer(post(wr));
      if (!posted.refused) break;
      ++posted.taken;
    }
    return posted;
  }

  void gather(std::span<const Sge> from, ibv_sge*& list, int& count) {
    if (sges_.size() < from.size()) sges_.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i)
      sges_[i] = {from[i].address, from[i].length, from[i].lkey.v};
    list = sges_.data();
    count = static_cast<int>(from.size());
  }

  // --- everything that may have happened ---
  void look() {
    meetings_.look();
    ibv_cq* cq = nullptr;
    for (void* id = nullptr; ibv_get_cq_event(channel_, &cq, &id) == 0;) {
      ibv_ack_cq_events(cq, 1);
      PortEvent e;
      e.cq = {static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(id))};
      events_.push_back(e);
    }
    for (ibv_async_event a; ibv_get_async_event(context_, &a) == 0; ibv_ack_async_event(&a)) {
      const bool last = a.event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
      if (a.event_type != IBV_EVENT_QP_FATAL && a.event_type != IBV_EVENT_QP_REQ_ERR &&
          a.event_type != IBV_EVENT_QP_ACCESS_ERR && !last)
        continue;
      PortEvent e;
      e.kind = last ? PortEventKind::kLastReceive : PortEventKind::kQpError;
      e.qpn = {a.element.qp->qp_num};
      events_.push_back(e);
    }
  }

  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  int epoll_ = -1;
  wire::Address address_;
  std::uint32_t most_mtu_ = 1024;
  std::vector<ibv_cq*> cqs_;    // by CqId
  std::vector<ibv_srq*> srqs_;  // by SrqId
  tsl::robin_map<Qpn, ibv_qp*, QpnHash> qps_;
  std::map<Key, Registered> memory_;
  std::deque<PortEvent> events_;
  Meetings meetings_{[this](Qpn qpn) {
                       const auto it = qps_.find(qpn);
                       return it != qps_.end() ? it->second : nullptr;
                     },
                     events_};
  std::vector<ibv_sge> sges_;  // scratch of one request
};

}  // namespace

bool keep_memory_from_children() { return ibv_fork_init() == 0; }

Result<std::unique_ptr<IbverbsPort>> open_ibverbs(const std::string& device) {
  auto port = std::make_unique<Ibverbs>();
  if (const auto open = port->open(device); !open) return tl::unexpected(open.error());
  return port;
}

}  // namespace weft
