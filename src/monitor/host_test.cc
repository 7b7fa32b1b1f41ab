#include "monitor/host.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace weft::monitor {
namespace {

namespace fs = std::filesystem;

struct Root {
  Root() {
    std::string made = ::testing::TempDir() + "host-XXXXXX";
    path = mkdtemp(made.data());
  }
  ~Root() { fs::remove_all(path); }
  void file(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(path + name).parent_path());
    std::ofstream(path + name) << text;
  }
  std::string path;
};

TEST(Host, TellsWhatItsKernelCounts) {
  const Root root;
  root.file(
      "/proc/net/snmp",
      "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\n"
      "Udp: 10 1 2 11 7 3\nUdpLite: RcvbufErrors\nUdpLite: 99\n");
  root.file(
      "/proc/net/udp",
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref "
      "pointer drops\n"
      "  1: 0100007F:12B7 00000000:0000 07 00000000:00000400 00:00000000 00000000     0        0 1 2 0 5\n"
      "  2: 0200007F:12B7 00000000:0000 07 00000000:00000010 00:00000000 00000000     0        0 1 2 0 1\n"
      "  3: 0200007F:0035 00000000:0000 07 00000000:00001000 00:00000000 00000000     0        0 1 2 0 9\n"
      "nonsense\n");
  root.file("/proc/net/dev",
            "Inter-|   Receive  |  Transmit\n face |bytes    packets errs drop fifo frame compressed "
            "multicast|bytes\n"
            "weft-none0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
  Metrics m;
  tell_host(m, root.path);
  const std::string text = m.text();
  for (const char* line :
       {"weft_host_udp_receive_drops_total 7\n", "weft_host_udp_send_drops_total 3\n",
        "weft_host_roce_sockets 2\n", "weft_host_roce_receive_queue_bytes 1040\n", "weft_host_roce_drops 6\n",
        "weft_host_interface_drops_total{interface=\"weft-none0\",counter=\"rx_dropped\"} 4\n",
        "weft_host_interface_drops_total{interface=\"weft-none0\",counter=\"tx_dropped\"} 12\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(Host, WithoutFilesTellsWhatItCan) {
  const Root root;
  Metrics m;
  tell_host(m, root.path);
  EXPECT_EQ(m.text().find("interface"), std::string::npos);
}

}  // namespace
}  // namespace weft::monitor
