// weft monitor: collects what the programs of this host show (X-RDMA §6.2), and serves it over HTTP: for
// Prometheus, as JSON, with a bounded history. src/monitor has the parts; here is the turn.
#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/stopwatch.h"
#include "monitor/history.h"
#include "monitor/host.h"
#include "monitor/peers.h"
#include "monitor/programs.h"
#include "monitor/server.h"
#include "monitor/state.h"
#include "page/reader.h"

namespace weft::cli {
namespace {

constexpr std::size_t kMostMesh = 8U << 20U;  // bytes of a matrix

struct Wanted {
  std::string listen = "127.0.0.1:9461";
  double every = 1;
  bool once = false;
  std::vector<std::string> peers;
  std::string history;
  double history_every = 10;
  monitor::Keep keep;
  std::string mesh;
};

bool split(const std::string& text, std::string& address, std::uint16_t& port) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  address = text.substr(0, colon);
  unsigned number = 65536;
  const auto [end, error] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), number);
  port = static_cast<std::uint16_t>(number);
  return error == std::errc{} && end == text.data() + text.size() && number < 65536;
}

// What `weft ping --mesh -j` wrote, as it is; empty: it is not there, or not a whole JSON object.
std::string mesh_of(const std::string& file) {
  std::ifstream in(file);
  std::string text(std::istreambuf_iterator<char>(in), {});
  return text.size() <= kMostMesh && text.starts_with('{') && nlohmann::json::accept(text) ? text : "";
}

// The signals that end it; blocked before there are threads, so that only the turn takes them.
sigset_t ends() {
  sigset_t all;
  sigemptyset(&all);
  sigaddset(&all, SIGINT);
  sigaddset(&all, SIGTERM);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  return all;
}

class Monitor {
 public:
  explicit Monitor(const Wanted& wanted) : w_(wanted) {}

  int run() {
    if (w_.once) {
      std::cout << look().text();
      return 0;
    }
    std::string address;
    std::uint16_t port = 0;
    if (!split(w_.listen, address, port))
      return refuse({"--listen '" + w_.listen + "': write ADDRESS:PORT, with a port from 0 to 65535"});
    const sigset_t signals = ends();
    if (!w_.history.empty()) {
      auto opened = monitor::History::open(w_.history, w_.keep);
      if (!opened) return refuse(opened.error());
      history_ = std::move(*opened);
    }
    auto served = monitor::Server::open(address, port, history_.get());
    if (!served) return refuse(served.error());
    server_ = std::move(*served);
    if (!w_.peers.empty()) {
      auto begun = monitor::Peers::begin(w_.peers, w_.every, unix_ms);
      if (!begun) return refuse(begun.error());
      peers_ = std::move(*begun);
    }
    turn();
    std::printf("serving http://%s:%u/metrics\n", address.c_str(), server_->port());
    std::fflush(stdout);
    const auto whole = static_cast<time_t>(w_.every);
    const timespec nap{whole, static_cast<long>((w_.every - static_cast<double>(whole)) * 1e9)};
    while (sigtimedwait(&signals, nullptr, &nap) < 0) turn();
    return 0;
  }

 private:
  monitor::Metrics look() {
    found_ = page::read_pages();
    now_ = steady_ns();
    programs_.look(found_, now_);
    monitor::Metrics metrics;
    programs_.tell(metrics);
    monitor::tell_host(metrics);
    if (peers_ != nullptr) cluster_ = peers_->tell(metrics);
    return metrics;
  }

  void turn() {
    const monitor::Metrics metrics = look();
    if (history_ != nullptr && now_ >= next_) {
      next_ = now_ + static_cast<std::uint64_t>(w_.history_every * 1e9);
      const std::int64_t at = unix_ms();
      const auto kept = server_->remember(at, metrics, monitor::slow_lines(found_, now_, at));
      // Once, until it works again.
      if (!kept && healthy_) std::cerr << "weft: " << kept.error().message << "; it goes on without.\n";
      healthy_ = kept.has_value();
    }
    server_->show({metrics.text(), monitor::state_json(found_, now_, false), cluster_,
                   w_.mesh.empty() ? "" : mesh_of(w_.mesh), healthy_});
  }

  const Wanted& w_;
  monitor::Programs programs_;
  std::unique_ptr<monitor::History> history_;
  std::unique_ptr<monitor::Server> server_;
  std::unique_ptr<monitor::Peers> peers_;
  std::string cluster_;  // as the last look found it; empty without peers
  page::Found found_;
  std::uint64_t now_ = 0;
  std::uint64_t next_ = 0;
  bool healthy_ = true;
};

}  // namespace

void add_monitor(CLI::App& app, int& exit_code) {
  CLI::App* const m = app.add_subcommand(
      "monitor", "Collect what programs of this host show; serve it to Prometheus and as JSON");
  auto w = std::make_shared<Wanted>();
  const auto seconds = CLI::Range(0.05, 86400.0);
  CLI::Option* const once = m->add_flag("--once", w->once, "print /metrics as of now, and end");
  m->add_option("--listen", w->listen, "where to serve; port 0: any that is free")
      ->type_name("ADDRESS:PORT")
      ->excludes(once);
  m->add_option("--every", w->every, "between looks at the pages, and at peers")
      ->type_name("SECONDS")
      ->check(seconds)
      ->excludes(once);
  m->add_option("--peer", w->peers, "another host's monitor, for /v1/cluster; may be given often")
      ->type_name("HOST:PORT")
      ->allow_extra_args(false)
      ->excludes(once);
  CLI::Option* const history =
      m->add_option("--history", w->history, "remember values and slow lines in this SQLite file")
          ->type_name("FILE")
          ->excludes(once);
  m->add_option("--history-every", w->history_every, "between two moments of it")
      ->type_name("SECONDS")
      ->check(seconds)
      ->needs(history);
  m->add_option("--keep-rows", w->keep.rows, "values in it at most, about 100 bytes each")
      ->type_name("ROWS")
      ->check(CLI::Range(std::uint64_t{1000}, std::uint64_t{1'000'000'000}))
      ->needs(history);
  m->add_option("--keep-seconds", w->keep.seconds, "the oldest in it")
      ->type_name("SECONDS")
      ->check(CLI::Range(std::uint64_t{60}, std::uint64_t{3'000'000'000}))
      ->needs(history);
  m->add_option("--mesh", w->mesh, "serve this file of weft ping --mesh -j as /v1/mesh")
      ->type_name("FILE")
      ->excludes(once);
  m->footer(
      "Pages of other users are root's to read: run it as root, or as the programs' user. It asks nobody who "
      "he\n"
      "is; let it listen where only those are who may know. SIGINT and SIGTERM end it.\n\n"
      "Examples:\n"
      "  weft monitor --history /var/lib/weft/history.db\n"
      "  weft monitor --listen 10.0.0.1:9461 --peer 10.0.0.2:9461 --peer 10.0.0.3:9461\n"
      "  weft monitor --once > weft.prom    # for the textfile collector of node_exporter");
  m->callback([w, &exit_code] { exit_code = Monitor(*w).run(); });
}

}  // namespace weft::cli
