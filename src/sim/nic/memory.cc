#include "sim/nic/memory.h"

#include <algorithm>
#include <bit>

#include "account/srnic.h"
#include "sim/nic/context/store.h"

namespace weft::sim {
namespace {

constexpr std::uint32_t kQpnBits = 24;
constexpr std::uint32_t kDoorbellBytes = 8;
constexpr std::uint32_t kPacketPlaceBytes = 4;  // where a packet lies in the receiving buffer

std::string text(std::uint64_t n) { return std::to_string(n); }
std::uint32_t bits_for(std::uint64_t values) {
  return values <= 1 ? 1 : static_cast<std::uint32_t>(std::bit_width(values - 1));
}
Place place_of(Home home) { return home == Home::kBoard ? Place::kBoard : Place::kHost; }
Place place_of(Keeps keeps) { return keeps == Keeps::kHost ? Place::kHost : Place::kChip; }

class Account {
 public:
  Account(const Design& design, std::uint64_t n) : d_(design), n_(n) {}

  MemoryAccount all() {
    contexts();
    store();
    translation();
    wqes();
    scheduler();
    recovery();
    add("receiving buffer", Place::kChip, d_.buffers.receive.n, false, "shared by all packets that arrive");
    add("transmit buffer", Place::kChip, d_.buffers.transmit.n, false, "between the DMA engine and the MAC");
    return std::move(account_);
  }

 private:
  void add_bits(const char* name, Place place, std::uint64_t bits, bool grows, std::string how) {
    if (bits != 0) account_.items.push_back({name, place, bits, grows, std::move(how)});
  }
  void add(const char* name, Place place, std::uint64_t bytes, bool grows, std::string how) {
    add_bits(name, place, bytes * 8, grows, std::move(how));
  }
  void each(const char* name, Place place, std::uint64_t bytes, std::string how) {
    add(name, place, n_ * bytes, true, text(n_) + " queue pairs x " + std::move(how));
  }

  void contexts() {
    const ContextDesign& c = d_.context;
    const std::uint64_t stride = c.stride != 0 ? c.stride : c.bytes;
    const std::string width =
        text(stride) + " B" + (stride != c.bytes ? " (" + text(c.bytes) + " B aligned)" : "");
    if (c.policy == ContextPolicy::kOnChip) {
      add("contexts", Place::kChip, account::srnic::contexts(n_, stride), true,
          text(n_) + " queue pairs x " + width);
      return;
    }
    add("context cache", Place::kChip, c.cache * stride, false, text(c.cache) + " entries x " + width);
    add("contexts", place_of(c.home), account::srnic::contexts(n_, c.bytes), true,
        text(n_) + " queue pairs x " + text(c.bytes) + " B");
    // The table has its size whatever is in it (csRNA §5.2: 128K addresses).
    if (c.policy == ContextPolicy::kNonBlocking)
      add("SQ address table", Place::kChip, std::uint64_t{c.sq_table} * c.sq_table_bytes, false,
          text(c.sq_table) + " entries x " + text(c.sq_table_bytes) + " B");
  }

  void store() {
    const ContextDesign& c = d_.context;
    add("send window", Place::kChip, std::uint64_t{c.send_window} * c.send_window_bytes, false,
        text(c.send_window) + " packets in flight x " + text(c.send_window_bytes) + " B");
    if (c.policy == ContextPolicy::kOnChip) return;
    const std::uint64_t requests = std::uint64_t{c.channels} * c.ooo_capacity;
    if (c.policy == ContextPolicy::kNonBlocking) {
      const PendingBits b = pending_bits(c, false);
      const auto table = [&](const char* name, std::uint64_t rows, std::uint64_t bits) {
        add_bits(name, Place::kChip, rows * bits, false, text(rows) + " x " + text(bits) + " bits");
      };
      table("index FIFOs", requests, b.index);
      table("pending FIFO", 2 * requests, b.element);
      table("pending record table", requests, b.entry);
    }
    // A doorbell, a descriptor or the place of a packet: what the three channels keep under an index.
    const std::uint64_t kinds[] = {kDoorbellBytes, d_.wqe.send_bytes, kPacketPlaceBytes};
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < c.channels; ++i) bytes += kinds[std::min(i, 2U)];
    add("waiting SRAM", Place::kChip, c.ooo_capacity * bytes, false,
        text(c.ooo_capacity) + " indexes x " + text(bytes) + " B in " + text(c.channels) + " channels");
  }

  void translation() {
    const TranslationDesign& t = d_.translation;
    const std::uint64_t table = account::srnic::translations(t.reach.n, t.page.n, t.entry_bytes);
    const std::string whole = text(t.reach.n >> 20U) + " MiB in pages of " + text(t.page.n) + " B, " +
                              text(t.entry_bytes) + " B each";
    if (t.on_chip) {
      add("MTT", Place::kChip, table, false, whole);
    } else if (t.cache != 0) {
      add("MTT cache", Place::kChip, std::uint64_t{t.cache} * t.entry_bytes, false,
          text(t.cache) + " entries x " + text(t.entry_bytes) + " B");
      add("MTT", place_of(t.home), table, false, whole);
    }
    add("MPT", Place::kChip, std::uint64_t{t.mpt_entries} * t.mpt_entry_bytes, false,
        text(t.mpt_entries) + " regions x " + text(t.mpt_entry_bytes) + " B");
  }

  void wqes() {
    const WqeDesign& w = d_.wqe;
    each("send WQE cache", Place::kChip, account::srnic::wqe_cache(1, w.send_cache, w.send_bytes),
         text(w.send_cache) + " WQEs x " + text(w.send_bytes) + " B");
    each("receive WQE cache", Place::kChip, account::srnic::wqe_cache(1, w.receive_cache, w.receive_bytes),
         text(w.receive_cache) + " WQEs x " + text(w.receive_bytes) + " B");
    add("shared receive WQEs", Place::kChip, std::uint64_t{w.shared_receive_cache} * w.receive_bytes, false,
        text(w.shared_receive_cache) + " WQEs x " + text(w.receive_bytes) + " B");
  }

  void scheduler() {
    const SendSchedulerDesign& s = d_.scheduler;
    if (s.memory.n != 0) {
      add("SQ scheduler", Place::kChip, s.memory.n, false, "provisioned");
    } else {
      each("SQ scheduler", Place::kChip, account::srnic::schedule_queue(1, s.entry_bytes),
           text(s.entry_bytes) + " B in the schedule queue");
    }
  }

  void recovery() {
    const RecoveryDesign& r = d_.recovery;
    each("recovery state", Place::kChip, r.extra_context, text(r.extra_context) + " B of context");
    if (r.bitmaps != Keeps::kNothing)
      add_bits("bitmaps", place_of(r.bitmaps), n_ * r.bitmap_count * r.slots, true,
               text(n_) + " queue pairs x " + text(r.bitmap_count) + " bitmaps x " + text(r.slots) + " bits");
    if (r.reorder == Reorder::kPerQueuePair)
      each("reordering buffers", Place::kChip, account::srnic::reordering(1, r.reorder_buffer.n),
           text(r.reorder_buffer.n) + " B");
    if (r.reorder == Reorder::kShared)
      add("reordering buffer", Place::kChip, r.reorder_buffer.n, false, "shared by all queue pairs");
    each("outstanding requests", Place::kChip,
         account::srnic::outstanding_requests(1, r.slots, r.request_entry),
         text(r.slots) + " packets x " + text(r.request_entry) + " B");
  }

  const Design& d_;
  std::uint64_t n_;
  MemoryAccount account_;
};

}  // namespace

const char* place_name(Place place) {
  constexpr const char* kNames[] = {"chip", "board", "host"};
  return kNames[static_cast<std::size_t>(place)];
}

std::uint64_t MemoryAccount::total(Place place) const {
  std::uint64_t sum = 0;
  for (const MemoryItem& i : items) sum += i.place == place ? i.bytes() : 0;
  return sum;
}

std::uint64_t MemoryAccount::bytes(std::string_view item, Place place) const {
  for (const MemoryItem& i : items) {
    if (i.place == place && item == i.name) return i.bytes();
  }
  return 0;
}

double MemoryAccount::percent(const MemoryItem& item) const {
  const std::uint64_t whole = total(Place::kChip);
  return whole == 0 ? 0 : 100.0 * static_cast<double>(item.bytes()) / static_cast<double>(whole);
}

Result<MemoryAccount> memory_of(const Design& design, std::uint64_t queue_pairs) {
  const std::uint64_t most = most_queue_pairs(design.context);
  if (queue_pairs == 0 || queue_pairs > most)
    return fail(design.name + ": it can have 1 to " + text(most) + " queue pairs, not " + text(queue_pairs));
  return Account(design, queue_pairs).all();
}

std::uint64_t queue_pairs_within(const Design& design, Bytes chip) {
  std::uint64_t low = 0;
  std::uint64_t high = most_queue_pairs(design.context);
  while (low < high) {
    const std::uint64_t n = low + (high - low + 1) / 2;
    if (Account(design, n).all().total(Place::kChip) <= chip.n) {
      low = n;
    } else {
      high = n - 1;
    }
  }
  return low;
}

PendingBits pending_bits(const ContextDesign& design, bool printed) {
  const std::uint32_t count = bits_for(std::uint64_t{design.channels} * design.ooo_capacity + 1);
  PendingBits b;
  b.index = design.index_bits;
  // dma_posted, QPN, channel, index.
  b.element = 1 + kQpnBits + bits_for(design.channels) + design.index_bits + (printed ? 0 : count);
  // is_vld, QPN, pnd_cnt, and dma_rtn or the tickets of the next and the last request.
  b.entry = 1 + kQpnBits + count + (printed ? 1 : 2 * count);
  return b;
}

std::uint64_t bits_per_capacity(const ContextDesign& design, bool printed) {
  const PendingBits b = pending_bits(design, printed);
  return std::uint64_t{design.channels} * (b.index + 2 * b.element + b.entry);
}

}  // namespace weft::sim
