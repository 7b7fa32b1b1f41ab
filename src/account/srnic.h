// How much memory the tables of a NIC with selective repeat take, and how much of it SRNIC needs (SRNIC §2.2,
// §3.2, Tables 1 and 2). All in bytes.
#pragma once
#include <cstdint>

namespace weft::account::srnic {

constexpr std::uint64_t contexts(std::uint64_t queue_pairs, std::uint64_t each) { return queue_pairs * each; }
// Equation (1): how many contexts a memory holds.
constexpr std::uint64_t most_queue_pairs(std::uint64_t memory, std::uint64_t context) {
  return memory / context;
}
constexpr std::uint64_t translations(std::uint64_t registered, std::uint64_t page, std::uint64_t entry) {
  return registered / page * entry;
}
// One of the two caches, of send or of receive WQEs.
constexpr std::uint64_t wqe_cache(std::uint64_t queue_pairs, std::uint64_t wqes, std::uint64_t wqe) {
  return queue_pairs * wqes * wqe;
}
constexpr std::uint64_t bitmaps(std::uint64_t queue_pairs, std::uint64_t each, std::uint64_t slots) {
  return queue_pairs * each * slots / 8;
}
constexpr std::uint64_t reordering(std::uint64_t queue_pairs, std::uint64_t buffer) {
  return queue_pairs * buffer;
}
constexpr std::uint64_t outstanding_requests(std::uint64_t queue_pairs, std::uint64_t slots,
                                             std::uint64_t entry) {
  return queue_pairs * slots * entry;
}
constexpr std::uint64_t schedule_queue(std::uint64_t queue_pairs, std::uint64_t number) {
  return queue_pairs * number;
}
constexpr double connections_per_mib(double queue_pairs, double mib) { return queue_pairs / mib; }
// How much of a full packet's rate the larger headers take.
constexpr double goodput_loss_percent(std::uint32_t more, std::uint32_t headers, std::uint32_t mtu) {
  return 100.0 * more / (mtu + headers + more);
}

}  // namespace weft::account::srnic
