// The work request API of ibv_qp_ex (ibv_wr_start, ibv_wr_send, ibv_wr_set_sge, …, ibv_wr_complete):
// requests are built up as ibv_send_wr and posted together at the end, so that both APIs are one path. The
// calls in between answer nothing, so what fails in one of them is the answer of ibv_wr_complete, which then
// posts nothing.
#include <cstring>
#include <deque>
#include <vector>

#include "live/abi/handles.h"

namespace weft::live::abi {

struct QpHandle::Sends {
  std::mutex lock;  // from wr_start to wr_complete or wr_abort
  std::vector<ibv_send_wr> requests;
  // One list per request; a deque, so that a list stays where its request points.
  std::deque<std::vector<ibv_sge>> pieces;
  std::vector<std::unique_ptr<std::uint8_t[]>> inline_bytes;
  int failed = 0;     // errno of the first step that failed
  ibv_send_wr spare;  // what steps after it write to

  template <class Step>
  void attempt(const Step& step) {
    if (failed != 0) return;
    const int now = at_edge([&] { return step(), 0; });
    if (failed == 0) failed = now;  // a step inside of this one may have failed
  }
  // The request that is being built; there may be none.
  ibv_send_wr& current() {
    if (failed == 0 && requests.empty()) failed = EINVAL;
    return failed == 0 ? requests.back() : spare;
  }
  void clear() {
    failed = 0;
    requests.clear();
    pieces.clear();
    inline_bytes.clear();
  }
};

QpHandle::QpHandle() = default;
QpHandle::~QpHandle() = default;

namespace {

QpHandle& owner(ibv_qp_ex* qp) { return *reinterpret_cast<QpHandle*>(qp); }

ibv_send_wr& begin(ibv_qp_ex* qp, ibv_wr_opcode opcode) {
  QpHandle::Sends& s = *owner(qp).sends;
  s.attempt([&] {
    s.pieces.emplace_back();
    s.requests.emplace_back();
  });
  ibv_send_wr& wr = s.current();
  wr = {};
  wr.wr_id = qp->wr_id;
  wr.opcode = opcode;
  wr.send_flags = qp->wr_flags;
  return wr;
}
ibv_send_wr& begin_rdma(ibv_qp_ex* qp, ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t address) {
  ibv_send_wr& wr = begin(qp, opcode);
  wr.wr.rdma = {address, rkey};
  return wr;
}
ibv_send_wr& begin_atomic(ibv_qp_ex* qp, ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t address,
                          std::uint64_t compare_or_add, std::uint64_t swap) {
  ibv_send_wr& wr = begin(qp, opcode);
  wr.wr.atomic = {address, compare_or_add, swap, rkey};
  return wr;
}

void start(ibv_qp_ex* qp) { owner(qp).sends->lock.lock(); }

void abort(ibv_qp_ex* qp) {
  owner(qp).sends->clear();
  owner(qp).sends->lock.unlock();
}

int complete(ibv_qp_ex* qp) {
  QpHandle::Sends& s = *owner(qp).sends;
  if (s.failed != 0) {
    const int failed = errno = s.failed;
    abort(qp);
    return failed;
  }
  for (std::size_t i = 0; i < s.requests.size(); ++i) {
    s.requests[i].sg_list = s.pieces[i].data();
    s.requests[i].num_sge = static_cast<int>(s.pieces[i].size());
    s.requests[i].next = i + 1 < s.requests.size() ? &s.requests[i + 1] : nullptr;
  }
  const int failed = s.requests.empty() ? 0 : post_all_or_none(&qp->qp_base, s.requests.data());
  s.clear();
  s.lock.unlock();
  if (failed != 0) errno = failed;
  return failed;
}

void set_sge_list(ibv_qp_ex* qp, std::size_t count, const ibv_sge* list) {
  QpHandle::Sends& s = *owner(qp).sends;
  s.current();
  s.attempt([&] { s.pieces.back().assign(list, list + count); });
}
void set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
  const ibv_sge one{address, length, lkey};
  set_sge_list(qp, 1, &one);
}
// The bytes may change as soon as this returns, and posting is yet to come.
void set_inline_data_list(ibv_qp_ex* qp, std::size_t count, const ibv_data_buf* list) {
  QpHandle::Sends& s = *owner(qp).sends;
  s.current().send_flags |= IBV_SEND_INLINE;
  s.attempt([&] {
    std::size_t length = 0;
    for (std::size_t i = 0; i < count; ++i) length += list[i].length;
    std::uint8_t* const bytes = s.inline_bytes.emplace_back(std::make_unique<std::uint8_t[]>(length)).get();
    std::size_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(bytes + at, list[i].addr, list[i].length);
      at += list[i].length;
    }
    set_sge(qp, 0, reinterpret_cast<std::uint64_t>(bytes), static_cast<std::uint32_t>(length));
  });
}
void set_inline_data(ibv_qp_ex* qp, void* address, std::size_t length) {
  const ibv_data_buf one{address, length};
  set_inline_data_list(qp, 1, &one);
}

}  // namespace

void add_send_operations(QpHandle& h) {
  h.sends = std::make_unique<QpHandle::Sends>();
  ibv_qp_ex& q = h.base;
  q.wr_start = start;
  q.wr_complete = complete;
  q.wr_abort = abort;
  q.wr_send = [](ibv_qp_ex* qp) { begin(qp, IBV_WR_SEND); };
  q.wr_send_imm = [](ibv_qp_ex* qp, __be32 imm) { begin(qp, IBV_WR_SEND_WITH_IMM).imm_data = imm; };
  q.wr_send_inv = [](ibv_qp_ex* qp, std::uint32_t key) {
    begin(qp, IBV_WR_SEND_WITH_INV).invalidate_rkey = key;
  };
  q.wr_rdma_write = [](ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
    begin_rdma(qp, IBV_WR_RDMA_WRITE, rkey, address);
  };
  q.wr_rdma_write_imm = [](ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, __be32 imm) {
    begin_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address).imm_data = imm;
  };
  q.wr_rdma_read = [](ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
    begin_rdma(qp, IBV_WR_RDMA_READ, rkey, address);
  };
  q.wr_atomic_cmp_swp = [](ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, std::uint64_t compare,
                           std::uint64_t swap) {
    begin_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address, compare, swap);
  };
  q.wr_atomic_fetch_add = [](ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, std::uint64_t add) {
    begin_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address, add, 0);
  };
  q.wr_atomic_write = [](ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, const void* word) {
    begin_rdma(qp, IBV_WR_ATOMIC_WRITE, rkey, address);
    set_inline_data(qp, const_cast<void*>(word), kAtomicWriteBytes);
  };
  q.wr_local_inv = [](ibv_qp_ex* qp, std::uint32_t key) {
    begin(qp, IBV_WR_LOCAL_INV).invalidate_rkey = key;
  };
  q.wr_bind_mw = [](ibv_qp_ex* qp, ibv_mw* window, std::uint32_t rkey, const ibv_mw_bind_info* info) {
    ibv_send_wr& wr = begin(qp, IBV_WR_BIND_MW);
    wr.bind_mw.mw = window;
    wr.bind_mw.rkey = rkey;
    wr.bind_mw.bind_info = *info;
  };
  if (q.qp_base.qp_type == IBV_QPT_UD) {
    q.wr_set_ud_addr = [](ibv_qp_ex* qp, ibv_ah* ah, std::uint32_t remote_qpn, std::uint32_t remote_qkey) {
      owner(qp).sends->current().wr.ud = {ah, remote_qpn, remote_qkey};
    };
  }
  q.wr_set_sge = set_sge;
  q.wr_set_sge_list = set_sge_list;
  q.wr_set_inline_data = set_inline_data;
  q.wr_set_inline_data_list = set_inline_data_list;
}

}  // namespace weft::live::abi
