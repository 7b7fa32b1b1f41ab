// One end of a connection, at the end of a pipe: a verbs program that does what its input says, a line for
// each command, and answers each with a line. A test in Python (ends.py) holds two of them, brings a fault
// over one, and reads what that program sees. It knows <infiniband/verbs.h> and the manual pages, and nothing
// of weft; where there is hardware it runs over that.
//
//   open CQ_ENTRIES              the device, a domain, a queue, a region of 64 KiB, a queue pair
//   connect QPN GID KEY ADDRESS PSN PEERS_PSN TIMEOUT RETRIES RNR_RETRIES
//   receive N                    posts N receives
//   post write|read|send N       posts N signalled requests of 32 bytes: from our byte 0 to the peer's 4096
//   poll MS                      the next completion
//   fill AT BYTE LENGTH          of our region
//   look AT BYTE LENGTH          whether it is all that byte
//   event MS                     the next asynchronous event
//   state                        of the queue pair, as ibv_query_qp says it
//   unmap                        gives our region's memory back to the system, registered as it is
//   channel                      makes a completion channel, and lets it go
//   close                        all of it, in order
//
// Every answer says how it went in its first word; a call that failed is named with its errno.
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
constexpr std::size_t kBytes = 65536;
constexpr std::size_t kTarget = 4096;
constexpr std::uint32_t kLength = 32;

struct End {
  std::uint8_t* memory = nullptr;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_qp* qp = nullptr;
  ibv_gid gid{};
  std::uint64_t posted = 0;
  std::uint64_t peers_address = 0;
  std::uint32_t peers_key = 0;

  std::uint64_t at(std::size_t offset) const { return reinterpret_cast<std::uint64_t>(memory + offset); }
};

std::string failed(const char* call, int error) {
  return std::string("failed ") + call + " errno " + std::to_string(error) + " " + std::strerror(error);
}

std::string text_of(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(AF_INET6, gid.raw, text, sizeof text);
}

std::string open(End& e, std::istream& in) {
  int entries = 64;
  in >> entries;
  ibv_device** const list = ibv_get_device_list(nullptr);
  if (list == nullptr || list[0] == nullptr) return failed("ibv_get_device_list", errno);
  e.context = ibv_open_device(list[0]);
  const int why = errno;
  ibv_free_device_list(list);
  if (e.context == nullptr) return failed("ibv_open_device", why);
  e.pd = ibv_alloc_pd(e.context);
  e.cq = ibv_create_cq(e.context, entries, nullptr, nullptr, 0);
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return failed("mmap", errno);
  e.memory = static_cast<std::uint8_t*>(memory);
  e.mr = ibv_reg_mr(e.pd, e.memory, kBytes, int{kAll});
  if (e.mr == nullptr) return failed("ibv_reg_mr", errno);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = e.cq;
  init.cap = {64, 64, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  e.qp = ibv_create_qp(e.pd, &init);
  if (e.qp == nullptr) return failed("ibv_create_qp", errno);
  if (ibv_query_gid(e.context, 1, 0, &e.gid) != 0) return failed("ibv_query_gid", errno);
  std::ostringstream out;
  out << "open " << e.qp->qp_num << ' ' << text_of(e.gid) << ' ' << e.mr->rkey << ' ' << e.at(0);
  return out.str();
}

std::string connect(End& e, std::istream& in) {
  ibv_qp_attr a{};
  std::string host;
  unsigned psn = 0, peers_psn = 0, timeout = 0, retries = 0, rnr_retries = 0, qpn = 0;
  in >> qpn >> host >> e.peers_key >> e.peers_address >> psn >> peers_psn >> timeout >> retries >>
      rnr_retries;
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = kAll;
  int error = ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0) return failed("INIT", error);
  a.qp_state = IBV_QPS_RTR;
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  inet_pton(AF_INET6, host.c_str(), a.ah_attr.grh.dgid.raw);
  a.path_mtu = IBV_MTU_1024;
  a.dest_qp_num = qpn;
  a.rq_psn = peers_psn;
  a.max_dest_rd_atomic = 4;
  a.min_rnr_timer = 14;  // 1 ms
  error = ibv_modify_qp(e.qp, &a,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0) return failed("RTR", error);
  a.qp_state = IBV_QPS_RTS;
  a.sq_psn = psn;
  a.timeout = static_cast<std::uint8_t>(timeout);
  a.retry_cnt = static_cast<std::uint8_t>(retries);
  a.rnr_retry = static_cast<std::uint8_t>(rnr_retries);
  a.max_rd_atomic = 4;
  error = ibv_modify_qp(e.qp, &a,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC);
  return error != 0 ? failed("RTS", error) : "connected";
}

std::string receive(End& e, std::istream& in) {
  int count = 1;
  in >> count;
  for (int i = 0; i < count; ++i) {
    ibv_sge into{e.at(kTarget), kLength, e.mr->lkey};
    ibv_recv_wr wr{e.posted++, nullptr, &into, 1};
    ibv_recv_wr* bad = nullptr;
    if (const int error = ibv_post_recv(e.qp, &wr, &bad); error != 0) return failed("ibv_post_recv", error);
  }
  return "posted";
}

std::string post(End& e, std::istream& in) {
  std::string what;
  int count = 1;
  in >> what >> count;
  for (int i = 0; i < count; ++i) {
    ibv_sge from{e.at(0), kLength, e.mr->lkey};
    ibv_send_wr wr{};
    wr.wr_id = e.posted++;
    wr.sg_list = &from;
    wr.num_sge = 1;
    wr.opcode = what == "write" ? IBV_WR_RDMA_WRITE : what == "read" ? IBV_WR_RDMA_READ : IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {e.peers_address + kTarget, e.peers_key};
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(e.qp, &wr, &bad); error != 0) return failed("ibv_post_send", error);
  }
  return "posted";
}

// It naps between its looks: most programs do something else, too.
std::string poll(End& e, std::istream& in) {
  long most = 0;
  in >> most;
  const auto since = Clock::now();
  ibv_wc wc{};
  for (;;) {
    const int n = ibv_poll_cq(e.cq, 1, &wc);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - since).count();
    if (n < 0) return "overrun";
    if (n == 1) return std::string("completed ") + ibv_wc_status_str(wc.status);
    if (took > most) return "nothing";
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

std::string fill(End& e, std::istream& in) {
  std::size_t at = 0, length = 0;
  int byte = 0;
  in >> at >> byte >> length;
  std::memset(e.memory + at, byte, length);
  return "filled";
}

std::string look(const End& e, std::istream& in) {
  std::size_t at = 0, length = 0;
  int byte = 0;
  in >> at >> byte >> length;
  for (std::size_t i = at; i < at + length; ++i) {
    if (const volatile std::uint8_t* const p = e.memory + i; *p != byte)
      return "other " + std::to_string(int{*p}) + " at " + std::to_string(i);
  }
  return "same";
}

std::string event(const End& e, std::istream& in) {
  int most = 0;
  in >> most;
  pollfd ready{e.context->async_fd, POLLIN, 0};
  if (::poll(&ready, 1, most) != 1) return "nothing";
  ibv_async_event what{};
  if (ibv_get_async_event(e.context, &what) != 0) return failed("ibv_get_async_event", errno);
  ibv_ack_async_event(&what);
  return std::string("told ") + ibv_event_type_str(what.event_type);
}

std::string state(const End& e) {
  constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  ibv_qp_attr a{};
  ibv_qp_init_attr init{};
  if (const int error = ibv_query_qp(e.qp, &a, IBV_QP_STATE, &init); error != 0)
    return failed("ibv_query_qp", error);
  return kNames[a.qp_state];
}

// The range stays reserved, without any right, so that nothing else is mapped there meanwhile.
std::string unmap(const End& e) {
  void* const at =
      mmap(e.memory, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return at != e.memory ? failed("mmap", errno) : "unmapped";
}

std::string channel(const End& e) {
  ibv_comp_channel* const made = ibv_create_comp_channel(e.context);
  if (made == nullptr) return failed("ibv_create_comp_channel", errno);
  const int error = ibv_destroy_comp_channel(made);
  return error != 0 ? failed("ibv_destroy_comp_channel", error) : "made";
}

std::string close(End& e) {
  int error = ibv_destroy_qp(e.qp);
  if (error == 0) error = ibv_destroy_cq(e.cq);
  if (error == 0) error = ibv_dereg_mr(e.mr);
  if (error == 0) error = ibv_dealloc_pd(e.pd);
  if (error == 0) error = ibv_close_device(e.context);
  munmap(e.memory, kBytes);
  return error != 0 ? failed("closing", error) : "closed";
}

std::string answer(End& e, std::istream& in) {
  std::string command;
  in >> command;
  if (command == "open") return open(e, in);
  if (command == "connect") return connect(e, in);
  if (command == "receive") return receive(e, in);
  if (command == "post") return post(e, in);
  if (command == "poll") return poll(e, in);
  if (command == "fill") return fill(e, in);
  if (command == "look") return look(e, in);
  if (command == "event") return event(e, in);
  if (command == "state") return state(e);
  if (command == "unmap") return unmap(e);
  if (command == "channel") return channel(e);
  if (command == "close") return close(e);
  return "failed: there is no command " + command;
}

}  // namespace

int main() {
  End end;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    std::cout << answer(end, in) << std::endl;
  }
  return 0;
}
