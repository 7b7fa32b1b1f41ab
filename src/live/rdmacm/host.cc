#include "live/rdmacm/host.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "live/abi/handles.h"
#include "live/wires/entropy.h"

namespace weft::live::rdmacm {
namespace {

// Linux's own range for ports that nobody chose.
constexpr std::uint16_t kFirstFree = 32768;
constexpr std::uint16_t kLastFree = 60999;

std::mutex opening;
std::atomic<Host*> opened{
    nullptr};  // never freed: threads of the program may call us until the process has ended

// Every connection is told to the peer as over. Objects stay: other threads may still hold them.
void say_goodbye() {
  if (Host* const h = opened.load(); h != nullptr) h->connections.end_all();
}

Host* open_host() {
  ibv_device** const list = ibv_get_device_list(nullptr);
  if (list == nullptr) return nullptr;
  ibv_context* const verbs = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  if (verbs == nullptr) return nullptr;
  auto host = std::make_unique<Host>(verbs, abi::engine_of(verbs));
  std::atexit(say_goodbye);
  return host.release();
}

}  // namespace

// Processes of one address choose different ports, as far as chance goes. Their numbers may be the same, if
// each is in a container.
PortBook::PortBook() : next_(unpredictable<std::uint16_t>()) {}

std::uint16_t PortBook::take(rdma_port_space space, std::uint16_t port, bool shared) {
  const std::lock_guard lock(mutex_);
  const auto free = [&](std::uint16_t p) { return used_.find({space, p}) == used_.end(); };
  if (port == 0) {
    constexpr std::uint32_t kCount = kLastFree - kFirstFree + 1;
    std::uint32_t left = kCount;
    do {
      port = static_cast<std::uint16_t>(kFirstFree + next_++ % kCount);
    } while (!free(port) && --left != 0);
    if (left == 0) return 0;
  }
  Users& users = used_[{space, port}];
  if (users.count != 0 && !(users.shared && shared)) return 0;
  ++users.count;
  users.shared = shared;
  return port;
}

void PortBook::give_back(rdma_port_space space, std::uint16_t port) {
  const std::lock_guard lock(mutex_);
  const auto it = used_.find({space, port});
  if (it != used_.end() && --it->second.count == 0) used_.erase(it);
}

Host::Host(ibv_context* v, const Context& engine)
    : verbs(v), connections(engine.connections()), facts(engine.attributes()) {
  wire::Address v6;
  v6.bytes[15] = 1;
  interface = interface_of(facts.own.towards(v6));
}

ibv_pd* Host::default_domain() {
  const std::lock_guard lock(mutex_);
  if (domain_ == nullptr) domain_ = ibv_alloc_pd(verbs);
  return domain_;
}

Host* host() {
  if (Host* const h = opened.load(std::memory_order_acquire); h != nullptr) return h;
  const std::lock_guard lock(opening);
  if (Host* const h = opened.load(); h != nullptr) return h;
  errno = 0;
  Host* const h = open_host();
  if (h == nullptr && errno == 0) errno = ENODEV;
  opened.store(h, std::memory_order_release);
  return h;
}

}  // namespace weft::live::rdmacm
