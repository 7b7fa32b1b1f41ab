#include "live/packet_io/xdp_program.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "live/packet_io/ethtool.h"

namespace weft::live {
namespace {

constexpr std::uint32_t kFrags = 1U << 5U;  // BPF_F_XDP_HAS_FRAGS: frames may come in several pieces
constexpr std::int32_t kLooksAt = kFrameHeaders + 8;  // up to the queue pair's number

long bpf(int command, bpf_attr& attr) { return syscall(SYS_bpf, command, &attr, sizeof attr); }

// Instructions whose tests all lead to the same end.
struct Assembler {
  std::vector<bpf_insn> code;
  std::vector<std::size_t> passes;  // tests that lead to it

  void add(std::uint8_t op, std::uint8_t to, std::uint8_t from, std::int16_t offset, std::int32_t k) {
    bpf_insn i{};
    i.code = op;
    i.dst_reg = to & 0xFU;
    i.src_reg = from & 0xFU;
    i.off = offset;
    i.imm = k;
    code.push_back(i);
  }
  // Register 4 from the frame, which register 2 points to.
  void load(std::uint8_t size, std::int16_t at) {
    add(BPF_LDX | BPF_MEM | size, BPF_REG_4, BPF_REG_2, at, 0);
  }
  void pass_if(std::uint8_t test, std::uint32_t k) {
    passes.push_back(code.size());
    add(BPF_JMP32 | BPF_K | test, BPF_REG_4, 0, 0, static_cast<std::int32_t>(k));
  }
  // The value as it lies in memory.
  void only_if(std::uint8_t size, std::int16_t at, std::uint32_t k) {
    load(size, at);
    pass_if(BPF_JNE, k);
  }
  void mask(std::uint32_t bits) {
    add(BPF_ALU | BPF_AND | BPF_K, BPF_REG_4, 0, 0, static_cast<std::int32_t>(bits));
  }
};

template <class T>
T word_at(const std::uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

void only_wanted(Assembler& a, const Wanted& wanted, const MacAddress& address) {
  constexpr std::int16_t kIp = kEthernetBytes;
  constexpr std::int16_t kUdp = kIp + wire::kIpv4Bytes;
  constexpr std::int16_t kBth = kFrameHeaders;
  // Its end is behind all that is looked at.
  a.add(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_5, BPF_REG_2, 0, 0);
  a.add(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_5, 0, 0, kLooksAt);
  a.passes.push_back(a.code.size());
  a.add(BPF_JMP | BPF_JGT | BPF_X, BPF_REG_5, BPF_REG_3, 0, 0);
  a.only_if(BPF_W, 0, word_at<std::uint32_t>(address.data()));
  a.only_if(BPF_H, 4, word_at<std::uint16_t>(address.data() + 4));
  a.only_if(BPF_H, 12, htons(kEthertypeIpv4));
  a.only_if(BPF_B, kIp, 0x45);
  a.load(BPF_H, kIp + 6);
  a.mask(htons(0x3FFF));
  a.pass_if(BPF_JNE, 0);  // a fragment
  a.only_if(BPF_B, kIp + 9, wire::kUdpProtocol);
  a.only_if(BPF_W, kIp + 16, word_at<std::uint32_t>(&wanted.address.bytes[12]));
  a.only_if(BPF_H, kUdp + 2, htons(wanted.port));
  if (wanted.slot != 0) return a.only_if(BPF_B, kBth + 5, wanted.slot);
  a.load(BPF_W, kBth + 4);
  a.mask(htonl(0x00FF'FFFF));
  a.pass_if(BPF_JEQ, 0);
  a.pass_if(BPF_JEQ, htonl(1));
  a.pass_if(BPF_JEQ, htonl(0x00FF'FFFF));
}

std::vector<bpf_insn> program_for(int map, const std::optional<Wanted>& wanted, const MacAddress& address) {
  Assembler a;
  a.add(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_1, 0, 0);   // xdp_md.data
  a.add(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_3, BPF_REG_1, 4, 0);   // xdp_md.data_end
  a.add(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_6, BPF_REG_1, 16, 0);  // xdp_md.rx_queue_index
  if (wanted) only_wanted(a, *wanted, address);
  a.add(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map);
  a.add(0, 0, 0, 0, 0);
  a.add(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_6, 0, 0);
  a.add(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, XDP_PASS);  // where the map has no socket
  a.add(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map);
  a.add(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
  if (a.passes.empty()) return a.code;  // the kernel takes no instructions that nothing leads to
  const std::size_t pass = a.code.size();
  a.add(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, XDP_PASS);
  a.add(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
  for (const std::size_t i : a.passes) a.code[i].off = static_cast<std::int16_t>(pass - i - 1);
  return a.code;
}

tl::unexpected<Error> refused(const char* step) {
  const int number = errno;
  if (number == EPERM || number == EACCES)
    return tl::unexpected(Error{std::string("the kernel lets this process attach no XDP program (") + step +
                                    "): that takes CAP_BPF and CAP_NET_ADMIN outside of any container's user "
                                    "namespace; start weft as "
                                    "root, or take --wire packet",
                                number});
  if (number == EBUSY || number == EEXIST)
    return tl::unexpected(Error{
        "the interface already has an XDP program (`ip link show` names it); end what put it there, or take "
        "--wire packet",
        number});
  return tl::unexpected(Error{std::string("the kernel refuses an XDP program (") + step +
                                  "): " + std::strerror(number) + "; take --wire packet",
                              number});
}

}  // namespace

Result<std::unique_ptr<XdpProgram>> XdpProgram::attach(std::uint32_t interface,
                                                       std::span<const XdpQueue> queues,
                                                       const std::optional<Wanted>& wanted,
                                                       const MacAddress& address) {
  std::unique_ptr<XdpProgram> p(new XdpProgram);
  bpf_attr attr{};
  attr.map_type = BPF_MAP_TYPE_XSKMAP;
  attr.key_size = attr.value_size = sizeof(std::uint32_t);
  attr.max_entries = kMostQueues;
  p->map_ = static_cast<int>(bpf(BPF_MAP_CREATE, attr));
  if (p->map_ < 0) return refused("map");
  for (const XdpQueue& q : queues) {
    attr = {};
    attr.map_fd = static_cast<std::uint32_t>(p->map_);
    attr.key = reinterpret_cast<std::uintptr_t>(&q.queue);
    attr.value = reinterpret_cast<std::uintptr_t>(&q.socket);
    if (bpf(BPF_MAP_UPDATE_ELEM, attr) != 0) return refused("map");
  }
  const std::vector<bpf_insn> code = program_for(p->map_, wanted, address);
  for (const std::uint32_t flags : {kFrags, 0U}) {  // older kernels do not know the flag
    attr = {};
    attr.prog_type = BPF_PROG_TYPE_XDP;
    attr.insns = reinterpret_cast<std::uintptr_t>(code.data());
    attr.insn_cnt = static_cast<std::uint32_t>(code.size());
    attr.license = reinterpret_cast<std::uintptr_t>("Apache-2.0");
    attr.prog_flags = flags;
    p->program_ = static_cast<int>(bpf(BPF_PROG_LOAD, attr));
    if (p->program_ >= 0 || errno != EINVAL) break;
  }
  if (p->program_ < 0) return refused("program");
  for (const std::uint32_t mode : {std::uint32_t{XDP_FLAGS_DRV_MODE}, std::uint32_t{XDP_FLAGS_SKB_MODE}}) {
    attr = {};
    attr.link_create.prog_fd = static_cast<std::uint32_t>(p->program_);
    attr.link_create.target_ifindex = interface;
    attr.link_create.attach_type = BPF_XDP;
    attr.link_create.flags = mode;
    p->link_ = static_cast<int>(bpf(BPF_LINK_CREATE, attr));
    p->native_ = mode == XDP_FLAGS_DRV_MODE;
    if (p->link_ >= 0 || errno == EBUSY || errno == EEXIST || errno == EPERM) break;
  }
  if (p->link_ < 0) return refused("attach");
  return p;
}

XdpProgram::~XdpProgram() {
  for (const int fd : {link_, program_, map_}) {
    if (fd >= 0) close(fd);
  }
}

void XdpProgram::abandon(int nowhere) {
  for (const int fd : {link_, program_, map_}) dup3(nowhere, fd, O_CLOEXEC);
}

}  // namespace weft::live
