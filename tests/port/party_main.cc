// One side of the conformance program over libibverbs: `weft-port-party serve`, `weft-port-party ADDRESS`.
#include <arpa/inet.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string_view>

#include "tests/port/conformance.h"
#include "verbs_port/verbs_port.h"

namespace weft {
namespace {

int run(Application& party, const std::function<bool()>& done, const std::function<std::string()>& failure) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done() && std::chrono::steady_clock::now() < end) party.act(Time{});
  if (done() && failure().empty()) return 0;
  std::fprintf(stderr, "%s\n", failure().empty() ? "it did not end in time" : failure().c_str());
  return 1;
}

int party(std::string_view who) {
  auto port = open_ibverbs();
  if (!port) {
    std::fprintf(stderr, "%s\n", port.error().message.c_str());
    return 1;
  }
  ConnectTerms terms;
  terms.timeout = 12;
  if (who == "serve") {
    port_test::Server server(**port, terms);
    std::puts("listening");
    std::fflush(stdout);
    return run(
        server, [&] { return server.done(); }, [&] { return server.failure(); });
  }
  in_addr address{};
  if (inet_pton(AF_INET, std::string(who).c_str(), &address) != 1) return 2;
  const auto* b = reinterpret_cast<const std::uint8_t*>(&address);
  port_test::Client client(**port, terms, wire::Address::v4(b[0], b[1], b[2], b[3]));
  return run(
      client, [&] { return client.done(); }, [&] { return client.failure(); });
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return argc == 2 ? weft::party(argv[1]) : 2; }
