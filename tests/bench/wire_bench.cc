// What bytes cost on their way in and out: the ICRC, decode, encode. `./dev bench wire`.
//
// Rows are named as `./dev bench transport` quotes them:
//   icrc_gbps/N          the ICRC of packets with N payload bytes, register kept per burst; GB/s of payload
//   icrc_ns/N            the same packet by packet: time of one, its IP and UDP headers included
//   identification_ns    solving for the IPv4 identification of one packet
//   decode_ns, encode_ns one header, over a mix of WRITE, SEND and ACK of the mode given as argument
//
// Packets are independent of each other, as in a receive batch, and stay in the first-level cache, as after
// the kernel's or the sender's copy.
#include <benchmark/benchmark.h>

#include <vector>

#include "core/base/prng.h"
#include "core/wire/bytes.h"
#include "core/wire/codec.h"
#include "core/wire/icrc.h"

namespace weft::wire {
namespace {

using Packet = std::vector<std::uint8_t>;

Packet write_packet(std::uint32_t payload, Mode mode = Mode::kIrn) {
  Header h;
  h.opcode = kWriteOnly;
  h.mode = mode;
  h.psn = {77};
  h.va = 0x7F00'0000'0000;
  h.dma_len = payload;
  Packet p(kMaxHeaderBytes);
  p.resize(encode(h, payload, p));
  p.resize(p.size() + payload + pad_bytes(payload) + kIcrcBytes, 0x5A);
  return p;
}

IpFacts facts_of(const Packet& p) {
  return {.source = Address::v4(127, 0, 0, 1),
          .destination = Address::v4(127, 0, 0, 2),
          .source_port = 0xC123,
          .udp_length = static_cast<std::uint16_t>(8 + p.size())};
}

void icrc_gbps(benchmark::State& state) {
  const auto payload = static_cast<std::uint32_t>(state.range(0));
  const Packet p = write_packet(payload);
  const std::span<const std::uint8_t> covered(p.data(), p.size() - kIcrcBytes);
  const Icrc base(facts_of(p));
  std::uint16_t index = 0;
  for (auto _ : state) {
    Icrc icrc = base.with_identification(index);
    icrc.packet(covered);
    benchmark::DoNotOptimize(icrc.value());
    index = (index + 1) & 0x3F;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(payload));
}
BENCHMARK(icrc_gbps)->Arg(64)->Arg(256)->Arg(1024)->Arg(4096);

void icrc_ns(benchmark::State& state) {
  const Packet p = write_packet(static_cast<std::uint32_t>(state.range(0)));
  const std::span<const std::uint8_t> covered(p.data(), p.size() - kIcrcBytes);
  IpFacts ip = facts_of(p);
  for (auto _ : state) {
    benchmark::DoNotOptimize(ip);
    Icrc icrc(ip);
    icrc.packet(covered);
    benchmark::DoNotOptimize(icrc.value());
  }
}
BENCHMARK(icrc_ns)->Arg(0)->Arg(64)->Arg(4096);

void identification_ns(benchmark::State& state) {
  const Packet p = write_packet(1024);
  const std::span<const std::uint8_t> covered(p.data(), p.size() - kIcrcBytes);
  const IpFacts ip = facts_of(p);
  Icrc zero(ip);
  zero.packet(covered);
  Icrc other = Icrc(ip).with_identification(0xBEEF);
  other.packet(covered);
  std::uint32_t received = other.value();
  for (auto _ : state) {
    benchmark::DoNotOptimize(received);
    std::uint16_t id = 0;
    benchmark::DoNotOptimize(
        solve_identification(zero.value(), received, bytes_after_identification(ip.udp_length), id));
    benchmark::DoNotOptimize(id);
  }
}
BENCHMARK(identification_ns);

// 1024 headers, shuffled so that the branch predictor cannot learn the sequence by heart: half data, half
// ACKs.
std::vector<Header> mix(Mode mode) {
  Prng prng(1);
  std::vector<Header> headers(1024);
  for (Header& h : headers) {
    constexpr std::uint8_t kOpcodes[] = {kWriteMiddle, kWriteOnly,   kSendOnly,  kAcknowledge,
                                         kAcknowledge, kAcknowledge, kWriteOnly, kAcknowledge};
    h.opcode = kOpcodes[prng.below(8)];
    h.mode = mode;
    h.psn = {static_cast<std::uint32_t>(prng.below(1U << 24U))};
    h.syndrome = kSyndromeAck;
  }
  return headers;
}

void decode_ns(benchmark::State& state) {
  std::vector<Packet> packets;
  for (const Header& h : mix(static_cast<Mode>(state.range(0)))) {
    Packet p(kMaxHeaderBytes);
    p.resize(encode(h, 0, p) + kIcrcBytes);
    packets.push_back(std::move(p));
  }
  std::size_t i = 0;
  Decoded d;
  DecodeError error{};
  for (auto _ : state) {
    benchmark::DoNotOptimize(decode(packets[i++ & 1023U], d, error));
    benchmark::DoNotOptimize(d);
  }
}
BENCHMARK(decode_ns)->ArgName("mode")->DenseRange(0, kModeCount - 1);

void encode_ns(benchmark::State& state) {
  const std::vector<Header> headers = mix(static_cast<Mode>(state.range(0)));
  std::uint8_t out[kMaxHeaderBytes];
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(encode(headers[i++ & 1023U], 64, out));
    benchmark::DoNotOptimize(out);
  }
}
BENCHMARK(encode_ns)->ArgName("mode")->DenseRange(0, kModeCount - 1);

}  // namespace
}  // namespace weft::wire
