#include "monitor/peers.h"

#include <fmt/format.h>
#include <httplib.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

namespace weft::monitor {
namespace {

using nlohmann::json;

struct Peer {
  std::string name;
  std::string host;
  int port = 0;
  bool up = false;
  std::int64_t heard_ms = 0;  // 0: never
  json state;
};

Result<Peer> peer_of(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  unsigned port = 0;
  if (colon != std::string::npos && colon != 0) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
    if (error == std::errc{} && stop == end && port > 0 && port < 65536)
      return Peer{text, text.substr(0, colon), static_cast<int>(port), false, 0, {}};
  }
  return fail(fmt::format("--peer '{}': write HOST:PORT, with a port from 1 to 65535", text));
}

// What a peer says of itself; nothing: it is down, or no monitor.
json state_of(const Peer& peer) {
  httplib::Client client(peer.host, peer.port);
  client.set_connection_timeout(kPatienceOfPeer);
  client.set_read_timeout(kPatienceOfPeer);
  client.set_write_timeout(kPatienceOfPeer);
  std::string body;
  const auto response = client.Get("/v1/state", [&](const char* data, std::size_t length) {
    body.append(data, length);
    return body.size() <= kMostStateBytes;
  });
  if (!response || response->status != 200) return {};
  json state = json::parse(body, nullptr, false);
  return state.is_object() && state.contains("processes") ? state : json();
}

}  // namespace

struct Peers::Inside {
  mutable std::mutex lock;
  std::condition_variable ending;
  bool end = false;
  std::vector<Peer> peers;
  std::int64_t (*unix_ms)() = nullptr;
  double every = 1;
  std::thread thread;

  void pull() {
    std::unique_lock held(lock);
    while (!end) {
      for (std::size_t i = 0; i < peers.size() && !end; ++i) {
        const Peer asked{peers[i].name, peers[i].host, peers[i].port, false, 0, {}};
        held.unlock();
        nlohmann::json state = state_of(asked);
        held.lock();
        Peer& p = peers[i];
        p.up = !state.is_null();
        if (!p.up) continue;
        p.heard_ms = unix_ms();
        p.state = std::move(state);
      }
      ending.wait_for(held, std::chrono::duration<double>(every), [this] { return end; });
    }
  }
};

Peers::Peers(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}

Result<std::unique_ptr<Peers>> Peers::begin(const std::vector<std::string>& peers, double every_seconds,
                                            std::int64_t (*unix_ms)()) {
  if (peers.size() > kMostPeers) return fail(fmt::format("--peer: at most {} of them", kMostPeers));
  auto inside = std::make_unique<Inside>();
  inside->unix_ms = unix_ms;
  inside->every = every_seconds;
  for (const std::string& text : peers) {
    auto peer = peer_of(text);
    if (!peer) return tl::unexpected(peer.error());
    inside->peers.push_back(std::move(*peer));
  }
  Inside* const in = inside.get();
  inside->thread = std::thread([in] { in->pull(); });
  return std::unique_ptr<Peers>(new Peers(std::move(inside)));
}

Peers::~Peers() {
  {
    const std::lock_guard held(inside_->lock);
    inside_->end = true;
  }
  inside_->ending.notify_all();
  inside_->thread.join();
}

void Peers::tell(Metrics& metrics) const {
  const std::lock_guard held(inside_->lock);
  for (const Peer& p : inside_->peers)
    metrics.add("weft_peer_up", "1: this peer's monitor answered last time", Kind::kGauge, {{"peer", p.name}},
                p.up ? 1 : 0);
}

std::string Peers::json() const {
  const std::lock_guard held(inside_->lock);
  nlohmann::json hosts = nlohmann::json::array();
  const std::int64_t now = inside_->unix_ms();
  for (const Peer& p : inside_->peers) {
    nlohmann::json one = {{"peer", p.name}, {"up", p.up}, {"state", p.state}};
    one["age_seconds"] =
        p.heard_ms == 0 ? nlohmann::json() : nlohmann::json(static_cast<double>(now - p.heard_ms) / 1000);
    hosts.push_back(std::move(one));
  }
  return nlohmann::json{{"hosts", std::move(hosts)}}.dump(-1, ' ', false,
                                                          nlohmann::json::error_handler_t::replace);
}

}  // namespace weft::monitor
