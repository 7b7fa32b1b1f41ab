// What a live box is measured against: frames from one interface to the other, over the same Ports, and
// nothing else. Started by `./dev bench wan`; ends with SIGTERM and prints how many frames it received.
//
//   weft-plain-forwarder NEAR FAR
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <vector>

#include "wan/box/driving.h"
#include "wan/box/packet_port.h"

int main(int argc, char** argv) {
  using namespace weft;
  if (argc != 3) {
    std::fprintf(stderr, "weft-plain-forwarder NEAR FAR\n");
    return 2;
  }
  auto near = wan::PacketPort::open("NEAR", argv[1]);
  auto far = wan::PacketPort::open("FAR", argv[2]);
  auto driving = wan::Driving::prepare();
  if (!near || !far || !driving) {
    std::fprintf(stderr, "weft-plain-forwarder: %s\n",
                 (!near  ? near.error()
                  : !far ? far.error()
                         : driving.error())
                     .message.c_str());
    return 2;
  }
  std::vector<wan::TxFrame> batch;
  const auto forward = [&](wan::Port& from, wan::Port& to) {
    batch.clear();
    for (const wan::RxFrame& f : from.receive()) batch.push_back({f.data, f.bytes, f.offload});
    if (!batch.empty()) to.send(batch);
    from.done();
    return !batch.empty();
  };
  wan::Turns t;
  t.descriptors = {(*near)->descriptor(), (*far)->descriptor()};
  t.turn = [&](Time) {
    const bool there = forward(**near, **far);
    return forward(**far, **near) || there;
  };
  t.next_due = [](Time) { return kNever; };
  t.tick = [](Time) { return true; };
  t.signal = [](Time, int) { return false; };
  (*driving)->run(t);
  std::printf("%" PRIu64 "\n", (*near)->counters().rx_frames + (*far)->counters().rx_frames);
  return 0;
}
