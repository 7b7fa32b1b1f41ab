// What the monitor serves over HTTP (cpp-httplib): pages that are ready, and questions to the history.
// Nothing can be changed through it, and it asks nobody who he is: docs/SECURITY.md says whom to let near.
//
//   /metrics      Prometheus' text                /v1/state     every statistics page of this host
//   /healthz      200: it reads pages; 503: not   /v1/cluster   the same of every peer, as it was pulled last
//   /v1/series    names in the history            /v1/history   ?series=NAME&since=UNIX: its samples
//   /v1/slow      ?since=UNIX: slow lines         /v1/mesh      what weft ping --mesh found last
//
// The threads are the server's: few, each with one question. What they share with the collector is under one
// lock, which is held to exchange a pointer or to ask the history.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "monitor/history.h"

namespace weft::monitor {

// What was collected last. Never changed once it is served.
struct Collected {
  std::string metrics;
  std::string state;
  std::string cluster;
  std::string mesh;  // empty: none is known
  bool healthy = true;
};

class Server {
 public:
  // `history` may be nullptr. Port 0: the kernel chooses.
  static Result<std::unique_ptr<Server>> open(const std::string& address, std::uint16_t port,
                                              History* history);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  void show(Collected collected);
  // While nobody asks the history.
  Result<void> remember(std::int64_t at_ms, const Metrics& metrics, const std::vector<Slow>& slow);

 private:
  struct Inside;
  explicit Server(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace weft::monitor
