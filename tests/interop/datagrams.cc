// A verbs program of its own for what Debian's programs leave out of UD and UC: replies to whoever a
// completion names (ibv_create_ah_from_wc), the ibv_wr_* calls for datagrams, and what must be refused, with
// its errno. It knows <infiniband/verbs.h> and nothing of weft, sends to itself, and ends with 0 when all was
// as it should be:
//
//   weft run -- weft-datagrams
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr std::uint32_t kQkey = 0x11111111;
constexpr std::size_t kGrh = sizeof(ibv_grh);

void expect(bool fact, const char* sentence) {
  if (fact) return;
  std::fprintf(stderr, "not so: %s (errno %d)\n", sentence, errno);
  std::exit(1);
}

struct Program {
  Program() : memory(1U << 16U) {
    ibv_device** list = ibv_get_device_list(nullptr);
    expect(list != nullptr && list[0] != nullptr, "there is a device");
    context = ibv_open_device(list[0]);
    expect(context != nullptr, "it opens");
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 64, nullptr, nullptr, 0);
    mr = ibv_reg_mr(pd, memory.data(), memory.size(), int{IBV_ACCESS_LOCAL_WRITE});
    expect(pd != nullptr && cq != nullptr && mr != nullptr, "there are resources");
    ibv_port_attr port{};
    expect(ibv_query_port(context, 1, &port) == 0 && port.gid_tbl_len > 0, "the port has GIDs");
    // The last: with an address of each family the others' tests have seen the first.
    ibv_gid_entry entry{};
    gid_index = static_cast<std::uint8_t>(port.gid_tbl_len - 1);
    while (gid_index > 0 && ibv_query_gid_ex(context, 1, gid_index, &entry, 0) != 0) --gid_index;
    expect(ibv_query_gid(context, 1, gid_index, &gid) == 0, "and tells them");
    v6 = gid.raw[10] != 0xFF;
  }

  ibv_qp_init_attr plain(ibv_qp_type type) const {
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = cq;
    a.cap = {16, 16, 1, 1, 64};
    a.qp_type = type;
    a.sq_sig_all = 1;
    return a;
  }
  ibv_qp* with_operations(ibv_qp_type type, std::uint64_t operations) const {
    ibv_qp_init_attr_ex a{};
    a.send_cq = a.recv_cq = cq;
    a.cap = {16, 16, 1, 1, 64};
    a.qp_type = type;
    a.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    a.pd = pd;
    a.send_ops_flags = operations;
    return ibv_create_qp_ex(context, &a);
  }
  static void to_rts(ibv_qp* qp) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qkey = kQkey;
    expect(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0, "INIT");
    a.qp_state = IBV_QPS_RTR;
    expect(ibv_modify_qp(qp, &a, IBV_QP_STATE) == 0, "RTR");
    a.qp_state = IBV_QPS_RTS;
    expect(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "RTS");
  }

  ibv_sge piece(std::size_t at, std::size_t length) const {
    return {reinterpret_cast<std::uint64_t>(memory.data() + at), static_cast<std::uint32_t>(length),
            mr->lkey};
  }
  void receive(ibv_qp* qp, std::size_t at) const {
    ibv_sge sge = piece(at, 2048);
    ibv_recv_wr wr{at, nullptr, &sge, 1};
    ibv_recv_wr* bad = nullptr;
    expect(ibv_post_recv(qp, &wr, &bad) == 0, "a receive is posted");
  }
  // The next completion, of whichever queue pair.
  ibv_wc next() const {
    ibv_wc wc{};
    for (long tries = 0; tries < 200'000'000; ++tries) {
      if (ibv_poll_cq(cq, 1, &wc) == 1) return wc;
    }
    expect(false, "a completion comes");
    return wc;
  }

  std::vector<char> memory;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_gid gid{};
  std::uint8_t gid_index = 0;
  bool v6 = false;  // its family
};

ibv_ah_attr vector_to(const ibv_gid& gid, std::uint8_t from) {
  ibv_ah_attr a{};
  a.grh.sgid_index = from;
  a.is_global = 1;
  a.port_num = 1;
  a.grh.dgid = gid;
  a.grh.hop_limit = 64;
  return a;
}

void refusals(const Program& p, ibv_qp* qp) {
  ibv_gid group{};
  group.raw[0] = 0xFF;
  group.raw[15] = 5;
  if (p.v6) group = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 239, 1, 1, 5}};
  ibv_ah_attr a = vector_to(group, p.gid_index);
  errno = 0;
  expect(ibv_create_ah(p.pd, &a) == nullptr && errno == EINVAL,
         "a group of the other family has no address handle");
  if (p.gid_index == 0) expect(ibv_attach_mcast(qp, &group, 0) == EINVAL, "and is not joined");
  a = vector_to(p.gid, static_cast<std::uint8_t>(p.gid_index + 1));
  errno = 0;
  expect(ibv_create_ah(p.pd, &a) == nullptr && errno == EINVAL, "an address that we have not leads nowhere");
  expect(ibv_attach_mcast(qp, &p.gid, 0) == EINVAL, "a host is no group");
  expect(ibv_detach_mcast(qp, &p.gid, 0) == EINVAL, "and is not left");
  a = vector_to(p.gid, p.gid_index);
  a.is_global = 0;
  errno = 0;
  expect(ibv_create_ah(p.pd, &a) == nullptr && errno == EINVAL, "RoCE has global addresses only");
  errno = 0;
  expect(p.with_operations(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE) == nullptr && errno == EOPNOTSUPP,
         "UD has no WRITE");
  errno = 0;
  expect(p.with_operations(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ) == nullptr && errno == EOPNOTSUPP,
         "UC has no READ");
  ibv_qp* uc = p.with_operations(IBV_QPT_UC, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM);
  expect(uc != nullptr && ibv_destroy_qp(uc) == 0, "UC has SEND and WRITE");
  ibv_wc wc{};
  ibv_grh grh{};
  errno = 0;
  expect(ibv_init_ah_from_wc(p.context, 1, &wc, &grh, &a) == -1 && errno == EINVAL, "no GRH, no address");
  wc.wc_flags = IBV_WC_GRH;
  errno = 0;
  expect(ibv_init_ah_from_wc(p.context, 1, &wc, &grh, &a) == -1 && errno == EPROTONOSUPPORT,
         "40 bytes of zero are no header");
}

// Longer than the port's MTU: the send queue stops (SQE), and RTS makes it work again.
void too_long(Program& p, ibv_qp* qp, ibv_ah* ah, ibv_qp* to) {
  ibv_sge sge = p.piece(0, 4097);
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.wr.ud = {ah, to->qp_num, kQkey};
  ibv_send_wr* bad = nullptr;
  expect(ibv_post_send(qp, &wr, &bad) == 0, "it is posted");
  expect(p.next().status == IBV_WC_LOC_LEN_ERR, "and fails");
  ibv_qp_attr a{};
  ibv_qp_init_attr init{};
  expect(ibv_query_qp(qp, &a, IBV_QP_STATE, &init) == 0 && a.qp_state == IBV_QPS_SQE, "the state is SQE");
  a.qp_state = IBV_QPS_RTS;
  expect(ibv_modify_qp(qp, &a, IBV_QP_STATE) == 0, "which RTS ends");
}

// A group of this process's own, so that programs that run beside it are not in it.
ibv_gid own_group(bool v6) {
  ibv_gid gid{};
  if (v6) {
    gid.raw[0] = 0xFF;
    gid.raw[1] = 0x15;
    gid.raw[12] = 0x77;
    gid.raw[14] = static_cast<std::uint8_t>(getpid() >> 8);
    gid.raw[15] = static_cast<std::uint8_t>(getpid());
    return gid;
  }
  gid.raw[10] = gid.raw[11] = 0xFF;
  gid.raw[12] = 239;
  gid.raw[13] = 77;
  gid.raw[14] = static_cast<std::uint8_t>(getpid() >> 8);
  gid.raw[15] = static_cast<std::uint8_t>(getpid());
  return gid;
}

// a sends to the group: every queue pair attached gets a copy, the sender, too, and nobody else.
void groups(Program& p, ibv_qp* a, ibv_qp* b) {
  const ibv_gid gid = own_group(p.v6);
  ibv_ah_attr vector = vector_to(gid, p.gid_index);
  vector.grh.hop_limit = 1;
  ibv_ah* const ah = ibv_create_ah(p.pd, &vector);
  expect(ah != nullptr, "a group has an address handle");
  ibv_sge sge = p.piece(0, 14);
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.wr.ud = {ah, b->qp_num, kQkey};
  ibv_send_wr* bad = nullptr;
  expect(ibv_post_send(a, &wr, &bad) == EINVAL, "a group is everybody's");
  wr.wr.ud.remote_qpn = 0xFFFFFF;
  std::strcpy(p.memory.data(), "is anybody...");
  const auto send = [&](std::uint64_t copies_for_a, std::uint64_t copies_for_b) {
    expect(ibv_post_send(a, &wr, &bad) == 0, "a datagram to the group is posted");
    std::uint64_t got_a = 0;
    std::uint64_t got_b = 0;
    for (std::uint64_t i = 0; i < 1 + copies_for_a + copies_for_b; ++i) {
      const ibv_wc wc = p.next();
      expect(wc.status == IBV_WC_SUCCESS, "it leaves, and comes");
      if (wc.opcode != IBV_WC_RECV) continue;
      ++(wc.qp_num == a->qp_num ? got_a : got_b);
      expect(wc.src_qp == a->qp_num && wc.byte_len == kGrh + 14, "from its sender");
      const char* const at = p.memory.data() + wc.wr_id;
      expect(std::strcmp(at + kGrh, p.memory.data()) == 0, "unchanged");
      expect(std::memcmp(at + kGrh - 4, &gid.raw[12], 4) == 0, "and its header has the group");
    }
    expect(got_a == copies_for_a && got_b == copies_for_b, "by those who are attached");
    ibv_wc wc{};
    for (int i = 0; i < 10'000; ++i) expect(ibv_poll_cq(p.cq, 1, &wc) == 0, "and nobody else");
  };
  p.receive(a, 20480);
  p.receive(b, 24576);
  p.receive(b, 28672);
  send(0, 0);
  expect(ibv_attach_mcast(b, &gid, 0) == 0 && ibv_attach_mcast(b, &gid, 0) == 0,
         "b is attached, twice is once");
  send(0, 1);
  expect(ibv_attach_mcast(a, &gid, 0) == 0, "a is attached");
  send(1, 1);
  expect(ibv_destroy_qp(b) == EBUSY, "a queue pair does not go before it has left");
  expect(ibv_detach_mcast(b, &gid, 0) == 0 && ibv_detach_mcast(b, &gid, 0) == EINVAL, "b leaves, once");
  expect(ibv_detach_mcast(a, &gid, 0) == 0, "a leaves");
  p.receive(b, 20480);
  send(0, 0);
  expect(ibv_destroy_ah(ah) == 0, "the address handle goes");
}

}  // namespace

int main() {
  Program p;
  ibv_device_attr device{};
  expect(ibv_query_device(p.context, &device) == 0 && device.max_ah > 0, "address handles are announced");
  ibv_qp_init_attr init = p.plain(IBV_QPT_UD);
  ibv_qp* const a = ibv_create_qp(p.pd, &init);
  ibv_qp* const b = p.with_operations(IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
  expect(a != nullptr && b != nullptr, "UD queue pairs exist");
  Program::to_rts(a);
  Program::to_rts(b);
  refusals(p, a);

  ibv_ah_attr vector = vector_to(p.gid, p.gid_index);
  vector.grh.traffic_class = 0xB8;
  vector.grh.hop_limit = 17;
  ibv_ah* const ah = ibv_create_ah(p.pd, &vector);
  expect(ah != nullptr, "an address handle is made");
  too_long(p, a, ah, b);

  p.receive(a, 8192);
  p.receive(b, 16384);
  std::strcpy(p.memory.data(), "who is there?");
  ibv_sge sge = p.piece(0, 14);
  ibv_send_wr wr{};
  wr.wr_id = 7;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.wr.ud = {ah, b->qp_num, 0x80000000};  // "my own Q_Key"
  ibv_send_wr* bad = nullptr;
  expect(ibv_post_send(a, &wr, &bad) == 0, "a datagram is posted");
  ibv_wc wc = p.next();
  expect(wc.wr_id == 7 && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_SEND, "it left");
  wc = p.next();
  expect(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV && wc.qp_num == b->qp_num, "it arrived");
  expect(wc.src_qp == a->qp_num && (wc.wc_flags & IBV_WC_GRH) != 0 && wc.byte_len == kGrh + 14,
         "from its sender");
  expect(std::strcmp(p.memory.data() + 16384 + kGrh, "who is there?") == 0, "unchanged");

  // Back to whom the completion names, by the other interface.
  auto* const grh = reinterpret_cast<ibv_grh*>(p.memory.data() + 16384);
  ibv_ah_attr seen{};
  expect(wc.sl == (p.v6 ? 0x09 : 0x0A), "over UDP and its version of IP, as UCX asks");
  // Over IPv6 the 40 bytes are the packet's own header; IPv4's is their second half.
  const auto* const header = reinterpret_cast<const std::uint8_t*>(grh);
  if (p.v6) {
    expect(header[0] == 0x6B && (header[1] & 0xF0U) == 0x80U, "version 6, and the traffic class");
    expect(header[4] * 256U + header[5] == 8 + 12 + 8 + 16 + 4,
           "the length behind it: UDP, BTH, DETH, bytes, ICRC");
    expect(header[6] == 17 && header[7] == 17, "UDP, and the hop limit");
    expect(std::memcmp(header + 8, p.gid.raw, 16) == 0 && std::memcmp(header + 24, p.gid.raw, 16) == 0,
           "from us to us");
  } else {
    expect(header[20] == 0x45, "version 4");
  }
  expect(ibv_init_ah_from_wc(p.context, 1, &wc, grh, &seen) == 0, "the datagram's header is read");
  expect(seen.sl == 0 && seen.grh.sgid_index == p.gid_index,
         "no packet tells a service level; it came to us");
  expect(seen.grh.traffic_class == 0xB8 && seen.grh.hop_limit == 17,
         "traffic class and hop limit are the address's");
  ibv_ah* const back = ibv_create_ah_from_wc(p.pd, &wc, grh, 1);
  expect(back != nullptr, "the completion tells the way back");
  ibv_qp_ex* const x = ibv_qp_to_qp_ex(b);
  expect(x != nullptr, "it was created for ibv_wr_*");
  char answer[] = "I am";
  ibv_wr_start(x);
  x->wr_id = 8;
  x->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send_imm(x, 0x0A0B0C0D);
  ibv_wr_set_ud_addr(x, back, wc.src_qp, kQkey);
  ibv_wr_set_inline_data(x, answer, sizeof answer);
  expect(ibv_wr_complete(x) == 0, "the answer is posted");
  answer[0] = '?';
  wc = p.next();
  expect(wc.wr_id == 8 && wc.status == IBV_WC_SUCCESS, "the answer left");
  wc = p.next();
  expect(wc.status == IBV_WC_SUCCESS && wc.qp_num == a->qp_num && wc.src_qp == b->qp_num, "and arrived");
  expect((wc.wc_flags & IBV_WC_WITH_IMM) != 0 && wc.imm_data == 0x0A0B0C0D, "with its immediate");
  expect(std::strcmp(p.memory.data() + 8192 + kGrh, "I am") == 0, "as it was when posted");

  // By the loopback interface Linux has no way to IPv6 groups, and a NIC that has none refuses.
  const ibv_gid group = own_group(p.v6);
  const int joined = ibv_attach_mcast(a, &group, 0);
  if (joined == 0) expect(ibv_detach_mcast(a, &group, 0) == 0, "who joined leaves");
  if (p.v6 && joined == EOPNOTSUPP)
    std::puts("datagrams: no way to IPv6 groups by this interface");
  else
    groups(p, a, b);

  expect(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0, "queue pairs go");
  expect(ibv_dereg_mr(p.mr) == 0 && ibv_destroy_cq(p.cq) == 0, "memory and queue go");
  expect(ibv_dealloc_pd(p.pd) == EBUSY, "a protection domain with address handles stays");
  expect(ibv_destroy_ah(ah) == 0 && ibv_destroy_ah(back) == 0, "they go");
  expect(ibv_dealloc_pd(p.pd) == 0 && ibv_close_device(p.context) == 0, "then all goes");
  std::puts("datagrams: all as it should be");
  return 0;
}
