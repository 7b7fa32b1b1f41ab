#include "live/engine/nic_page.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "core/wire/ip.h"
#include "live/engine/nic_state.h"
#include "live/wires/udp.h"

namespace weft::live {
namespace {

using page::Column;
using page::Sort;

enum TableNumber : std::uint32_t { kTotals, kQps, kCqs, kRegions };

constexpr Column kOwnColumns[] = {
    {"qps", Sort::kCount},         {"cqs", Sort::kCount},          {"srqs", Sort::kCount},
    {"regions", Sort::kCount},     {"region_bytes", Sort::kBytes}, {"trains_sent", Sort::kCount},
    {"frames_sent", Sort::kCount}, {"wire_full", Sort::kCount},    {"send_failed", Sort::kCount},
    {"rx_frames", Sort::kCount},   {"rx_icrc", Sort::kCount},
};
constexpr Column kQpColumns[] = {
    {"qpn", Sort::kCount},
    {"type", Sort::kWord},
    {"state", Sort::kWord},
    {"peer_prefix", Sort::kPrefix},
    {"peer", Sort::kAddress},
    {"rqpn", Sort::kCount},
    {"mode", Sort::kWord},
    {"sq_psn", Sort::kCount},
    {"rq_psn", Sort::kCount},
    {"mtu", Sort::kBytes},
    {"path_in_flight", Sort::kBytes},
};

// As the rdma tool calls them.
constexpr Column kCqColumns[] = {
    {"cqn", Sort::kCount}, {"cqe", Sort::kCount}, {"events", Sort::kCount}, {"overran", Sort::kCount}};
constexpr Column kRegionColumns[] = {{"mrn", Sort::kCount}, {"mrlen", Sort::kBytes}, {"access", Sort::kWord}};

const char* word_of(QpState s) {
  constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return kNames[static_cast<std::size_t>(s)];
}
const char* word_of(QpType t) { return t == QpType::kRc ? "RC" : t == QpType::kUc ? "UC" : "UD"; }

// Whose accesses a region takes besides its own program's reading: l(ocal) w(rite), r(emote) w(rite),
// r(emote) r(ead), a(tomic), b(ind).
std::string rights_of(std::uint8_t access) {
  std::string text;
  const auto add = [&](std::uint8_t right, char c) { text.push_back((access & right) != 0 ? c : '-'); };
  add(kLocalWrite, 'l');
  add(kRemoteWrite, 'w');
  add(kRemoteRead, 'r');
  add(kRemoteAtomic, 'a');
  add(kMwBind, 'b');
  return text;
}

std::uint64_t number_of(const wire::Address& a, std::size_t from, std::size_t to) {
  std::uint64_t n = 0;
  for (std::size_t i = from; i < to; ++i) n = n << 8U | a.bytes[i];
  return n;
}
std::uint64_t prefix_of(const wire::Address& a) {
  return wire::is_v4_mapped(a) ? page::kNoPrefix : number_of(a, 0, 8);
}
std::uint64_t address_of(const wire::Address& a) { return number_of(a, wire::is_v4_mapped(a) ? 12 : 8, 16); }

std::string title_of(const Addresses& own) {
  std::string title = to_text(own.first);
  if (own.both()) title.append(",").append(to_text(own.second));
  return title;
}

template <class T>
std::uint64_t present(const std::vector<std::unique_ptr<T>>& all) {
  std::uint64_t n = 0;
  for (const auto& one : all) n += one != nullptr ? 1U : 0U;
  return n;
}

}  // namespace

NicPage::NicPage(const Attributes& attributes) {
  std::vector<Column> totals(std::begin(kOwnColumns), std::end(kOwnColumns));
  for (const CounterInfo& c : kCounterInfo) totals.push_back({c.name, Sort::kCount});
  const page::Table tables[] = {{"nic", totals, 1},
                                {"qp", kQpColumns, kMostQps},
                                {"cq", kCqColumns, kMostCqs},
                                {"mr", kRegionColumns, kMostRegions}};
  page_ = page::Page::open("nic", title_of(attributes.own), tables);
}

void NicPage::clear_from(std::uint32_t table, std::uint32_t row, std::uint32_t& used) {
  for (std::uint32_t gone = row; gone < used; ++gone) page_->clear(table, gone);
  used = row;
}

std::uint64_t NicPage::completion_queues(Nic& nic) {
  if (nic.number() != 0) return 0;
  std::uint64_t n = 0;
  std::uint32_t row = 0;
  for (const auto& cq : nic.shared().cqs) {
    if (cq == nullptr) continue;
    ++n;
    if (row == kMostCqs) continue;
    const std::uint64_t cells[] = {cq->id.v, cq->entries, cq->channel != nullptr ? 1U : 0U,
                                   cq->overran.load(std::memory_order_relaxed) ? 1U : 0U};
    static_assert(std::size(cells) == std::size(kCqColumns));
    page_->put(kCqs, row++, cells);
  }
  clear_from(kCqs, row, cq_rows_);
  return n;
}

// A slice at a time, and a new list begins when the last one is whole.
void NicPage::regions(Nic& nic) {
  const std::vector<MrRecord>& mrs = nic.shared().mrs;
  if (nic.number() != 0) return;
  for (std::uint32_t n = 0; n < kSlice && place_ < mrs.size(); ++n) {
    const MrRecord& m = mrs[place_++];
    if (m.owner == nullptr) continue;
    ++regions_so_far_;
    bytes_so_far_ += m.length;
    if (next_row_ == kMostRegions) continue;
    const std::uint64_t cells[] = {m.lkey.v >> 8U, m.length, page::word(rights_of(m.access))};
    static_assert(std::size(cells) == std::size(kRegionColumns));
    page_->put(kRegions, next_row_++, cells);
    region_rows_ = std::max(region_rows_, next_row_);
  }
  if (place_ < mrs.size()) return;
  clear_from(kRegions, next_row_, region_rows_);
  regions_ = regions_so_far_;
  bytes_ = bytes_so_far_;
  place_ = next_row_ = 0;
  regions_so_far_ = bytes_so_far_ = 0;
}

void NicPage::totals(Nic& nic, std::uint64_t qps, std::uint64_t cqs) {
  const ShardCounters& s = nic.shard().counters();
  const WireCounters& w = nic.shard().wire_counters();
  std::uint64_t cells[std::size(kOwnColumns) + kCounterCount] = {
      qps,           cqs,         present(nic.srqs), regions_,    bytes_,   s.trains_sent,
      s.frames_sent, s.wire_full, s.send_failed,     w.rx_frames, w.rx_icrc};
  for (std::size_t i = 0; i < kCounterCount; ++i)
    cells[std::size(kOwnColumns) + i] = nic.device().counters().get(i);
  page_->put(kTotals, 0, cells);
}

std::uint64_t NicPage::queue_pairs(Nic& nic) {
  std::uint64_t qps = 0;
  std::uint32_t row = 0;
  // The Device's queue pairs lie at the places below max_qp.
  for (std::uint32_t place = 0; place < nic.device().config().max_qp; ++place) {
    const QpRecord* const qp = nic.qps[place].get();
    if (qp == nullptr) continue;
    ++qps;
    const auto attr = nic.device().query_qp(qp->qpn);
    if (row == kMostQps || !attr) continue;
    const bool path = qp->has_path;
    const std::uint64_t cells[] = {qp->qpn.v,
                                   page::word(word_of(qp->granted.type)),
                                   page::word(word_of(attr->state)),
                                   path ? prefix_of(nic.device().path(qp->path).peer) : page::kNoPrefix,
                                   path ? address_of(nic.device().path(qp->path).peer) : 0,
                                   attr->dest_qpn.v,
                                   page::word(wire::mode_name(attr->mode)),
                                   attr->sq_psn.v,
                                   attr->rq_psn.v,
                                   attr->mtu,
                                   path ? nic.device().path_in_flight(qp->path).n : 0};
    static_assert(std::size(cells) == std::size(kQpColumns));
    page_->put(kQps, row++, cells);
  }
  clear_from(kQps, row, qp_rows_);
  return qps;
}

void NicPage::publish_owned(Nic& nic) {
  if (page_ == nullptr) return;
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  page_->updated(
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count()));
  const std::uint64_t qps = queue_pairs(nic);
  const std::uint64_t cqs = completion_queues(nic);
  regions(nic);
  totals(nic, qps, cqs);
}

}  // namespace weft::live
