#include "monitor/server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <charconv>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "http/listener.h"

namespace weft::monitor {
namespace {

using nlohmann::json;

constexpr const char* kJson = "application/json";
constexpr const char* kText = "text/plain; version=0.0.4; charset=utf-8";

void refuse(httplib::Response& response, int status, const std::string& why) {
  response.status = status;
  response.set_content(json{{"error", why}}.dump(-1, ' ', false, json::error_handler_t::replace), kJson);
}

// Unix time in seconds, as people write it; without: from the beginning.
bool since_of(const httplib::Request& request, std::int64_t& out_ms) {
  out_ms = 0;
  if (!request.has_param("since")) return true;
  const std::string text = request.get_param_value("since");
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || seconds < 0 || seconds > INT64_MAX / 1000)
    return false;
  out_ms = seconds * 1000;
  return true;
}

}  // namespace

struct Server::Inside {
  http::Listener listener;
  httplib::Server& http = listener.server();
  std::mutex lock;
  std::shared_ptr<const Collected> last = std::make_shared<Collected>();
  History* history = nullptr;
  int port = 0;
  std::thread thread;

  std::shared_ptr<const Collected> now() {
    const std::lock_guard held(lock);
    return last;
  }
  void serve(const char* path, std::string Collected::*page, const char* type, const char* missing) {
    http.Get(path, [this, page, type, missing](const httplib::Request&, httplib::Response& response) {
      const auto shown = now();
      const std::string& text = (*shown).*page;
      if (text.empty()) return refuse(response, 404, missing);
      response.set_content(text, type);
    });
  }
  // A question to the history: `ask` answers JSON.
  template <class Ask>
  void serve_history(const char* path, const Ask& ask) {
    http.Get(path, [this, ask](const httplib::Request& request, httplib::Response& response) {
      std::int64_t since = 0;
      if (!since_of(request, since))
        return refuse(response, 400, "since: it must be Unix time in whole seconds");
      if (history == nullptr)
        return refuse(response, 404, "there is no history; start the monitor with --history");
      const Result<json> answer = [&] {
        const std::lock_guard held(lock);
        return ask(*history, request, since);
      }();
      if (!answer) return refuse(response, 400, answer.error().message);
      response.set_content(answer->dump(-1, ' ', false, json::error_handler_t::replace), kJson);
    });
  }
  void routes();
};

void Server::Inside::routes() {
  serve("/metrics", &Collected::metrics, kText, "nothing has been collected yet");
  serve("/v1/state", &Collected::state, kJson, "nothing has been collected yet");
  serve("/v1/cluster", &Collected::cluster, kJson, "the monitor has no peers; start it with --peer");
  serve("/v1/mesh", &Collected::mesh, kJson, "there is no matrix; start the monitor with --mesh FILE");
  http.Get("/healthz", [this](const httplib::Request&, httplib::Response& response) {
    const bool healthy = now()->healthy;
    response.status = healthy ? 200 : 503;
    response.set_content(healthy ? "ok\n" : "the history cannot be written\n", "text/plain");
  });
  serve_history("/v1/series", [](const History& h, const httplib::Request&, std::int64_t) -> Result<json> {
    const auto all = h.series();
    if (!all) return tl::unexpected(all.error());
    return json(*all);
  });
  serve_history("/v1/history",
                [](const History& h, const httplib::Request& r, std::int64_t since) -> Result<json> {
                  if (!r.has_param("series")) return fail("series: name one of /v1/series");
                  const auto all = h.samples(r.get_param_value("series"), since);
                  if (!all) return tl::unexpected(all.error());
                  json answer = json::array();
                  for (const Sample& s : *all)
                    answer.push_back({static_cast<double>(s.at_ms) / 1000, s.value});
                  return answer;
                });
  serve_history("/v1/slow",
                [](const History& h, const httplib::Request&, std::int64_t since) -> Result<json> {
                  const auto all = h.slow(since);
                  if (!all) return tl::unexpected(all.error());
                  json answer = json::array();
                  for (const Slow& s : *all)
                    answer.push_back({{"at", static_cast<double>(s.at_ms) / 1000},
                                      {"program", s.program},
                                      {"pid", s.pid},
                                      {"what", s.what},
                                      {"took_ns", s.took_ns}});
                  return answer;
                });
}

Server::Server(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}

Result<std::unique_ptr<Server>> Server::open(const std::string& address, std::uint16_t port,
                                             History* history) {
  auto inside = std::make_unique<Inside>();
  inside->history = history;
  // Not SO_REUSEPORT, which the library sets by itself: two monitors on one port would share what is asked.
  inside->http.set_socket_options([](socket_t fd) {
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  inside->routes();
  if (port == 0) {
    inside->port = inside->http.bind_to_any_port(address);
  } else if (inside->http.bind_to_port(address, port)) {
    inside->port = port;
  }
  if (inside->port <= 0)
    return fail(fmt::format("--listen {}:{}: this address and port cannot be had; is another monitor there?",
                            address, port));
  Inside* const in = inside.get();
  inside->thread = std::thread([in] { in->http.listen_after_bind(); });
  while (!in->http.is_running()) std::this_thread::yield();  // before that, stop() would not be heard
  return std::unique_ptr<Server>(new Server(std::move(inside)));
}

Server::~Server() {
  inside_->listener.end();
  inside_->thread.join();
}

std::uint16_t Server::port() const { return static_cast<std::uint16_t>(inside_->port); }

void Server::show(Collected collected) {
  auto next = std::make_shared<const Collected>(std::move(collected));
  const std::lock_guard held(inside_->lock);
  inside_->last.swap(next);
}

Result<void> Server::remember(std::int64_t at_ms, const Metrics& metrics, const std::vector<Slow>& slow) {
  const std::lock_guard held(inside_->lock);
  return inside_->history->add(at_ms, metrics, slow);
}

}  // namespace weft::monitor
