// What the logic of boxes costs per data frame, without bytes: `./dev bench wan_logic [--json F]`; `./dev
// bench wan` runs it, too.
//
// Two boxes face each other; what one gives the other takes. An iteration sends 32 WRITEs of one packet:
//
//   near_ns      a frame comes from the site, is kept, and leaves for the line
//   far_ns       it comes from the line, is kept, and leaves for its endpoint
//   ack_ns       the near box's early acknowledgement, for each data frame
//   done_ns      at the far box: the endpoint's acknowledgement ends there; at the near box: what it freed,
//   for
//                each data frame, without the messages between boxes
//   report_ns    one message between the boxes, signed and verified
//   reports      of these, for each data frame
//
// With parity 16+2 ("parity" in a row's name) near_ns has each group's membership, its signature and the
// frames of its parity in it, far_ns what the far box does with these. "coding" is what the bytes cost beside
// that:
//
//   encode_ns    two rows of parity over a data frame of 4 KiB, for each data frame
//   restore_us   one lost frame of sixteen, computed from the others
//
// "hot" is one connection that asks for an acknowledgement every 32 packets. "10k" and "20k" draw each frame
// at random from 10 000 or 20 000 connections, all of them owned, which ask with every packet: then each
// frame has its own acknowledgement, and its own report. Nothing may be allocated meanwhile: `allocations`.
// `bytes_a_connection` is what a box takes of memory for each, the store's bytes aside. Processor time of the
// thread, medians of nine repetitions; the process pins itself to one core.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/base/prng.h"
#include "tests/bench/counted_new.h"
#include "tests/bench/program.h"
#include "wan/code/group.h"
#include "wan/logic/box.h"
#include "wan/logic/halves.h"
#include "wan/logic/parity_frame.h"

namespace weft::wan {
namespace {

constexpr std::uint32_t kBatch = 32;
constexpr wire::Address kA = wire::Address::v4(10, 0, 0, 1);
constexpr wire::Address kB = wire::Address::v4(10, 0, 1, 1);

double seconds_of_thread() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Bytes that are allocated just now.
std::size_t memory_in_use() {
  const struct mallinfo2 m = mallinfo2();
  return m.uordblks + m.hblkhd;
}

struct Boxes {
  Boxes(std::uint32_t connections, ParityTerms parity)
      : expected(connections, Seq::start({100})), sent(connections, Seq::start({100})) {
    for (std::uint64_t i = 0; i < 2; ++i) {
      BoxConfig c;
      c.instance = c.seed = i + 1;
      c.secret = {1, 2, 3};
      c.halves = connections;
      c.store = Bytes{256'000'000};
      c.calm = 1;
      c.quiet = c.patience = c.give_up = c.site_timeout = seconds(100'000);
      c.hello = seconds(1000);
      c.line_timeout = seconds(100'000);
      c.least_line_timeout = seconds(100'000);
      c.parity = parity;
      c.parity_wait = seconds(1000);
      box[i] = std::make_unique<Box>(c);
    }
    for (std::uint32_t i = 0; i < connections; ++i) connect(i);
    for (int round = 0; round < 4; ++round) {
      for (std::uint32_t i = 0; i < connections; ++i) {
        write(i, true);
        settle();
      }
    }
    if (box[0]->owned() != connections || box[1]->owned() != connections) {
      std::fprintf(stderr, "weft-bench-wan_logic: %u of %u connections are owned\n", box[0]->owned(),
                   connections);
      std::exit(1);
    }
  }
  void connect(std::uint32_t i) {
    wire::CmMessage m;
    m.kind = wire::CmKind::kReq;
    m.local_id = i + 1;
    m.qpn = {i + 100'000};
    m.starting_psn = {5000};
    m.mtu = 5;
    say(0, m);
    m = {};
    m.kind = wire::CmKind::kRep;
    m.local_id = i + 1;
    m.remote_id = i + 1;
    m.qpn = {i};
    m.starting_psn = {100};
    say(1, m);
  }
  void say(std::uint32_t site, const wire::CmMessage& m) {
    wire::Mad mad;
    encode(m, mad);
    Frame f;
    f.header = wire::mad_packet({7});
    f.payload = wire::kMadBytes;
    f.source = site == 0 ? kA : kB;
    f.destination = site == 0 ? kB : kA;
    for (std::uint32_t k = 0; k < 2; ++k) {
      const std::uint32_t which = k == 0 ? site : 1 - site;
      box[which]->on_frame(now, k == 0 ? Side::kSite : Side::kLine, f, mad);
      Out out;
      while (box[which]->poll(now, k == 0 ? Side::kLine : Side::kSite, out)) {
      }
    }
  }
  Frame data(std::uint32_t i, bool asks) {
    Frame f;
    f.header.opcode = wire::kWriteOnly;
    f.header.bits = asks ? std::uint8_t{wire::kAckReq} : std::uint8_t{0};
    f.header.dest_qp = {i};
    f.header.psn = sent[i].wire();
    ++sent[i];
    f.header.dma_len = 4096;
    f.payload = 4096;
    f.source = kA;
    f.destination = kB;
    f.body = {0};
    return f;
  }
  void write(std::uint32_t i, bool asks) { box[0]->on_frame(now, Side::kSite, data(i, asks)); }
  Frame acknowledgement(std::uint32_t i) {
    Frame f;
    f.header.opcode = wire::kAcknowledge;
    f.header.dest_qp = {i + 100'000};
    f.header.psn = (expected[i] - 1).wire();
    f.header.set_aeth(wire::kSyndromeAck, static_cast<std::uint32_t>(expected[i].v - Seq::start({100}).v));
    f.source = kB;
    f.destination = kA;
    return f;
  }
  // Frames of both directions, until nothing moves: for setting up.
  void settle() {
    now = now + microseconds(1);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t w = 0; w < 2; ++w) {
        if (box[w]->next_deadline() <= now) box[w]->on_timer(now);
        for (Out out; box[w]->poll(now, Side::kLine, out); moved = true) {
          if (!out.parity.empty()) out.frame.body = {0};
          box[1 - w]->on_frame(now, Side::kLine, out.frame,
                               out.mad != nullptr ? std::span<const std::uint8_t>(*out.mad) : out.parity);
        }
        for (Out out; box[w]->poll(now, Side::kSite, out); moved = true) {
          const wire::Header& h = out.frame.header;
          const std::uint32_t i = h.dest_qp.v;
          if (w == 1 && is_push(h.opcode) && expand(h.psn, expected[i]) == expected[i]) {
            ++expected[i];
            box[1]->on_frame(now, Side::kSite, acknowledgement(i));
          }
          if (w == 0 && h.opcode == wire::kAcknowledge && h.syndrome > wire::kSyndromeAck) {
            // Asked again: everything from there on.
            const std::uint32_t c = i - 100'000;
            const Seq top = sent[c];
            for (sent[c] = expand(h.psn, top); sent[c] < top;) write(c, true);
          }
        }
        for (BodyId b; box[w]->poll_released(b);) {
        }
      }
    }
  }
  std::unique_ptr<Box> box[2];
  std::vector<Seq> expected;  // by responders
  std::vector<Seq> sent;
  Time now = Time{} + seconds(1);
};

// What is on the line: with the header of its parity, if it is that.
struct OnLine {
  Frame frame;
  ParityBytes bytes;
  std::size_t size = 0;
};

void logic(benchmark::State& state, std::uint32_t connections, ParityTerms parity) {
  const std::size_t before = memory_in_use();
  Boxes b(connections, parity);
  const std::size_t memory = memory_in_use() - before;
  Prng random(1);
  double near = 0, far = 0, ack = 0, done = 0, report = 0;
  std::uint64_t frames = 0, reports = 0;
  std::vector<OnLine> line(kBatch * 3);
  std::vector<Frame> site(kBatch);
  std::vector<Frame> answers(kBatch);
  std::vector<wire::Mad> mads(kBatch);
  std::vector<Frame> messages(kBatch);
  std::vector<std::uint32_t> who(kBatch);
  std::size_t allocated = 0;
  const auto body = [&] {
    for (std::uint32_t i = 0; i < kBatch; ++i) {
      who[i] = connections == 1 ? 0 : static_cast<std::uint32_t>(random.below(connections));
      site[i] = b.data(who[i], connections != 1 || i + 1 == kBatch);
    }
    b.now = b.now + microseconds(10);
    Out out;
    std::size_t n = 0;
    double t0 = seconds_of_thread();
    for (const Frame& f : site) b.box[0]->on_frame(b.now, Side::kSite, f);
    std::size_t data = 0;
    while (n < line.size() && b.box[0]->poll(b.now, Side::kLine, out)) {
      OnLine& l = line[n++];
      l.frame = out.frame;
      l.size = out.parity.size();
      std::copy(out.parity.begin(), out.parity.end(), l.bytes.begin());
      data += l.size == 0 ? 1 : 0;
      if (l.size != 0) l.frame.body = {0};
    }
    double t1 = seconds_of_thread();
    near += t1 - t0;
    CHECK_OP(data, ==, kBatch);
    CHECK_OP(n - data, ==, kBatch / std::max<std::size_t>(parity.data, 1) * parity.repair);
    while (b.box[0]->poll(b.now, Side::kSite, out)) benchmark::DoNotOptimize(out.frame.header.psn);
    double t2 = seconds_of_thread();
    ack += t2 - t1;
    for (std::size_t i = 0; i < n; ++i)
      b.box[1]->on_frame(b.now, Side::kLine, line[i].frame, std::span(line[i].bytes).first(line[i].size));
    if (Restore r; b.box[1]->poll_restore(r)) std::abort();
    n = 0;
    while (b.box[1]->poll(b.now, Side::kSite, out) && n < kBatch) site[n++] = out.frame;
    double t3 = seconds_of_thread();
    far += t3 - t2;
    CHECK_OP(n, ==, kBatch);
    // The endpoint: an acknowledgement for each packet that asks.
    std::size_t acks = 0;
    for (const Frame& f : site) {
      ++b.expected[f.header.dest_qp.v];
      if ((f.header.bits & wire::kAckReq) != 0) answers[acks++] = b.acknowledgement(f.header.dest_qp.v);
    }
    double t4 = seconds_of_thread();
    for (std::size_t i = 0; i < acks; ++i) b.box[1]->on_frame(b.now, Side::kSite, answers[i]);
    double t5 = seconds_of_thread();
    done += t5 - t4;
    n = 0;
    while (n < kBatch && b.box[1]->poll(b.now, Side::kLine, out)) {
      messages[n] = out.frame;
      if (out.mad != nullptr) mads[n] = *out.mad;
      ++n;
    }
    for (std::size_t i = 0; i < n; ++i) b.box[0]->on_frame(b.now, Side::kLine, messages[i], mads[i]);
    double t6 = seconds_of_thread();
    report += t6 - t5;
    reports += n;
    for (BodyId id; b.box[0]->poll_released(id);) benchmark::DoNotOptimize(id);
    for (BodyId id; b.box[1]->poll_released(id);) benchmark::DoNotOptimize(id);
    while (b.box[0]->poll(b.now, Side::kLine, out)) benchmark::DoNotOptimize(out.frame.header.psn);
    done += seconds_of_thread() - t6;
    frames += kBatch;
  };
  for (int i = 0; i < 2000; ++i) body();  // tables and rings have their sizes
  near = far = ack = done = report = 0;
  frames = reports = 0;
  allocated = allocations;
  for (auto _ : state) body();
  allocated = allocations - allocated;
  const auto each = [&](double t) { return t * 1e9 / static_cast<double>(frames); };
  state.counters["near_ns"] = each(near);
  state.counters["far_ns"] = each(far);
  state.counters["ack_ns"] = each(ack);
  state.counters["done_ns"] = each(done);
  state.counters["report_ns"] = reports == 0 ? 0 : report * 1e9 / static_cast<double>(reports);
  state.counters["reports"] = static_cast<double>(reports) / static_cast<double>(frames);
  state.counters["frames_per_s"] = 1e9 / std::max(each(near), each(far));
  state.counters["bytes_a_connection"] = static_cast<double>(memory) / (2.0 * connections);
  state.counters["allocations"] = static_cast<double>(allocated);
}

void coding(benchmark::State& state) {
  constexpr std::uint32_t kBytes = 4096 + 28 + 12 + 16 + 4;
  constexpr std::uint32_t kFrames = 256;  // 1 MB: as many as a box keeps of the line
  std::vector<std::uint8_t> bytes(std::size_t{kBytes} * kFrames);
  Prng random(1);
  for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random.next());
  const auto frame = [&](std::uint32_t i) {
    return std::span<const std::uint8_t>(bytes).subspan(std::size_t{i % kFrames} * kBytes, kBytes);
  };
  Encoder e(2, kBytes);
  Decoder d(kBytes);
  Restore r;
  r.members = 16;
  r.here.fill(kNoBody);
  for (std::uint32_t i = 0; i < 16; ++i) r.here[i] = i == 7 ? kNoBody : BodyId{i};
  r.wanted = 1U << 7U;
  r.rows = 1;
  std::uint32_t next = 0;
  double encode = 0, restore = 0;
  std::uint64_t frames = 0, restored = 0;
  for (auto _ : state) {
    double t0 = seconds_of_thread();
    for (std::uint32_t g = 0; g < 4; ++g) {
      e.begin();
      for (std::uint32_t i = 0; i < 16; ++i) e.add(i, frame(next++));
      benchmark::DoNotOptimize(e.row(1)[0]);
    }
    double t1 = seconds_of_thread();
    encode += t1 - t0;
    frames += 64;
    (void)compute(
        r, d, [&](BodyId b) { return frame(b.v); }, [&](const Restore::Row&) { return e.row(0); },
        [&](std::span<const std::uint8_t> block) { benchmark::DoNotOptimize(block[0]); });
    restore += seconds_of_thread() - t1;
    ++restored;
  }
  state.counters["encode_ns"] = encode * 1e9 / static_cast<double>(frames);
  state.counters["restore_us"] = restore * 1e6 / static_cast<double>(restored);
}

void register_all() {
  constexpr ParityTerms kParity{16, 2};
  benchmark::RegisterBenchmark("coding", coding)->Repetitions(9)->ReportAggregatesOnly(true)->MinTime(0.2);
  struct Row {
    const char* name;
    std::uint32_t connections;
    ParityTerms parity;
  };
  for (const Row row : {Row{"hot", 1, {}}, Row{"hot, parity", 1, kParity}, Row{"10k", 10'000, {}},
                        Row{"20k", 20'000, {}}, Row{"10k, parity", 10'000, kParity}}) {
    benchmark::RegisterBenchmark(row.name,
                                 [row](benchmark::State& s) { logic(s, row.connections, row.parity); })
        ->Repetitions(9)
        ->ReportAggregatesOnly(true)
        ->MinTime(0.2);
  }
}

}  // namespace
}  // namespace weft::wan

int main(int argc, char** argv) {
  return weft::bench::program("weft-bench-wan_logic", argc, argv, weft::wan::register_all);
}
