#include "live/wires/steering.h"

#include <sys/socket.h>

namespace weft::live {
namespace {

constexpr std::uint32_t kNobody = 0xFFFFFFFF;  // larger than any index: the kernel goes by its hash

sock_filter load_byte(std::uint32_t offset) { return BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offset); }
// Goes on with the next instruction if the byte is this value, or else behind it.
sock_filter only_if(std::uint32_t value) { return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1); }
sock_filter answer(std::uint32_t index) { return BPF_STMT(BPF_RET | BPF_K, index); }

}  // namespace

std::vector<sock_filter> steering_program(std::span<const Place> places) {
  std::vector<sock_filter> program = {
      load_byte(0),           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kProbeOpcode, 0, 2),
      load_byte(1),           BPF_STMT(BPF_RET | BPF_A, 0),
      load_byte(kSlotOffset),
  };
  for (const Place& p : places) {
    program.push_back(only_if(p.slot));
    program.push_back(answer(p.index));
  }
  for (const sock_filter& i : {load_byte(0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kCheckOpcode, 0, 2),
                               load_byte(1), BPF_STMT(BPF_RET | BPF_A, 0), answer(kNobody)}) {
    program.push_back(i);
  }
  return program;
}

bool attach_steering(int fd, std::span<const Place> places) {
  std::vector<sock_filter> program = steering_program(places);
  const sock_fprog code{static_cast<unsigned short>(program.size()), program.data()};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &code, sizeof code) == 0;
}

void detach_steering(int fd) {
  const int none = 0;
  setsockopt(fd, SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, &none, sizeof none);
}

}  // namespace weft::live
