// Where and in which order packets are placed.
#include "check/delivery.h"

#include <gtest/gtest.h>

namespace weft::check {
namespace {

constexpr End kRequester{{0}, {10}};
constexpr End kResponder{{1}, {20}};
constexpr std::uint64_t kMemory = 0x1000;

// One connection in roce, whose requester writes messages of a byte each.
struct OneConnection {
  OneConnection() {
    Region region;
    region.key = {7};
    region.address = kMemory;
    region.length = 1000;
    region.access = kLocalWrite | kRemoteWrite;
    ledger.region(kResponder.host, {0}, region);
    connect();
  }
  void connect() {
    QpFacts from, to;
    from.self = to.peer = kRequester;
    from.peer = to.self = kResponder;
    to.access = kRemoteWrite;
    ledger.connected(from);
    ledger.connected(to);
  }
  // A message is posted, and its packet placed.
  void write(std::uint32_t psn) {
    const Sge byte{0, 1, {}};
    SendWr wr;
    wr.wr_id = written + 1;
    wr.opcode = WrOpcode::kWrite;
    wr.flags = kSendInline;
    wr.sges = {&byte, 1};
    wr.remote_address = kMemory + written++;
    wr.rkey = {7};
    const std::uint8_t content = 1;
    ledger.posted_send(kRequester, wr, {&content, 1}, {});
    place(psn, written - 1);
  }
  void place(std::uint32_t psn, std::uint64_t offset) {
    wire::Header h;
    h.opcode = wire::kWriteOnly;
    h.dest_qp = kResponder.qpn;
    h.psn = {psn};
    delivery.placed({kResponder.host, kResponder.qpn, {0}, offset, 0, 1}, h, {}, {});
  }
  Report report;
  Ledger ledger{report};
  Delivery delivery{ledger, report};
  std::uint64_t written = 0;
};

TEST(Delivery, PacketsOfRoceArePlacedInOrder) {
  OneConnection w;
  for (const std::uint32_t psn : {5U, 6U, 7U}) w.write(psn);
  EXPECT_TRUE(w.report.clean()) << w.report.text();
  w.write(6);
  EXPECT_EQ(w.report.total(), 1U);
}

TEST(Delivery, TheOrderBeginsAnewWithAConnectionThatHasTheNumbersOfAnotherBefore) {
  OneConnection w;
  for (const std::uint32_t psn : {0U, 1U, 2U}) w.write(psn);
  w.ledger.destroyed(kRequester);
  w.ledger.destroyed(kResponder);
  w.connect();
  for (const std::uint32_t psn : {0U, 1U, 2U}) w.write(psn);
  EXPECT_TRUE(w.report.clean()) << w.report.text();
  w.write(1);
  EXPECT_EQ(w.report.total(), 1U);
}

}  // namespace
}  // namespace weft::check
