#include "monitor/host.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <sstream>

#include "live/packet_io/ethtool.h"

namespace weft::monitor {
namespace {

constexpr std::uint64_t kRoce = 4791;

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string w; in >> w;) words.push_back(w);
  return words;
}
bool number_in(std::string_view text, std::uint64_t& out, int base = 10) {
  return std::from_chars(text.data(), text.data() + text.size(), out, base).ec == std::errc{};
}

// /proc/net/snmp: a line of names and a line of numbers for each protocol.
void tell_udp(Metrics& m, const std::string& root) {
  std::ifstream in(root + "/proc/net/snmp");
  std::vector<std::string> names;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("Udp:")) continue;
    const std::vector<std::string> words = words_of(line);
    if (names.empty()) {
      names = words;
      continue;
    }
    for (std::size_t i = 1; i < std::min(names.size(), words.size()); ++i) {
      std::uint64_t n = 0;
      if (!number_in(words[i], n)) continue;
      if (names[i] == "RcvbufErrors")
        m.add("weft_host_udp_receive_drops_total",
              "datagrams dropped: their socket had no room (all programs)", Kind::kCounter, {},
              static_cast<double>(n));
      if (names[i] == "SndbufErrors")
        m.add("weft_host_udp_send_drops_total", "datagrams not sent for want of buffer (all programs)",
              Kind::kCounter, {}, static_cast<double>(n));
    }
  }
}

// /proc/net/udp: "sl local rem st tx:rx ... drops", numbers hexadecimal but the last.
void tell_sockets(Metrics& m, const std::string& root) {
  std::ifstream in(root + "/proc/net/udp");
  std::uint64_t waiting = 0;
  std::uint64_t drops = 0;
  std::uint64_t sockets = 0;
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < 13) continue;
    const std::size_t colon = words[1].find(':');
    const std::size_t queues = words[4].find(':');
    std::uint64_t port = 0;
    std::uint64_t queued = 0;
    std::uint64_t dropped = 0;
    if (colon == std::string::npos || queues == std::string::npos ||
        !number_in(std::string_view(words[1]).substr(colon + 1), port, 16) || port != kRoce ||
        !number_in(std::string_view(words[4]).substr(queues + 1), queued, 16) ||
        !number_in(words.back(), dropped))
      continue;
    ++sockets;
    waiting += queued;
    drops += dropped;
  }
  m.add("weft_host_roce_sockets", "UDP sockets of RoCE (port 4791)", Kind::kGauge, {},
        static_cast<double>(sockets));
  m.add("weft_host_roce_receive_queue_bytes", "bytes that wait in them to be received", Kind::kGauge, {},
        static_cast<double>(waiting));
  m.add("weft_host_roce_drops", "datagrams that those that are open have dropped for want of room",
        Kind::kGauge, {}, static_cast<double>(drops));
}

// Of the counters of a driver, those of pause frames, with their direction and priority in their own words.
void tell_pause(Metrics& m, const std::string& interface) {
  for (const auto& [name, count] : live::statistics(interface)) {
    if (name.find("pause") == std::string::npos && name.find("pfc") == std::string::npos) continue;
    m.add("weft_host_pause_total", "pause frames as the interface's driver counts them, by its own names",
          Kind::kCounter, {{"interface", interface}, {"counter", name}}, static_cast<double>(count));
  }
  if (const auto pause = live::pause_of(interface)) {
    for (const auto& [direction, on] : {std::pair{"receive", pause->receive}, {"send", pause->send}})
      m.add("weft_host_pause", "1: pause frames of the whole link are agreed in this direction", Kind::kGauge,
            {{"interface", interface}, {"direction", direction}}, on ? 1 : 0);
  }
}

// /proc/net/dev: "NAME: 8 numbers of what came, 8 of what went". It is of the network namespace that asks;
// what is mounted at /sys may be another one's.
void tell_interfaces(Metrics& m, const std::string& root) {
  constexpr std::pair<std::size_t, const char*> kReasons[] = {{2, "rx_errors"},   {3, "rx_dropped"},
                                                              {4, "rx_fifo"},     {10, "tx_errors"},
                                                              {11, "tx_dropped"}, {12, "tx_fifo"}};
  std::ifstream in(root + "/proc/net/dev");
  std::map<std::string, std::vector<std::string>> interfaces;
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::vector<std::string> name = words_of(line.substr(0, colon));
    if (name.size() == 1 && interfaces.size() < kMostInterfaces)
      interfaces[name[0]] = words_of(line.substr(colon + 1));
  }
  for (const auto& [name, words] : interfaces) {
    for (const auto& [place, reason] : kReasons) {
      std::uint64_t n = 0;
      if (place >= words.size() || !number_in(words[place], n)) continue;
      m.add("weft_host_interface_drops_total", "packets that an interface dropped, by the kernel's counters",
            Kind::kCounter, {{"interface", name}, {"counter", reason}}, static_cast<double>(n));
    }
    tell_pause(m, name);
  }
}

}  // namespace

void tell_host(Metrics& m, const std::string& root) {
  tell_udp(m, root);
  tell_sockets(m, root);
  tell_interfaces(m, root);
}

}  // namespace weft::monitor
