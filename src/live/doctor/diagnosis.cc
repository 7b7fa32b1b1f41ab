#include "live/doctor/diagnosis.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "live/engine/sizing.h"

namespace weft::live {
namespace {

// With more than this the credit of a path is as large as it becomes (sizing.h).
constexpr std::uint64_t kEnoughBuffer = 2 * kMostCredit;
constexpr std::uint64_t kFewDescriptors = 256;
// Those that user space reads without a system call.
constexpr std::array<std::string_view, 5> kFastClocks{"tsc", "kvm-clock", "arch_sys_counter",
                                                      "hyperv_clocksource_tsc_page", "riscv_clocksource"};
constexpr std::uint32_t kLargestPacket = 4096;

std::string kilobytes(std::uint64_t n) { return std::to_string(n / 1024) + " KiB"; }

Symptom good(std::string what, std::string found) {
  return {std::move(what), Health::kGood, std::move(found), "", ""};
}

Symptom buffer(const Host& h) {
  const std::uint64_t credit = std::min(h.receive_buffer / 2, kMostCredit);
  const std::string found = "the system grants " + kilobytes(h.receive_buffer) + " for received packets";
  if (h.receive_buffer >= kEnoughBuffer) return good("receive buffer", found);
  // One peer's share in a round trip of a millisecond, in tenths of Gb/s.
  const std::uint64_t tenths = credit * 8 / 100'000;
  return {
      "receive buffer", Health::kCosts, found,
      "sysctl -w net.core.rmem_max=33554432 (on the host, not in a container), or run it with CAP_NET_ADMIN",
      "a peer may have " + kilobytes(credit) + " under way instead of " + kilobytes(kMostCredit) +
          ": over a round trip of 1 ms that is " + std::to_string(tenths / 10) + "." +
          std::to_string(tenths % 10) + " Gb/s"};
}

Symptom packets(const Host& h) {
  const std::uint32_t mtu = verbs_mtu(h.mtu, h.ip_header);
  const std::string found = "interface " + h.interface + " with MTU " + std::to_string(h.mtu) +
                            " carries packets of " + std::to_string(mtu) + " bytes";
  if (mtu >= kLargestPacket) return good("packet size", found);
  std::uint32_t needed = h.mtu;
  while (verbs_mtu(needed, h.ip_header) < kLargestPacket) ++needed;
  return {"packet size", Health::kCosts, found,
          "where the whole network allows it: ip link set " + h.interface + " mtu " + std::to_string(needed) +
              " or more, at both ends",
          "a large message takes " + std::to_string(kLargestPacket / mtu) + " times as many packets"};
}

Symptom trains(const Host& h) {
  if (!h.trains) {
    return {"trains", Health::kCosts, "this kernel sends packets one by one",
            "a kernel from 4.18 on, and nothing that hides UDP_SEGMENT from the process",
            "each packet is a passage through the kernel of its own"};
  }
  if (h.loopback || h.cuts_late.value_or(true))
    return good("trains", "packets leave in trains, one passage through the kernel each");
  return {"trains", Health::kCosts,
          "interface " + h.interface + " has trains cut by the kernel (tx-udp-segmentation is off)",
          "ethtool -K " + h.interface + " tx-udp-segmentation on, or --wire xdp at the receiving end",
          "a third of the packet rate is left over a virtual Ethernet, about half of it with xdp"};
}

Symptom processors(const Host& h) {
  std::string found = std::to_string(h.processors) + (h.processors == 1 ? " processor" : " processors");
  if (h.processor_quota && *h.processor_quota < 1.5) {
    const auto percent = static_cast<std::uint64_t>(*h.processor_quota * 100 + 0.5);
    return {"processors", Health::kCosts,
            found + ", and a control group that allows " + std::to_string(percent) + " % of one",
            "give the container two processors' time (docker run --cpus 2)",
            "a program that spins on its completion queue uses up its time, and is then stopped for tens of "
            "milliseconds, in which peers send again"};
  }
  if (h.processors == 1) {
    return {"processors", Health::kCosts, std::move(found),
            "let it use two (taskset, docker run --cpuset-cpus)",
            "program, background thread and peers on this host wait for each other"};
  }
  return good("processors", std::move(found));
}

Symptom clock(const Host& h) {
  if (h.clock_source.empty()) return good("clock", "the kernel does not tell its source");
  const std::string found = "the kernel reads " + h.clock_source;
  if (std::find(kFastClocks.begin(), kFastClocks.end(), h.clock_source) != kFastClocks.end())
    return good("clock", found);
  return {"clock", Health::kCosts, found,
          "a clock source that programs read by themselves, such as tsc: see "
          "/sys/devices/system/clocksource/clocksource0/available_clocksource",
          "the time is asked for with every poll, and each question is a system call"};
}

Symptom descriptors(const Host& h) {
  const std::string found = std::to_string(h.descriptors) + " open files allowed";
  if (h.descriptors >= kFewDescriptors) return good("open files", found);
  return {"open files", Health::kCosts, found, "ulimit -n 1024",
          "a device, a completion channel and an event channel of rdma_cm take some each, and then fail to "
          "open"};
}

Symptom shared_memory(const Host& h) {
  if (h.shared_memory) return good("shared memory", "/dev/shm takes files");
  return {"shared memory", Health::kCosts, "/dev/shm takes no files", "mount a tmpfs on /dev/shm",
          "`weft stat` sees nothing of this process"};
}

}  // namespace

std::vector<Symptom> diagnose(const Host& h) {
  std::vector<Symptom> all;
  if (!h.wire_refused.empty()) {
    // The sentence says what to do.
    all.push_back({"wire", Health::kBroken, "it does not open", h.wire_refused, "no program runs over it"});
  } else {
    all.push_back(good("wire", "it opens" + (h.interface.empty() ? "" : " on " + h.interface)));
    all.push_back(buffer(h));
    all.push_back(packets(h));
    all.push_back(trains(h));
  }
  all.push_back(processors(h));
  all.push_back(clock(h));
  all.push_back(descriptors(h));
  all.push_back(shared_memory(h));
  return all;
}

Health worst(const std::vector<Symptom>& symptoms) {
  Health h = Health::kGood;
  for (const Symptom& s : symptoms) h = std::max(h, s.health);
  return h;
}

}  // namespace weft::live
