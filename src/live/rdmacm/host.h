// The process's device as RDMA-CM has it: opened by the first identifier or channel and open for as long as
// the process lives, since programs go on using its protection domains and queue pairs after their last
// identifier.
//
// When the process ends in order, its connections are ended too: there is no kernel that would do it.
#pragma once
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "live/engine/connections.h"
#include "live/rdmacm/channel_book.h"

namespace weft::live::rdmacm {

// Ports in use, by port space. Several identifiers may share a port if all of them allow it
// (RDMA_OPTION_ID_REUSEADDR).
class PortBook {
 public:
  PortBook();
  // 0 takes a free one; 0 comes back if there is none, or this one is taken.
  std::uint16_t take(rdma_port_space space, std::uint16_t port, bool shared);
  void give_back(rdma_port_space space, std::uint16_t port);

 private:
  struct Users {
    std::uint32_t count = 0;
    bool shared = false;
  };
  std::mutex mutex_;
  std::map<std::pair<unsigned, std::uint16_t>, Users> used_;
  std::uint16_t next_ = 0;  // of those that are chosen
};

struct Host {
  Host(ibv_context* v, const Context& engine);
  ibv_context* verbs;
  Connections connections;
  const Attributes& facts;
  PortBook ports;
  ChannelBook channels;
  // Of our IPv6 address: where link-local addresses are.
  std::uint32_t interface;

  // nullptr: none could be made; errno tells.
  ibv_pd* default_domain();

 private:
  std::mutex mutex_;
  ibv_pd* domain_ = nullptr;
};

// Opens the device at its first call; nullptr: it could not, errno tells, and a sentence was printed.
Host* host();

}  // namespace weft::live::rdmacm
