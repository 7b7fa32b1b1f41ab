#include "channel_bench/raw.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <vector>

namespace weft::bench {
namespace {

constexpr std::uint8_t kPort = 1;
constexpr std::uint32_t kPsn = 0;  // of both ways

Error last(const char* what) { return {std::string(what) + ": " + std::strerror(errno)}; }

class Raw final : public RawEnd {
 public:
  explicit Raw(const Size& size) : size_(size) {}
  ~Raw() override {
    if (qp_ != nullptr) ibv_destroy_qp(qp_);
    if (cq_ != nullptr) ibv_destroy_cq(cq_);
    if (mr_ != nullptr) ibv_dereg_mr(mr_);
    if (domain_ != nullptr) ibv_dealloc_pd(domain_);
    if (context_ != nullptr) ibv_close_device(context_);
  }

  Result<void> open() {
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    for (int i = 0; i < count && context_ == nullptr; ++i) try_device(list[i]);
    if (list != nullptr) ibv_free_device_list(list);
    if (context_ == nullptr) return fail("there is no RDMA device with an IPv4 address");
    // A buffer to send from, and one for each receive.
    memory_.resize(std::size_t{size_.bytes} * (size_.receives + 1U));
    domain_ = ibv_alloc_pd(context_);
    if (domain_ == nullptr) return tl::unexpected(last("a protection domain"));
    const int access =
        IBV_ACCESS_LOCAL_WRITE;  // a number: ibv_reg_mr, a macro, compares it with another enum's
    mr_ = ibv_reg_mr(domain_, memory_.data(), memory_.size(), access);
    if (mr_ == nullptr) return tl::unexpected(last("memory"));
    cq_ = ibv_create_cq(context_, static_cast<int>(size_.sends + size_.receives), nullptr, nullptr, 0);
    if (cq_ == nullptr) return tl::unexpected(last("a completion queue"));
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_;
    init.cap = {size_.sends, size_.receives, 1, 1, 0};
    init.qp_type = IBV_QPT_RC;
    qp_ = ibv_create_qp(domain_, &init);
    if (qp_ == nullptr) return tl::unexpected(last("a queue pair"));
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = kPort;
    return step(a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
  }

  std::string introduce() const override {
    std::array<char, 96> line{};
    int at = std::snprintf(line.data(), line.size(), "%" PRIu32 " ", qp_->qp_num);
    for (const std::uint8_t b : gid_.raw)
      at += std::snprintf(line.data() + at, line.size() - static_cast<std::size_t>(at), "%02x", b);
    return line.data();
  }

  Result<void> meet(const std::string& peer) override {
    ibv_qp_attr a{};
    std::array<char, 33> gid{};
    if (std::sscanf(peer.c_str(), "%" SCNu32 " %32[0-9a-f]", &a.dest_qp_num, gid.data()) != 2 ||
        std::strlen(gid.data()) != 32)
      return fail("'" + peer + "' is no queue pair's introduction");
    for (std::size_t i = 0; i < 16; ++i) {
      const std::array<char, 3> byte{gid[2 * i], gid[2 * i + 1], 0};
      a.ah_attr.grh.dgid.raw[i] = static_cast<std::uint8_t>(std::strtoul(byte.data(), nullptr, 16));
    }
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = mtu_;
    a.rq_psn = kPsn;
    a.max_dest_rd_atomic = 1;
    a.min_rnr_timer = 12;  // as ibv_rc_pingpong has it
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = kPort;
    a.ah_attr.grh.hop_limit = 1;
    a.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index_);
    if (!give_back(size_.receives)) return tl::unexpected(last("receives"));
    if (auto up = step(a,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                       "RTR");
        !up)
      return up;
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 14;
    a.retry_cnt = 7;
    a.rnr_retry = 7;
    a.sq_psn = kPsn;
    a.max_rd_atomic = 1;
    return step(a,
                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                    IBV_QP_MAX_QP_RD_ATOMIC,
                "RTS");
  }

  bool send(std::uint32_t bytes) override {
    ibv_sge from{reinterpret_cast<std::uintptr_t>(memory_.data()), bytes, mr_->lkey};
    ibv_send_wr wr{};
    wr.wr_id = kSend;
    wr.sg_list = &from;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp_, &wr, &bad) == 0;
  }

  bool poll(Came& came) override {
    std::array<ibv_wc, 16> wc;
    const int n = ibv_poll_cq(cq_, static_cast<int>(wc.size()), wc.data());
    for (int i = 0; i < n; ++i) {
      const ibv_wc& w = wc[static_cast<std::size_t>(i)];
      if (w.status != IBV_WC_SUCCESS) return false;
      ++(w.wr_id == kSend ? came.sent : came.received);
    }
    return n >= 0;
  }

  bool give_back(std::uint32_t receives) override {
    for (std::uint32_t i = 0; i < receives; ++i) {
      ibv_sge to{reinterpret_cast<std::uintptr_t>(memory_.data() + std::size_t{size_.bytes} * (next_ + 1U)),
                 size_.bytes, mr_->lkey};
      next_ = (next_ + 1) % size_.receives;
      ibv_recv_wr wr{};
      wr.sg_list = &to;
      wr.num_sge = 1;
      ibv_recv_wr* bad = nullptr;
      if (ibv_post_recv(qp_, &wr, &bad) != 0) return false;
    }
    return true;
  }

 private:
  static constexpr std::uint64_t kSend = 1;

  // As the channels' port does: the last GID of an IPv4 address.
  void try_device(ibv_device* device) {
    ibv_context* const context = ibv_open_device(device);
    if (context == nullptr) return;
    ibv_port_attr port{};
    if (ibv_query_port(context, kPort, &port) == 0) {
      for (int i = port.gid_tbl_len; i-- > 0;) {
        ibv_gid gid{};
        if (ibv_query_gid(context, kPort, i, &gid) != 0) continue;
        if (std::any_of(gid.raw, gid.raw + 10, [](std::uint8_t b) { return b != 0; }) ||
            gid.raw[10] != 0xFF || gid.raw[11] != 0xFF)
          continue;
        gid_ = gid;
        gid_index_ = i;
        mtu_ = port.active_mtu;
        context_ = context;
        return;
      }
    }
    ibv_close_device(context);
  }

  Result<void> step(ibv_qp_attr& a, int mask, const char* to) {
    if (ibv_modify_qp(qp_, &a, mask) == 0) return {};
    return tl::unexpected(last((std::string("the queue pair to ") + to).c_str()));
  }

  const Size size_;
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  ibv_gid gid_{};
  int gid_index_ = 0;
  ibv_mtu mtu_ = IBV_MTU_1024;
  std::uint32_t next_ = 0;  // the buffer of the next receive
  std::vector<std::uint8_t> memory_;
};

}  // namespace

Result<std::unique_ptr<RawEnd>> RawEnd::open(const Size& size) {
  auto end = std::make_unique<Raw>(size);
  if (const auto open = end->open(); !open) return tl::unexpected(open.error());
  return end;
}

}  // namespace weft::bench
