// weft bench: what a layer costs beside what it stands on. `channel` is the program weft-channel-bench
// (channel_bench/bench.h), over the soft NIC.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "channel_bench/options.h"
#include "cli/channel_tool.h"
#include "cli/commands.h"

namespace weft::cli {

namespace {

// A network with one interface and two addresses, gone with the process that this one becomes. Without root
// it takes a user namespace.
constexpr const char* kNetwork =
    "ip link set lo up && ip link add weft0 type veth peer name weft1 && ip link set weft1 up && "
    "ip addr add 10.77.0.1/24 dev weft0 && ip addr add 10.77.0.2/24 dev weft0 && ip link set weft0 up && "
    "exec \"$0\" \"$@\"";

// Begins this command again inside. Returns only to say why not.
Result<void> enter_network() {
  const auto here = own_directory();
  if (!here) return tl::unexpected(here.error());
  std::vector<std::string> words{"unshare", "--user", "--map-root-user", "--net",
                                 "sh",      "-c",     kNetwork,          *here + "/weft"};
  for (const std::string& w : own_words()) {
    if (!w.starts_with("--namespace")) words.push_back(w);
  }
  for (const char* w : {"--addr", "10.77.0.1", "--far", "10.77.0.2"}) words.emplace_back(w);
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  return fail(std::string("cannot start unshare: ") + std::strerror(errno));
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<bench::Options>();
  auto address = std::make_shared<std::string>(bench::kNear);
  CLI::App* const channel = bench::add_options(app, *options);
  channel->add_option("--addr", *address, "the address of the near end")
      ->type_name("ADDRESS")
      ->capture_default_str();
  CLI::Option* const far = channel->get_option("--far");
  CLI::Option* const near = channel->get_option("--addr");
  channel->get_option("--namespace")->excludes(far)->excludes(near);
  channel->callback([options, address, &exit_code] {
    if (options->in_namespace) {
      if (const auto done = enter_network(); !done) exit_code = refuse(done.error());
      return;
    }
    if (*address == options->far) {
      exit_code = refuse({"--far " + options->far + ": both ends cannot have one address"});
      return;
    }
    if (const auto done = become_tool(*address, "weft-channel-bench"); !done)
      exit_code = refuse(done.error());
  });
}

}  // namespace weft::cli
