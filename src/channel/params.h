// The parameters of a context by name: what a command line, a file or an administrator sets. One table;
// whoever lists parameters lists it. The names of X-RDMA's Table III are kept (X-RDMA §6.4).
//
// An online parameter may change at any time. An offline one is fixed when the context is made; changing it
// later is refused with a sentence.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "channel/config.h"

namespace weft::channel {

struct Param {
  const char* name;
  const char* meaning;
  bool online;
  std::uint64_t (*get)(const Config&);
  void (*set)(Config&, std::uint64_t);
};

std::span<const Param> params();
const Param* find_param(std::string_view name);
// The parameter, or a sentence that names the one whose name is nearest.
Result<const Param*> expect_param(std::string_view name);
std::string offline_sentence(std::string_view name);

// "depth=64", as people write it. Sets it, offline or not, in a config of which no context has been made.
Result<void> set_param(Config& config, std::string_view assignment);
// The same for a config in use.
Result<void> set_online(Config& config, std::string_view name, std::uint64_t value);

}  // namespace weft::channel
