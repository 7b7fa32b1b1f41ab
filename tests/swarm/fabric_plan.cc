#include "tests/swarm/fabric_plan.h"

#include <algorithm>
#include <initializer_list>

#include "core/base/prng.h"
#include "sim/world/words.h"

namespace weft::swarm {
namespace {

constexpr std::uint64_t kPackets = 3000;  // about so many full ones in a world

class Plan {
 public:
  explicit Plan(std::uint64_t seed) : random_(seed), seed_(seed) {}

  std::string text() {
    // Drawn in the order in which they depend on each other, whatever the order in the file.
    mtu_ = pick({256, 512, 1000, 1024, 2048, 4096});
    const std::string topology = draw_topology();
    const std::string network = draw_network();
    const std::string switches = draw_switch();
    const std::string transport = draw_transport();
    const std::string work = draw_work() + draw_failures() + draw_nic() + draw_boxes();
    return "seed = " + std::to_string(seed_) + "\nhosts = " + std::to_string(hosts_) +
           "\nlimit = \"60s\"\ncheck = true\nbytes = true\n" + topology + network + switches + transport +
           work;
  }

 private:
  static std::string line(const char* name, const std::string& value) {
    return std::string(name) + " = \"" + value + "\"\n";
  }
  static std::string line(const char* name, std::uint64_t value) { return line(name, std::to_string(value)); }
  static std::string ppm(std::uint64_t millionths) {
    const std::string digits = std::to_string(1'000'000 + millionths % 1'000'000).substr(1);
    return digits.substr(0, 2) + "." + digits.substr(2) + "%";
  }
  std::string pick(std::initializer_list<const char*> words) {
    return *(words.begin() + random_.below(words.size()));
  }
  std::uint64_t pick(std::initializer_list<std::uint64_t> numbers) {
    return *(numbers.begin() + random_.below(numbers.size()));
  }
  bool one_in(std::uint64_t n) { return random_.below(n) == 0; }
  template <class Table>
  std::string word_of(const Table& table) {
    return table[random_.below(table.size())].word;
  }

  std::string draw_topology() {
    std::string t = "[topology]\n";
    const std::string kind = pick({"single", "single", "dumbbell", "fat-tree", "fat-tree", "srnic"});
    hosts_ = kind == "single" || kind == "dumbbell" ? random_.between(2, 12) : 16;
    gigabits_ = pick({10, 25, 40, 100});
    between_switches_ = kind == "dumbbell" ? 1 : kind == "fat-tree" ? 32 : 0;
    edges_ = kind == "dumbbell" ? 2 : kind == "fat-tree" ? 8 : 1;
    if (kind == "dumbbell") hosts_ += hosts_ % 2;
    kind_ = kind;
    const std::string routing = word_of(sim::kRoutings);
    may_have_boxes_ = routing != "spray" && kind != "srnic";
    t += line("kind", kind) + line("routing", routing);
    if (kind != "single" && one_in(3))
      t += line("core_rate", std::to_string(gigabits_ * pick({1, 2, 4}) / 2) + "Gbps");
    return t;
  }

  std::string draw_network() {
    std::string t = "[network]\n";
    t += line("rate", std::to_string(gigabits_) + "Gbps") +
         line("delay", pick({"100ns", "500ns", "1us", "3us"}));
    if (one_in(3)) t += line("data_class", random_.below(8)) + line("control_class", random_.below(8));
    if (one_in(2)) t += line("reconverge", pick({"0us", "20us", "300us", "3ms"}));
    if (!one_in(2)) return t;
    t += line("loss", ppm(random_.below(20'000)));
    if (one_in(2)) t += line("duplicate", ppm(random_.below(10'000)));
    if (one_in(2)) t += line("corrupt", ppm(random_.below(10'000)));
    if (one_in(2))
      t += line("reorder", ppm(random_.below(30'000))) + line("reorder_by", pick({"300ns", "3us", "40us"}));
    if (one_in(4)) t += line("jitter", pick({"100ns", "2us"}));
    if (one_in(4)) t += line("mark", ppm(random_.below(50'000)));
    return t;
  }

  std::string draw_switch() {
    std::string t = "[switch]\n" + line("kind", word_of(sim::kSwitchKinds));
    switch (random_.below(6)) {
      case 0:
      case 1:  // nothing may be dropped
        t += "pfc = true\n";
        if (one_in(2)) t += line("xoff", random_.between(1, 30) * 1000);
        break;
      case 2:
        t += line("queue", random_.between(6, 60) * 1000);
        break;
      case 3:
        t += line("buffer", random_.between(12, 200) * 1000) + line("alpha", pick({"1/8", "1/2", "1", "4"}));
        break;
      case 4:  // nothing may be dropped, either
        t += "credits = true\n";
        may_have_boxes_ = false;
        if (one_in(2)) t += line("buffer", (mtu_ + 200) * 34 * random_.between(1, 4));
        break;
      default:  // no bound
        break;
    }
    const std::uint64_t low = random_.between(2, 50) * 1000;
    if (one_in(2))
      t += line("ecn", "step") + line("ecn_low", low);
    else if (one_in(2))
      t += line("ecn", "red") + line("ecn_low", low) + line("ecn_high", low * random_.between(2, 4)) +
           line("ecn_probability", ppm(random_.between(1'000, 999'999)));
    return t;
  }

  std::string draw_transport() {
    std::string t = "[transport]\n";
    auto modes = sim::modes();
    std::erase_if(modes, [](const auto& m) { return m.value.tcp; });  // it has observers of its own
    const std::string mode = word_of(modes);
    t += line("mode", mode) + line("mtu", mtu_);
    if (one_in(2)) t += line("controller", word_of(sim::controller_words()));
    auto variants = sim::variants();
    std::erase_if(variants, [&](const auto& v) {
      return v.value != nullptr && wire::mode_name(v.value->mode) != mode;
    });
    const std::string recovery = one_in(2) ? word_of(variants) : std::string("own");
    t += line("recovery", recovery);
    const std::uint64_t cap = one_in(3) ? pick({1, 2, 8, 40}) : 0;
    if (cap != 0) t += line("bdp_cap", cap);
    if (mode != "roce" && recovery == "own" && one_in(3))
      t += line("nack_threshold", random_.between(1, cap == 0 ? 4 : cap));
    if (one_in(3)) t += line("roce_window", pick({1, 4, 32, 200}));
    if (one_in(4)) t += line("loss_blocks", pick({0, 1, 4}));
    if (one_in(3))
      t += line("rto_low", pick({"20us", "50us", "300us"})) + line("rto_high", pick({"300us", "1ms"}));
    t += line("timeout", random_.between(8, 11));
    return t;
  }

  std::string draw_size() {
    switch (random_.below(4)) {
      case 0:
        return std::to_string(random_.between(1, 64));
      case 1:  // about a multiple of the MTU
        return std::to_string(mtu_ * random_.between(1, 8) + random_.between(0, 2) - 1);
      default:
        return std::to_string(random_.between(1, 30 * mtu_));
    }
  }

  std::string draw_work() {
    std::string t;
    if (!one_in(3)) t += draw_flows();
    if (t.empty() || one_in(3)) t += draw_traffic();
    return t;
  }

  // In a part of the worlds the hosts have NICs with an inside: small caches and few turns, so that
  // everything is fought for.
  std::string draw_nic() {
    if (!one_in(3)) return {};
    const std::string design =
        pick({"srnic", "irn-nic", "csrna-fcfs", "csrna-nb", "csrna-lathiding", "cx5-like", "cx6-like"});
    std::string set = "scheduler.turns=" + std::to_string(random_.between(1, 32)) +
                      ", scheduler.wqes=" + std::to_string(random_.between(1, 8));
    if (design.starts_with("c")) {
      set += ", context.cache=" + std::to_string(random_.between(1, 8)) +
             ", context.replacement=" + pick({"lru", "random"}) +
             ", context.ooo_capacity=" + std::to_string(random_.between(1, 8));
    }
    if (one_in(3)) set += ", buffers.receive=" + pick({"16KiB", "64KiB"});
    if (one_in(4)) set += ", translation.cache=" + std::to_string(random_.between(1, 4));
    if (one_in(4)) set += ", wqe.shared_receive_cache=" + std::to_string(random_.between(1, 4));
    if (one_in(4)) set += ", wqe.send_cache=" + std::to_string(random_.between(1, 8));
    if (design == "srnic" && one_in(2)) set += ", recovery.range_exit=false, recovery.cpu_time=2us";
    return "[nic]\n" + line("design", design) + line("set", set);
  }

  std::string draw_failures() {
    std::string t;
    for (std::uint64_t n = one_in(3) ? random_.between(1, 2) : 0; n != 0; --n) {
      const std::uint64_t at = random_.below(200);
      t += "[[failure]]\n" + line("at", std::to_string(at) + "us");
      if (!one_in(4))
        t += line("repair", std::to_string(at + random_.between(1, one_in(2) ? 100 : 5000)) + "us");
      if (between_switches_ != 0 && !one_in(3)) {
        t += line("links", random_.between(1, std::min<std::uint64_t>(between_switches_, 3)));
      } else {
        const std::uint64_t host = random_.below(hosts_);
        std::string ends = "h";
        ends.append(std::to_string(host)).append("-s").append(std::to_string(host * edges_ / hosts_));
        t += line("link", ends);
      }
    }
    return t;
  }

  // In a part of the worlds a pair of boxes stands around a link or at two hosts, on a line that may be long
  // and bad. From numbers of its own, so that the other worlds stay what they were.
  std::string draw_boxes() {
    random_ = Prng(seed_).fork(0x626F'78);
    if (!may_have_boxes_ || !one_in(3)) return {};
    const std::uint64_t a = random_.below(hosts_);
    const std::uint64_t b = (a + random_.between(1, hosts_ - 1)) % hosts_;
    const auto link_of = [&](std::uint64_t host) {
      std::string ends = "h";
      return ends.append(std::to_string(host)).append("-s").append(std::to_string(host * edges_ / hosts_));
    };
    const bool around = kind_ == "dumbbell" && !one_in(4);
    std::string t;
    if (one_in(2)) {
      t += "[[line]]\n" + line("link", around ? "s0-s1" : link_of(a));
      t += line("distance", pick({"1km", "10km", "40km"}));
      if (one_in(2)) t += line("rate", pick({"2Gbps", "10Gbps"}));
      if (one_in(2)) t += line("loss", ppm(random_.below(50'000)));
      if (one_in(3)) t += line("duplicate", ppm(random_.below(20'000)));
      if (one_in(3)) t += line("corrupt", ppm(random_.below(20'000)));
      if (one_in(3))
        t += line("reorder", ppm(random_.below(50'000))) + line("reorder_by", pick({"1us", "30us"}));
    }
    t += "[[accelerator]]\n";
    t += around ? line("link", "s0-s1") : line("near", link_of(a)) + line("far", link_of(b));
    t += line("acknowledge", pick({"early", "early", "far"})) + line("give_up", "2s");
    t += line("store", pick({"200kB", "1MB", "50MB"})) + line("quiet", pick({"20us", "1ms"}));
    if (one_in(3)) t += line("frame_time", pick({"100ns", "700ns"}));
    if (one_in(4)) t += line("frames", pick({"64", "4096"}));
    return t;
  }

  std::string draw_flows() {
    std::string t;
    const bool to_one = one_in(2);
    const std::uint64_t flows = random_.between(1, 5);
    for (std::uint64_t i = 0; i < flows; ++i) {
      const std::uint64_t to = to_one ? 0 : random_.below(hosts_);
      const std::uint64_t from = (to + random_.between(1, hosts_ - 1)) % hosts_;
      const std::string op = word_of(sim::kOps);
      const bool atomic = op == "compare_swap" || op == "fetch_add";
      const std::string size = atomic ? "8" : one_in(20) ? "0" : draw_size();
      const std::uint64_t packets = std::stoull(size) / mtu_ + 1;
      const std::uint64_t qps = random_.between(1, 3);
      const std::uint64_t most = kPackets / (flows * qps * packets) + 1;
      t += "[[flow]]\n" + line("from", from) + line("to", to) + line("op", op) + line("size", size);
      t +=
          line("qps", qps) + line("count", random_.between(1, most)) + line("depth", pick({1, 2, 5, 16, 40}));
      if (one_in(3)) t += line("start", std::to_string(random_.below(100)) + "us");
    }
    return t;
  }

  std::string draw_traffic() {
    std::string t = "[[traffic]]\n";
    const std::string pattern = pick({"poisson", "incast", "incast", "permutation", "all-to-all"});
    t += line("pattern", pattern) + line("verb", word_of(sim::kVerbs));
    const std::uint64_t each = std::max<std::uint64_t>(kPackets / (hosts_ * hosts_), 1) * mtu_;
    if (pattern == "incast") {
      t += line("total", random_.between(hosts_, kPackets * mtu_ / 3)) +
           line("requests", random_.between(1, 3));
      t += line("every", pick({"1us", "20us", "1ms"}));
    } else if (pattern == "poisson") {
      t += line("flows", random_.between(1, 60)) + line("load", pick({"20%", "70%", "95%"}));
      t += line("sizes", draw_size());
    } else if (pattern == "permutation") {
      t += line("sizes", random_.between(1, kPackets / hosts_ * mtu_));
    } else {
      t += line("sizes", random_.between(1, each));
    }
    return t;
  }

  Prng random_;
  std::uint64_t seed_;
  std::string kind_;
  bool may_have_boxes_ = false;
  std::uint64_t hosts_ = 2;
  std::uint64_t gigabits_ = 100;
  std::uint64_t mtu_ = 1024;
  std::uint64_t between_switches_ = 0;  // links
  std::uint64_t edges_ = 1;             // switches that hosts hang off, evenly
};

}  // namespace

std::string plan_fabric(std::uint64_t seed) { return Plan(seed).text(); }

}  // namespace weft::swarm
