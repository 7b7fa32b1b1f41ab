#include "monitor/peers.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "http/ask.h"

namespace weft::monitor {
namespace {

using nlohmann::json;

struct Peer {
  std::string name;
  std::string host;
  int port = 0;
  bool up = false;
  std::int64_t heard_ms = 0;  // 0: never
  std::string state;          // its text
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

// Whether a text is an object with processes, of bounded depth: nothing is built of it, and it is handed on
// as it is.
class State : public nlohmann::json_sax<json> {
 public:
  static bool is(const std::string& text) {
    // The parser passes over a mark of the byte order, and takes a zero for the end.
    if (!text.starts_with('{') || text.find('\0') != std::string::npos) return false;
    State state;
    return json::sax_parse(text, &state) && state.processes_;
  }
  bool null() override { return one_more(); }
  bool boolean(bool) override { return one_more(); }
  bool number_integer(number_integer_t) override { return one_more(); }
  bool number_unsigned(number_unsigned_t) override { return one_more(); }
  bool number_float(number_float_t, const string_t&) override { return one_more(); }
  bool string(string_t&) override { return one_more(); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return ++depth_ <= kMostStateDepth && one_more(); }
  bool end_object() override { return --depth_, true; }
  bool start_array(std::size_t) override { return ++depth_ <= kMostStateDepth && one_more(); }
  bool end_array() override { return --depth_, true; }
  bool key(string_t& name) override {
    processes_ = processes_ || (depth_ == 1 && name == "processes");
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool one_more() { return ++values_ <= kMostStateValues; }
  int depth_ = 0;
  std::size_t values_ = 0;
  bool processes_ = false;
};

// What a peer says of itself; nothing: it is down, or no monitor.
std::string state_of(http::Asker& asker, const std::string& host, int port) {
  http::Answer answer =
      asker.ask({fmt::format("http://{}:{}", host, port), "/v1/state", "", kPatienceOfPeer, kMostStateBytes});
  return answer.status == 200 && State::is(answer.body) ? std::move(answer.body) : "";
}

}  // namespace

struct Peers::Inside {
  mutable std::mutex lock;
  std::condition_variable ending;
  http::Asker asker;
  bool end = false;
  std::vector<Peer> peers;
  std::int64_t (*unix_ms)() = nullptr;
  double every = 1;
  std::thread thread;

  void pull() {
    std::unique_lock held(lock);
    while (!end) {
      for (std::size_t i = 0; i < peers.size() && !end; ++i) {
        const std::string host = peers[i].host;
        const int port = peers[i].port;
        held.unlock();
        std::string state = state_of(asker, host, port);
        held.lock();
        Peer& p = peers[i];
        p.up = !state.empty();
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
  inside_->asker.end();
  inside_->ending.notify_all();
  inside_->thread.join();
}

std::string Peers::tell(Metrics& metrics) const {
  const std::lock_guard held(inside_->lock);
  std::string hosts;
  const std::int64_t now = inside_->unix_ms();
  for (const Peer& p : inside_->peers) {
    metrics.add("weft_peer_up", "1: this peer's monitor answered last time", Kind::kGauge, {{"peer", p.name}},
                p.up ? 1 : 0);
    const nlohmann::json name = p.name;
    hosts += fmt::format(
        "{}{{\"peer\":{},\"up\":{},\"age_seconds\":{},\"state\":{}}}", hosts.empty() ? "" : ",",
        name.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), p.up,
        p.heard_ms == 0 ? "null" : fmt::format("{:.3f}", static_cast<double>(now - p.heard_ms) / 1000),
        p.state.empty() ? "null" : p.state);
  }
  return "{\"hosts\":[" + hosts + "]}";
}

}  // namespace weft::monitor
