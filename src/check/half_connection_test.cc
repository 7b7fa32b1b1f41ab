// One half connection, packet by packet: what its observer must let pass, and what it must not.
#include "check/half_connection.h"

#include <gtest/gtest.h>

namespace weft::check {
namespace {

Time at(std::int64_t us) { return Time{}.after(microseconds(us)); }

// READs in irn, numbered from 0 like their responses; neither end may have more than two outstanding.
struct Reads {
  explicit Reads(bool remembers = true) : facts(known(remembers)) {}
  static QpFacts known(bool remembers) {
    QpFacts f;
    f.mode = wire::Mode::kIrn;
    f.reads_kept = 2;
    f.remembers_sacks = remembers;
    f.selective_rto = microseconds(100);
    return f;
  }
  static wire::Header header(std::uint8_t opcode, std::uint32_t psn) {
    wire::Header h;
    h.mode = wire::Mode::kIrn;
    h.opcode = opcode;
    h.psn = {psn};
    return h;
  }
  // Asked for, and the request arrives.
  void read(std::uint32_t number, std::uint32_t packets, Time now) {
    const Sge all{0, packets * 1024, {}};
    SendWr wr;
    wr.opcode = WrOpcode::kRead;
    wr.sges = {&all, 1};
    half.posted(wr);
    wire::Header h = header(wire::kReadRequest, number);
    h.sn = number;
    h.dma_len = packets * 1024;
    h.bits = wire::kAckReq;
    half.request_sent(h, 0, now);
    half.request_arrived(h);
  }
  void write(std::uint32_t number, Time now) {
    SendWr wr;
    wr.opcode = WrOpcode::kWrite;
    half.posted(wr);
    wire::Header h = header(wire::kWriteOnly, number);
    h.bits = wire::kAckReq;
    half.request_sent(h, 0, now);
    half.request_arrived(h);
  }
  wire::Header response(std::uint8_t opcode, std::uint32_t psn, Time now) {
    const wire::Header h = header(opcode, psn);
    half.response_sent(h, 1024, now);
    return h;
  }
  void take(const wire::Header& h, Time now) {
    half.response_placed(h.psn, 1024, now);
    half.response_arrived(h, now);
  }
  // The requester has `trigger`, and misses `expected`.
  wire::Header nack(std::uint32_t expected, std::uint32_t trigger, Time now) {
    wire::Header h = header(wire::kReadAcknowledge, expected);
    h.set_aeth(wire::kSyndromeNakSequence, 0);
    h.set_sack({trigger});
    half.read_ack_sent(h, now);
    return h;
  }
  QpFacts facts;
  Report report;
  HalfConnection half{facts, facts, report};
};

// The third READ request tells the responder that the first READ is complete. Response 1 is then the oldest
// outstanding one, so the responder may resend it at a NACK, although an older NACK had SACKed it. Response 2
// is SACKed as well and is not the oldest, so it must not be resent.
TEST(HalfConnection, TheOldestResponseIsTheFirstThatARequestDoesNotImply) {
  for (const std::uint32_t resent : {1U, 2U}) {
    Reads w;
    w.read(0, 1, at(0));
    w.read(1, 3, at(0));
    const wire::Header zero = w.response(wire::kReadResponseOnly, 0, at(1));
    const wire::Header one = w.response(wire::kReadResponseFirst, 1, at(1));
    const wire::Header two = w.response(wire::kReadResponseMiddle, 2, at(1));
    w.take(one, at(2));
    const wire::Header has_one = w.nack(0, 1, at(2));
    w.take(two, at(2));
    const wire::Header has_two = w.nack(0, 2, at(2));
    w.take(zero, at(2));
    w.read(2, 1, at(3));
    w.half.read_ack_arrived(has_one, at(4));
    w.half.read_ack_arrived(has_two, at(4));
    w.half.response_sent(resent == 1 ? one : two, 1024, at(4));
    EXPECT_EQ(w.report.clean(), resent == 1) << w.report.text();
  }
}

// A WRITE is SACKed, and the response of the READ before it acknowledges the READ. A requester that remembers
// the SACK has nothing outstanding when it sends the next WRITE, so its silence begins then. A requester that
// forgot the SACK has been waiting since the READ was acknowledged.
TEST(HalfConnection, ANewRequestBeginsNoSilenceOfWhoForgotASack) {
  for (const bool remembers : {true, false}) {
    Reads w(remembers);
    w.read(0, 1, at(0));
    w.write(1, at(0));
    const wire::Header answer = w.response(wire::kReadResponseOnly, 0, at(1));
    wire::Header sack = Reads::header(wire::kAcknowledge, 0);
    sack.set_aeth(wire::kSyndromeNakSequence, 0);
    sack.set_sack({1});
    w.half.ack_arrived(sack, at(2));
    w.take(answer, at(4));
    wire::Header thanks = Reads::header(wire::kReadAcknowledge, 0);
    thanks.set_aeth(wire::kSyndromeAck, 0);
    w.half.read_ack_sent(thanks, at(4));
    w.write(2, at(9));
    EXPECT_EQ(w.half.silence().since, at(remembers ? 9 : 4));
    EXPECT_TRUE(w.report.clean()) << w.report.text();
  }
}

// Response 1 is SACKed. A responder that repeated response 0 four times in vain has fallen silent and
// forgotten the SACK; one that repeated it three times has not.
TEST(HalfConnection, AResponderThatFellSilentForgetsWhatWasSacked) {
  for (const int tries : {3, 4}) {
    Reads w;
    w.read(0, 2, at(0));
    const wire::Header zero = w.response(wire::kReadResponseFirst, 0, at(1));
    const wire::Header one = w.response(wire::kReadResponseLast, 1, at(1));
    w.take(one, at(2));
    w.half.read_ack_arrived(w.nack(0, 1, at(2)), at(3));
    Time now = at(3);
    for (int i = 0; i <= tries; ++i) {
      now = now.after(microseconds(200));
      w.half.response_sent(zero, 1024, now);
    }
    w.half.response_sent(one, 1024, now);
    EXPECT_EQ(w.report.clean(), tries == 4) << w.report.text();
  }
}

}  // namespace
}  // namespace weft::check
