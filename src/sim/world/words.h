// Settings that take a word, and what each word means: the parser, the record and `weft sim --list` read the
// same rows.
#pragma once
#include <array>
#include <vector>

#include "core/transport/cc/controller.h"
#include "core/transport/loss/scheme.h"
#include "sim/world/scenario.h"

namespace weft::sim {

template <class T>
struct Row {
  const char* word;
  T value;
  const char* text;
};
template <class T>
Row(const char*, T, const char*) -> Row<T>;
inline constexpr std::array kOps{Row{"write", WrOpcode::kWrite, "RDMA WRITE"},
                                 Row{"write_imm", WrOpcode::kWriteImm, "RDMA WRITE with immediate"},
                                 Row{"send", WrOpcode::kSend, "SEND into a posted receive"},
                                 Row{"send_imm", WrOpcode::kSendImm, "SEND with immediate"},
                                 Row{"read", WrOpcode::kRead, "RDMA READ"},
                                 Row{"compare_swap", WrOpcode::kCompareSwap, "atomic compare and swap"},
                                 Row{"fetch_add", WrOpcode::kFetchAdd, "atomic fetch and add"}};
inline constexpr std::array kRoutings{Row{"ecmp", Routing::kEcmp, "one way per flow, by hash"},
                                      Row{"spray", Routing::kSpray, "a random way for every packet"},
                                      Row{"fixed", Routing::kFixed, "one way per destination"}};
inline constexpr std::array kSwitchKinds{
    Row{"output-queued", SwitchKind::kOutputQueued, "shared buffer, dynamic thresholds"},
    Row{"input-queued", SwitchKind::kInputQueued, "a buffer per port, virtual output queues, round robin"}};
inline constexpr std::array kEcnKinds{
    Row{"none", EcnConfig::Kind::kNone, "no packet is marked"},
    Row{"step", EcnConfig::Kind::kStep, "every packet that joins a queue longer than ecn_low"},
    Row{"red", EcnConfig::Kind::kRed, "with a probability that rises from ecn_low to ecn_high"}};
inline constexpr std::array kRtos{
    Row{"static", Rto::kStatic, "rto_low or rto_high, by how much is in flight"},
    Row{"dynamic", Rto::kDynamic, "measured, as TCP does: rto_high at first, never below rto_low"},
    Row{"adaptive", Rto::kFloored, "as the soft NIC's: static, but no less than what was measured"}};
inline constexpr std::array kAcknowledges{
    Row{"early", AcceleratorSpec::Acknowledge::kEarly, "the near box acknowledges what it has"},
    Row{"far", AcceleratorSpec::Acknowledge::kFar, "the near box acknowledges what both boxes have"},
    Row{"none", AcceleratorSpec::Acknowledge::kNone, "there are no boxes"}};
inline constexpr std::array kVerbs{
    Row{"write", Verb::kWrite, "RDMA WRITE"}, Row{"send", Verb::kSend, "SEND"},
    Row{"read", Verb::kRead, "RDMA READ, posted by the host that the bytes go to"},
    Row{"mixed", Verb::kMixed, "each flow one of them at random"}};

inline constexpr std::array kMessagePatterns{
    Row{"ping-pong", MessagePattern::kPingPong, "requests and responses between two hosts"},
    Row{"incast", MessagePattern::kIncast, "messages or requests of many hosts to one"},
    Row{"all-to-all", MessagePattern::kAllToAll, "requests of every host to every other"}};
inline constexpr std::array kOver{
    Row{"channels", false, "the middleware's channels"},
    Row{"verbs", true, "SENDs on plain queue pairs: nobody knows what the far program has taken"}};

// The transport of a run: core's in one of its modes, or TCP.
struct TransportChoice {
  wire::Mode mode{};
  bool tcp = false;
  bool operator==(const TransportChoice&) const = default;
};
inline std::vector<Row<TransportChoice>> modes() {
  std::vector<Row<TransportChoice>> rows;
  for (std::size_t i = 0; i < wire::kModeCount; ++i)
    rows.push_back({wire::kModeNames[i].data(), {static_cast<wire::Mode>(i)}, loss_schemes()[i]->text});
  rows.push_back({"tcp", {{}, true}, "iWARP's transport: slow start, AIMD, fast recovery with SACK"});
  return rows;
}
inline std::vector<Row<tcp::Flavour>> flavours() {
  std::vector<Row<tcp::Flavour>> rows;
  for (const tcp::FlavourRow& f : tcp::flavours()) rows.push_back({f.name, f.flavour, f.text});
  return rows;
}

// The loss-recovery schemes that a mode may use instead of its own.
inline std::vector<Row<const LossScheme*>> variants() {
  std::vector<Row<const LossScheme*>> rows{{"own", nullptr, "the mode's own scheme"}};
  for (const LossScheme* scheme : loss_schemes().subspan(wire::kModeCount))
    rows.push_back({scheme->name, scheme, scheme->text});
  return rows;
}

inline std::vector<Row<std::uint8_t>> controller_words() {
  std::vector<Row<std::uint8_t>> rows;
  for (const Controller* c : controllers())
    rows.push_back({c->name, static_cast<std::uint8_t>(rows.size()), c->text});
  return rows;
}

template <class Table, class T>
const char* word_for(const Table& table, T value) {
  for (const auto& row : table) {
    if (row.value == value) return row.word;
  }
  return "?";
}

}  // namespace weft::sim
