// The calls of the C interface that only look: a channel's numbers, a page about a context, where the time of
// a message went, and what took too long.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "channel/report.h"
#include "channel_c/edge.h"

using namespace weft::channel;

namespace {

// What this library knows of a struct of the program's that has `size` bytes. A program that is newer than
// the library has fields that nobody fills: they are 0.
template <class Known>
void give(const Known& known, void* out, std::size_t size) {
  std::memcpy(out, &known, std::min(size, sizeof known));
  if (size > sizeof known) std::memset(static_cast<char*>(out) + sizeof known, 0, size - sizeof known);
}

// How the program waited, if it did.
std::string sentence(const weft::channel::WaitCounts& n) {
  if (n.busy == 0 && n.sleeps == 0) return {};
  return "looked busily " + std::to_string(n.busy) + " times, slept " + std::to_string(n.sleeps) +
         " times, woken by events " + std::to_string(n.woken) + ", by deadlines " +
         std::to_string(n.deadlines) + "\n";
}

}  // namespace

void weft_counts(const weft_channel* channel, weft_channel_counts* out, size_t size) {
  const Channel& c = *of(channel);
  const weft::channel::ChannelStat s = stat_of(c);
  weft_channel_counts all{};
  all.sent = s.counts.sent;
  all.sent_bytes = s.counts.sent_bytes;
  all.received = s.counts.received;
  all.received_bytes = s.counts.received_bytes;
  all.acks = s.counts.acks;
  all.nops = s.counts.nops;
  all.probes = s.counts.probes;
  all.fragments = s.counts.fragments;
  all.waited = s.counts.waited;
  all.reconnects = s.counts.reconnects;
  all.in_flight = s.in_flight;
  all.queued = s.queued;
  all.held = s.held;
  all.calls = s.calls;
  all.rtt_last_ns = static_cast<std::uint64_t>(s.round_trips.last.ns());
  all.rtt_least_ns = static_cast<std::uint64_t>(s.round_trips.least.ns());
  all.rtt_smoothed_ns = static_cast<std::uint64_t>(s.round_trips.smoothed.ns());
  all.rtt_count = s.round_trips.count;
  all.carrier = c.carrier == weft::channel::Carrier::kTcp ? WEFT_TCP : WEFT_RDMA;
  all.moves = s.counts.moves;
  give(all, out, size);
}

size_t weft_report(const weft_context* c, char* out, size_t room) {
  std::size_t length = 0;
  const auto call = [&] {
    const std::string page = report(*c->context, sentence(c->waiting.counts()));
    say(page, out, room);
    length = page.size();
    return 0;
  };
  (void)at_edge_of(c, call, out, room);
  return length;
}

int weft_trace(const weft_message* m, weft_message_trace* out, size_t size) {
  weft::channel::Trace t;
  if (of(m)->channel != nullptr && inherited(to(of(m)->channel))) return ECHILD;
  if (of(m)->channel == nullptr || !of(m)->channel->context->trace_of(*of(m), t)) return ENOENT;
  weft_message_trace all{};
  all.id = t.id;
  all.left_ns = t.left_ns;
  all.arrived_ns = t.arrived_ns;
  all.offset_known = t.offset_known ? 1 : 0;
  if (t.offset_known) {
    all.offset_ns = t.offset_ns;
    all.network_ns = t.network_ns;
    all.error_ns = t.error_ns;
  }
  all.queued_ns = t.queued_ns;
  all.round_ns = t.round_ns;
  all.there_ns = t.there_ns;
  all.response = t.response ? 1 : 0;
  give(all, out, size);
  return 0;
}

size_t weft_slow(weft_context* c, char* out, size_t room) {
  std::size_t length = 0;
  const auto call = [&] {
    weft::channel::SlowEntry e;
    if (!c->context->next_slow(e)) return 0;
    const std::string line = sentence(e);
    say(line, out, room);
    length = line.size();
    return 0;
  };
  (void)at_edge_of(c, call, out, room);
  return length;
}
