// Ping-pong by programs of others (X-RDMA §7.1), each a pair of processes: ibv_rc_pingpong, UCX and
// libfabric, over the soft NIC and over TCP. One that is not installed, or that does not run here, is named
// with the reason and left out: it is no error.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft::bench {

// `name` is its row's. It gets size, rounds and addresses, and its half round trip is read from what it says.
struct Program {
  const char* name;
  std::vector<std::string> (*server)(std::uint32_t size, std::uint32_t rounds);
  std::vector<std::string> (*client)(const std::string& server, std::uint32_t size, std::uint32_t rounds);
  std::optional<double> (*half_us)(const std::string& said);
  bool files;            // it looks for the files of a device: weft run --device-files
  bool not_on_loopback;  // it passes over loopback addresses
};
inline constexpr std::size_t kPrograms = 5;
const std::array<Program, kPrograms>& programs();

class Externals {
 public:
  Externals(std::string near, std::string far) : near_(std::move(near)), far_(std::move(far)) {}
  // Microseconds; nothing, if it is absent.
  std::optional<double> half_round_trip(const Program& p, std::uint32_t size, std::uint32_t rounds);
  const std::map<std::string, std::string>& absent() const { return absent_; }  // and why

 private:
  std::string near_;
  std::string far_;
  std::map<std::string, std::string> absent_;
};

}  // namespace weft::bench
