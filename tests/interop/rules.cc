// A verbs program of its own for the rules that Debian's programs keep without noticing: memory windows,
// regions that are registered anew, postings that are taken back, queues that overrun, shared receive queues.
// It knows <infiniband/verbs.h> and the manual pages and nothing of weft, sends to itself, and ends with 0
// when all was as it should be:
//
//   weft run -- weft-rules
#include <infiniband/verbs.h>
#include <poll.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

void expect(bool fact, const char* sentence) {
  if (fact) return;
  std::fprintf(stderr, "not so: %s (errno %d)\n", sentence, errno);
  std::exit(1);
}

constexpr unsigned kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

struct Program {
  Program() : memory(1U << 16U) {
    ibv_device** list = ibv_get_device_list(nullptr);
    expect(list != nullptr && list[0] != nullptr, "there is a device");
    context = ibv_open_device(list[0]);
    expect(context != nullptr, "it opens");
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 256, nullptr, nullptr, 0);
    mr = ibv_reg_mr(pd, memory.data(), memory.size(), kAll | IBV_ACCESS_MW_BIND);
    expect(pd != nullptr && cq != nullptr && mr != nullptr, "there are resources");
    expect(ibv_query_gid(context, 1, 0, &gid) == 0, "the port has a GID");
  }

  ibv_qp* create(ibv_srq* srq = nullptr, ibv_cq* send = nullptr, ibv_cq* receive = nullptr) const {
    constexpr std::uint64_t kOperations = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_BIND_MW;
    ibv_qp_init_attr_ex a{};
    a.send_cq = send != nullptr ? send : cq;
    a.recv_cq = receive != nullptr ? receive : cq;
    a.srq = srq;
    a.cap = {8, 8, 1, 1, 0};
    a.qp_type = IBV_QPT_RC;
    a.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    a.pd = pd;
    a.send_ops_flags = kOperations;
    ibv_qp* const qp = ibv_create_qp_ex(context, &a);
    expect(qp != nullptr, "a queue pair is created");
    return qp;
  }
  void to_rts(ibv_qp* qp, const ibv_qp* peer) const {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = kAll;
    expect(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
           "INIT");
    a.qp_state = IBV_QPS_RTR;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    a.ah_attr.grh.dgid = gid;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = peer->qp_num;
    a.max_dest_rd_atomic = 4;
    a.min_rnr_timer = 12;
    expect(ibv_modify_qp(qp, &a,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
           "RTR");
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 8;
    a.retry_cnt = 7;
    a.rnr_retry = 7;
    a.max_rd_atomic = 4;
    expect(ibv_modify_qp(qp, &a,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC) == 0,
           "RTS");
  }
  void connect(ibv_qp* x, ibv_qp* y) const {
    to_rts(x, y);
    to_rts(y, x);
  }
  std::uint64_t at(std::size_t offset) const { return reinterpret_cast<std::uint64_t>(&memory[offset]); }
  ibv_sge piece(std::size_t offset, std::uint32_t length) const { return {at(offset), length, mr->lkey}; }

  ibv_wc next(ibv_cq* from = nullptr) const {
    ibv_wc wc{};
    for (int i = 0; i < 20'000'000; ++i) {
      const int n = ibv_poll_cq(from != nullptr ? from : cq, 1, &wc);
      expect(n >= 0, "the queue can be polled");
      if (n == 1) return wc;
    }
    expect(false, "there is a completion");
    return wc;
  }
  static int post(ibv_qp* qp, ibv_send_wr wr) {
    ibv_send_wr* bad = nullptr;
    wr.send_flags |= IBV_SEND_SIGNALED;
    return ibv_post_send(qp, &wr, &bad);
  }
  ibv_wc_status write(ibv_qp* qp, std::uint32_t key, std::uint64_t remote, std::size_t from = 0) const {
    ibv_sge sge = piece(from, 8);
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma = {remote, key};
    expect(post(qp, wr) == 0, "a WRITE is posted");
    return next().status;
  }
  ibv_async_event event() const {
    pollfd ready{context->async_fd, POLLIN, 0};
    expect(::poll(&ready, 1, 5000) == 1, "an event comes");
    ibv_async_event e{};
    expect(ibv_get_async_event(context, &e) == 0, "it can be taken");
    ibv_ack_async_event(&e);
    return e;
  }

  std::vector<std::uint8_t> memory;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_gid gid{};
};

struct Pair {
  explicit Pair(Program& p) : x(p.create()), y(p.create()) { p.connect(x, y); }
  ~Pair() {
    ibv_destroy_qp(x);
    ibv_destroy_qp(y);
  }
  ibv_qp* x;
  ibv_qp* y;
};

ibv_send_wr bind(ibv_mw* window, std::uint32_t key, ibv_mr* mr, std::uint64_t address, std::uint64_t length,
                 unsigned access) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_BIND_MW;
  wr.bind_mw.mw = window;
  wr.bind_mw.rkey = key;
  wr.bind_mw.bind_info = {mr, address, length, access};
  return wr;
}

// ibv_post_send(3), ibv_wr_post(3): `mw` says which window, `rkey` brings the new tag.
void a_bind_is_of_the_window_that_it_names(Program& p) {
  Pair q(p);
  ibv_mw* const mine = ibv_alloc_mw(p.pd, IBV_MW_TYPE_2);
  ibv_mw* const other = ibv_alloc_mw(p.pd, IBV_MW_TYPE_2);
  expect(mine != nullptr && other != nullptr, "windows are allocated");
  const std::uint32_t before = mine->rkey;
  const std::uint32_t others = other->rkey;
  const std::uint32_t misleading = (others & ~0xFFU) | ((before + 1) & 0xFFU);
  expect(Program::post(q.y, bind(mine, misleading, p.mr, p.at(256), 64,
                                 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE)) == 0,
         "a bind is posted");
  expect(p.next().status == IBV_WC_SUCCESS, "it succeeds");
  expect(mine->rkey == ibv_inc_rkey(before) && other->rkey == others, "the named window has a new key");
  p.memory[0] = 0xAB;
  expect(p.write(q.x, mine->rkey, p.at(256)) == IBV_WC_SUCCESS && p.memory[256] == 0xAB,
         "it opens its range");
  expect(Program::post(q.y, bind(nullptr, before, p.mr, p.at(0), 64, IBV_ACCESS_REMOTE_WRITE)) == EINVAL,
         "no window is no request");
  expect(p.write(q.x, before, p.at(256)) == IBV_WC_REM_ACCESS_ERR, "its old key is dead");
  expect(ibv_dealloc_mw(mine) == 0 && ibv_dealloc_mw(other) == 0, "windows go");
}

void windows_and_regions_may_count_from_zero(Program& p) {
  {
    Pair q(p);
    ibv_mw* const window = ibv_alloc_mw(p.pd, IBV_MW_TYPE_2);
    const unsigned access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED;
    expect(Program::post(q.y, bind(window, window->rkey, p.mr, p.at(512), 64, access)) == 0,
           "a bind is posted");
    expect(p.next().status == IBV_WC_SUCCESS, "it succeeds");
    p.memory[0] = 0xCD;
    expect(p.write(q.x, window->rkey, 16) == IBV_WC_SUCCESS && p.memory[528] == 0xCD, "0 is its first byte");
    expect(p.write(q.x, window->rkey, p.at(512)) == IBV_WC_REM_ACCESS_ERR, "addresses are offsets");
    ibv_dealloc_mw(window);
  }
  {
    Pair q(p);
    ibv_mw* const first = ibv_alloc_mw(p.pd, IBV_MW_TYPE_1);
    ibv_mw_bind info{};
    info.bind_info = {p.mr, p.at(0), 64, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED};
    expect(ibv_bind_mw(q.y, first, &info) == EINVAL, "type 1 does not count from zero");
    ibv_dealloc_mw(first);
    ibv_mr* const region = ibv_reg_mr(p.pd, &p.memory[1024], 64, kAll | IBV_ACCESS_ZERO_BASED);
    expect(region != nullptr, "a region may");
    p.memory[0] = 0xEF;
    expect(p.write(q.x, region->rkey, 8) == IBV_WC_SUCCESS && p.memory[1032] == 0xEF, "0 is its first byte");
    ibv_dereg_mr(region);
  }
}

void a_region_is_registered_anew(Program& p) {
  constexpr int kMove = IBV_REREG_MR_CHANGE_TRANSLATION;
  constexpr int kRights = IBV_REREG_MR_CHANGE_ACCESS;
  constexpr int kDomain = IBV_REREG_MR_CHANGE_PD;
  ibv_mr* const region = ibv_reg_mr(p.pd, &p.memory[2048], 64, kAll);
  const auto refused = [&](int flags, ibv_pd* pd, void* memory, std::size_t length, int access) {
    errno = 0;
    return ibv_rereg_mr(region, flags, pd, memory, length, access) == IBV_REREG_MR_ERR_INPUT &&
           errno == EINVAL;
  };
  expect(refused(kMove, nullptr, nullptr, 64, 0), "nowhere is no place");
  expect(refused(kMove, nullptr, &p.memory[0], 0, 0), "nothing is no length");
  expect(refused(kMove, nullptr, &p.memory[0], 64, IBV_ACCESS_LOCAL_WRITE),
         "rights change if they are said to");
  expect(refused(kDomain, nullptr, nullptr, 0, 0), "no domain is no domain");
  expect(refused(1 << 7, nullptr, nullptr, 0, 0), "other flags mean nothing");
  expect(ibv_rereg_mr(region, kRights, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE) == IBV_REREG_MR_ERR_CMD,
         "remote writing needs local writing");
  expect(ibv_rereg_mr(region, kMove, nullptr, &p.memory[4096], 128, 0) == 0, "it moves");
  expect(region->addr == &p.memory[4096] && region->length == 128, "and says so");
  {
    Pair q(p);
    p.memory[0] = 0x11;
    expect(p.write(q.x, region->rkey, p.at(4096 + 120)) == IBV_WC_SUCCESS && p.memory[4096 + 120] == 0x11,
           "its new range is open");
    expect(p.write(q.x, region->rkey, p.at(2048)) == IBV_WC_REM_ACCESS_ERR, "its old one is not");
  }
  expect(ibv_rereg_mr(region, kRights, nullptr, nullptr, 0, IBV_ACCESS_LOCAL_WRITE) == 0,
         "its rights change");
  {
    Pair q(p);
    expect(p.write(q.x, region->rkey, p.at(4096)) == IBV_WC_REM_ACCESS_ERR, "it is closed");
  }
  ibv_pd* const other = ibv_alloc_pd(p.context);
  expect(ibv_rereg_mr(region, kDomain | kRights, other, nullptr, 0, static_cast<int>(kAll)) == 0 &&
             region->pd == other,
         "its domain changes");
  {
    Pair q(p);
    expect(p.write(q.x, region->rkey, p.at(4096)) == IBV_WC_REM_ACCESS_ERR, "it is in another domain");
  }
  expect(ibv_dealloc_pd(other) != 0, "which it keeps");
  expect(ibv_dereg_mr(region) == 0 && ibv_dealloc_pd(other) == 0, "all goes");
}

// All changes alone and together, of regions of each kind. The rights that are asked for lack remote writing.
void every_change_of_a_region_counts(Program& p, bool zero_based, bool elsewhere) {
  constexpr int kMove = IBV_REREG_MR_CHANGE_TRANSLATION;
  constexpr int kRights = IBV_REREG_MR_CHANGE_ACCESS;
  constexpr int kDomain = IBV_REREG_MR_CHANGE_PD;
  constexpr std::uint64_t kElsewhere = 0x7000'0000'0000;
  constexpr std::size_t kOld = 2048;
  constexpr std::size_t kNew = 4096;
  const unsigned kind = zero_based ? unsigned{IBV_ACCESS_ZERO_BASED} : 0;
  ibv_pd* const own = p.pd;
  ibv_pd* const other = ibv_alloc_pd(p.context);
  ibv_mr* const own_source = p.mr;
  ibv_mr* const other_source = ibv_reg_mr(other, p.memory.data(), p.memory.size(), kAll);
  for (int flags = kMove; flags <= (kMove | kRights | kDomain); ++flags) {
    const bool moves = (flags & kMove) != 0;
    const bool closes = (flags & kRights) != 0;
    const bool emigrates = (flags & kDomain) != 0;
    ibv_mr* const region = elsewhere ? ibv_reg_mr_iova(own, &p.memory[kOld], 64, kElsewhere, kAll | kind)
                                     : ibv_reg_mr(own, &p.memory[kOld], 64, static_cast<int>(kAll | kind));
    expect(region != nullptr, "a region is registered");
    const std::uint32_t key = region->rkey;
    const int access = static_cast<int>(IBV_ACCESS_LOCAL_WRITE | kind);
    expect(ibv_rereg_mr(region, flags, emigrates ? other : nullptr, moves ? &p.memory[kNew] : nullptr,
                        moves ? 128 : 0, closes ? access : 0) == 0,
           "it is changed");
    const std::size_t from = moves ? kNew : kOld;
    const std::size_t length = moves ? 128 : 64;
    expect(region->addr == &p.memory[from] && region->length == length && region->rkey == key &&
               region->pd == (emigrates ? other : own),
           "and says so, under its key");
    // Where its first byte is for those who name it.
    const std::uint64_t base = zero_based ? 0 : elsewhere && !moves ? kElsewhere : p.at(from);
    const auto write = [&](bool at_home, std::uint64_t offset) {
      p.pd = at_home == emigrates ? other : own;
      p.mr = at_home == emigrates ? other_source : own_source;
      Pair q(p);
      p.memory[0] = static_cast<std::uint8_t>(0x40 + flags);
      p.memory[from + length - 8] = 0;
      const ibv_wc_status status = p.write(q.x, key, base + offset);
      p.pd = own;
      p.mr = own_source;
      return status;
    };
    expect(write(true, length - 8) == (closes ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS), "its rights hold");
    expect(p.memory[from + length - 8] == (closes ? 0 : 0x40 + flags), "at its place");
    expect(write(true, length - 7) == IBV_WC_REM_ACCESS_ERR, "its end is where it was said to be");
    expect(write(false, 0) == IBV_WC_REM_ACCESS_ERR, "the other domain has no part in it");
    expect(ibv_dereg_mr(region) == 0, "it goes");
  }
  expect(ibv_dereg_mr(other_source) == 0 && ibv_dealloc_pd(other) == 0, "all goes");
}

// ibv_alloc_parent_domain(3): the protection domain is that of the domain it was made of.
void a_parent_domain_is_its_protection_domain(Program& p) {
  ibv_td_init_attr promise{};
  ibv_td* const td = ibv_alloc_td(p.context, &promise);
  expect(td != nullptr, "a thread domain is allocated");
  ibv_parent_domain_init_attr of{};
  of.pd = p.pd;
  of.td = td;
  ibv_pd* const own = p.pd;
  ibv_pd* const parent = ibv_alloc_parent_domain(p.context, &of);
  expect(parent != nullptr, "and a parent domain");
  ibv_mr* const region = ibv_reg_mr(parent, &p.memory[2048], 64, kAll);
  {
    p.pd = parent;
    Pair q(p);
    p.pd = own;
    p.memory[0] = 0x55;
    expect(p.write(q.x, p.mr->rkey, p.at(256)) == IBV_WC_SUCCESS && p.memory[256] == 0x55,
           "its queue pairs use the domain's regions");
  }
  {
    Pair q(p);
    expect(p.write(q.x, region->rkey, p.at(2048)) == IBV_WC_SUCCESS && p.memory[2048] == 0x55,
           "and the domain's queue pairs use its");
  }
  expect(ibv_dereg_mr(region) == 0 && ibv_dealloc_pd(parent) == 0 && ibv_dealloc_td(td) == 0, "all goes");
}

// ibv_wr_post(3): when ibv_wr_complete fails, nothing that was built is executed.
void a_posting_that_fails_is_taken_back(Program& p) {
  Pair q(p);
  ibv_qp_ex* const qp = ibv_qp_to_qp_ex(q.x);
  const auto build = [&](int requests) {
    ibv_wr_start(qp);
    for (int i = 0; i < requests; ++i) {
      qp->wr_id = static_cast<std::uint64_t>(i);
      qp->wr_flags = IBV_SEND_SIGNALED;
      ibv_wr_rdma_write(qp, p.mr->rkey, p.at(8192));
      ibv_wr_set_sge(qp, p.mr->lkey, p.at(0), 8);
    }
  };
  p.memory[0] = 0x22;
  p.memory[8192] = 0;
  build(20);
  expect(ibv_wr_complete(qp) == ENOMEM, "twenty do not fit");
  build(2);
  ibv_mw_bind_info nothing{};
  ibv_wr_bind_mw(qp, nullptr, 0, &nothing);
  expect(ibv_wr_complete(qp) == EINVAL, "one of three is no request");
  ibv_wc wc{};
  for (int i = 0; i < 1000; ++i) expect(ibv_poll_cq(p.cq, 1, &wc) == 0, "none is executed");
  expect(p.memory[8192] == 0, "nothing was written");
  build(8);
  expect(ibv_wr_complete(qp) == 0, "eight fit");
  for (std::uint64_t i = 0; i < 8; ++i) {
    wc = p.next();
    expect(wc.status == IBV_WC_SUCCESS && wc.wr_id == i, "all are executed, in order");
  }
}

// ibv_get_async_event(3): the queue is in error, and so are the queue pairs that report to it.
void a_queue_that_overruns_says_so(Program& p) {
  ibv_cq* const small = ibv_create_cq(p.context, 2, nullptr, nullptr, 0);
  ibv_qp* const x = p.create(nullptr, small);
  ibv_qp* const y = p.create();
  p.connect(x, y);
  ibv_sge sge = p.piece(0, 8);
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma = {p.at(8192), p.mr->rkey};
  for (int i = 0; i < 4; ++i) expect(Program::post(x, wr) == 0, "a WRITE is posted");
  ibv_async_event e = p.event();
  expect(e.event_type == IBV_EVENT_CQ_ERR && e.element.cq == small, "the queue is in error");
  e = p.event();
  expect(e.event_type == IBV_EVENT_QP_FATAL && e.element.qp == x, "so is its queue pair");
  ibv_qp_attr a{};
  ibv_qp_init_attr init{};
  expect(ibv_query_qp(x, &a, IBV_QP_STATE, &init) == 0 && a.qp_state == IBV_QPS_ERR, "which is in ERR");
  ibv_wc wc[4];
  expect(ibv_poll_cq(small, 4, wc) == 2, "what is in it can be polled");
  expect(ibv_poll_cq(small, 4, wc) < 0, "and then it says that there will be no more");
  expect(ibv_req_notify_cq(small, 0) == EINVAL, "no event is to be waited for");
  expect(ibv_destroy_qp(x) == 0 && ibv_destroy_qp(y) == 0 && ibv_destroy_cq(small) == 0, "all goes");
}

void a_shared_queue_has_a_domain_of_its_own(Program& p) {
  ibv_pd* const other = ibv_alloc_pd(p.context);
  ibv_mr* const there = ibv_reg_mr(other, &p.memory[16384], 4096, int{IBV_ACCESS_LOCAL_WRITE});
  ibv_srq_init_attr wanted{};
  wanted.attr = {16, 1, 0};
  ibv_srq* const srq = ibv_create_srq(other, &wanted);
  ibv_qp* const x = p.create();
  ibv_qp* const y = p.create(srq);
  p.connect(x, y);
  ibv_sge sge{p.at(16384), 64, there->lkey};
  ibv_recv_wr receive{7, nullptr, &sge, 1};
  ibv_recv_wr* bad = nullptr;
  for (int i = 0; i < 8; ++i) expect(ibv_post_srq_recv(srq, &receive, &bad) == 0, "a receive is posted");
  p.memory[0] = 0x33;
  ibv_sge from = p.piece(0, 8);
  ibv_send_wr wr{};
  wr.sg_list = &from;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  const auto send = [&] {
    expect(Program::post(x, wr) == 0, "a SEND is posted");
    for (int i = 0; i < 2; ++i) expect(p.next().status == IBV_WC_SUCCESS, "it arrives");
  };
  send();
  expect(p.memory[16384] == 0x33, "in the shared queue's domain");

  // One thread takes receives while another sets the limit. Whichever is first, the event comes once.
  std::thread taker([&] {
    for (int i = 0; i < 5; ++i) send();
  });
  ibv_srq_attr limit{0, 0, 4};
  expect(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) == 0, "the limit is set");
  ibv_async_event e = p.event();
  expect(e.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && e.element.srq == srq, "it is reached");
  taker.join();
  pollfd ready{p.context->async_fd, POLLIN, 0};
  expect(::poll(&ready, 1, 0) == 0, "and told once");
  expect(ibv_query_srq(srq, &limit) == 0 && limit.srq_limit == 0, "it is disarmed");
  expect(ibv_destroy_qp(x) == 0 && ibv_destroy_qp(y) == 0 && ibv_destroy_srq(srq) == 0, "queues go");
  expect(ibv_dereg_mr(there) == 0 && ibv_dealloc_pd(other) == 0, "all goes");
}

}  // namespace

int main() {
  Program p;
  a_bind_is_of_the_window_that_it_names(p);
  windows_and_regions_may_count_from_zero(p);
  a_region_is_registered_anew(p);
  every_change_of_a_region_counts(p, false, false);
  every_change_of_a_region_counts(p, true, false);
  every_change_of_a_region_counts(p, false, true);
  a_parent_domain_is_its_protection_domain(p);
  a_posting_that_fails_is_taken_back(p);
  a_queue_that_overruns_says_so(p);
  a_shared_queue_has_a_domain_of_its_own(p);
  std::printf("every rule was kept\n");
  return 0;
}
