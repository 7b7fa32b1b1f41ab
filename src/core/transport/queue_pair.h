// A queue pair: four cache lines that the packet path touches, and a cold part with the rings. What only
// loss needs is in neither: bitmaps come from a shared pool.
//
//   line 0  common and receive    every packet
//   line 1  responder             requests from the peer, READ responses we owe
//   line 2  requester             our requests, their acknowledgement
//   line 3  congestion            controller, pacing, retries
//
// Received data touches lines 0 and 1, an ACK lines 0, 2 and 3. queue_pair_test.cc holds the offsets.
//
// Ring indices run freely in 16 bits and are masked on use; a ring has at most 32 768 slots.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/ids.h"
#include "core/base/seq.h"
#include "core/base/units.h"
#include "core/transport/cc/controller.h"
#include "core/transport/dialect.h"
#include "core/transport/receiver.h"
#include "core/transport/round_trip.h"
#include "core/transport/sender.h"
#include "core/transport/stream.h"
#include "core/verbs/types.h"

namespace weft {

enum : std::uint8_t {  // QueuePair::flags
  kQueued = 0x01,      // in the ready queue (or picked and not yet transmitted)
  kInUse = 0x02,
  kAckQueued = 0x04,      // a coalesced ACK waits in the control ring
  kReadAckQueued = 0x08,  // the same for READ responses
  kAckAfterReads = 0x10,  // roce: an ACK is owed once older READ responses left
  kReadsWaiting = 0x20,   // irn: READs or atomics came ahead of their turn, or wait for it
  kWaitingPath = 0x40,    // in the path's line for credit
  kRnrWaiting = 0x80,     // the requester sits out a receiver-not-ready delay
};
enum : std::uint8_t {     // QueuePair::rx_flags
  kNakSent = 0x01,        // roce: sequence NAK sent, or a refusal: silent until the expected packet comes
  kEstablished = 0x02,    // COMM_EST raised
  kRequestsFirst = 0x04,  // whose turn it is, responses or requests
  kAnswers = 0x08,        // irn, srnic: it has answered READs; its cold part knows whether it owes more
  kSendStopped =
      0x10,  // a request failed, here or as a NAK says; it is reported once all earlier ones are complete
  kResendRequest = 0x40,   // irn: the oldest unanswered READ's request goes out again
  kDrainNotify = 0x80,     // SQ_DRAINED is owed
  kReceiveStopped = 0x20,  // a request failed here; the NAK waits for older READ responses
};
enum : std::uint8_t {  // QueuePair::level
  kServiceLevel = 0x0F,
  kEchoOwed = 0x80,  // roce: a marked packet asked for no ACK; the next ACK echoes it
};
enum class Inbound : std::uint8_t { kNone, kSend, kWrite };  // roce: which message is being received

struct alignas(64) SendWqe {
  std::uint64_t wr_id = 0;
  std::uint64_t remote_address = 0;
  std::uint64_t charged_before = 0;  // path bytes of all earlier messages of this queue
  Seq first{};                       // first sequence number
  Seq first_response{};              // READ and atomics: in the responses' space
  std::uint32_t length = 0;
  std::uint32_t packets = 0;  // sequence numbers this message takes
  Key rkey{};
  std::uint32_t imm = 0;
  std::uint32_t sn = 0;  // IRN: recv_WQE_SN or read_WQE_SN
  WrOpcode opcode{};
  std::uint8_t flags = 0;
  std::uint8_t sge_count = 0;
  bool executed = false;  // local requests: done, though not yet complete
};
static_assert(sizeof(SendWqe) == 64);

enum : std::uint8_t {
  kRecvEnded = 1,
  kRecvWithImm = 2,
  kRecvWriteImm = 4,
  kRecvSolicited = 8,
  kRecvInvalidate = 16  // imm is a key
};                      // RecvWqe::flags

// What only some requests need; a parallel array, so that SendWqe stays one cache line.
struct SendOperands {
  std::uint64_t compare_or_add = 0;
  std::uint64_t swap = 0;
};

struct RecvWqe {
  std::uint64_t wr_id = 0;
  Seq end{};  // its message's last sequence number, once kRecvEnded
  std::uint32_t byte_len = 0;
  std::uint32_t imm = 0;
  std::uint32_t capacity = 0;  // bytes its scatter list holds
  std::uint8_t sge_count = 0;
  std::uint8_t flags = 0;
  std::uint16_t reserved = 0;
};
static_assert(sizeof(RecvWqe) == 32);

// A READ or atomic that we issued and whose responses are not all here.
struct ReadIssued {
  Seq first{};               // first response sequence number of this request
  Seq end{};                 // one past the last
  Seq request{};             // the request packet's own sequence number
  std::uint32_t packet = 0;  // offset inside the message, in packets
  std::uint16_t slot = 0;    // send queue slot
};

// A READ or atomic that the peer asked for: kept for replay until overwritten (roce) or acknowledged
// (irn). An atomic is a READ of one packet that changes what it read, once: `value` is then its answer.
enum class ReadState : std::uint8_t { kFree, kWaiting, kActive };
enum class ReadKind : std::uint8_t { kRead, kCompareSwap, kFetchAdd };
struct ReadServed {
  Seq request{};  // the request's sequence number
  Seq first{};    // first response sequence number; in roce the same
  std::uint64_t va = 0;
  Key rkey{};
  std::uint32_t length = 0;
  std::uint32_t packets = 0;
  std::uint32_t msn = 0;
  std::uint64_t charged_before = 0;  // path bytes of all earlier responses of this queue pair
  std::uint32_t begin =
      0;  // roce: the latest request asked for [begin, end), of which [next, end) is still owed
  std::uint32_t next = 0;
  std::uint32_t end = 0;
  std::uint32_t asked = 0;  // roce: bytes up to which that request asked; it may stop inside a packet
  std::uint32_t sent = 0;   // roce: responses that left at least once
  ReadState state = ReadState::kFree;
  ReadKind kind = ReadKind::kRead;
  bool executed = false;    // atomics
  bool answered = false;    // roce: all its responses were sent once
  std::uint8_t fault = 0;   // atomics: the NAK to send instead of an answer
  std::uint64_t value = 0;  // atomics: what to compare with; once executed, what was there before
  std::uint64_t swap_or_add = 0;
};

// The first three lines are what posting, sending and completing a request touches (queue_pair_test.cc).
struct alignas(64) ColdQueuePair {
  std::unique_ptr<SendWqe[]> sq;
  std::unique_ptr<Sge[]> sq_sges;
  std::unique_ptr<SendOperands[]> sq_operands;
  std::unique_ptr<std::uint32_t[]> sq_msn;  // srnic: message numbers, one per slot
  std::uint16_t sq_mask = 0;
  std::uint16_t rq_mask = 0;
  std::uint8_t issued_mask = 0;
  std::uint8_t served_mask = 0;
  std::uint8_t issued_head = 0;
  std::uint8_t issued_tail = 0;
  // Requester: what the next posted request gets.
  Seq post_seq{};
  std::uint64_t post_charged = 0;
  std::uint32_t post_recv_sn = 0;
  std::uint32_t post_msn = 0;  // srnic

  SenderAccount requests_account;
  RoundTrip round_trip;  // of requests and their ACKs, and of READ responses and theirs
  QpAttr attr;
  QpInit init;

  std::unique_ptr<RecvWqe[]> rq;
  std::unique_ptr<Sge[]> rq_sges;
  std::unique_ptr<ReadIssued[]> issued;
  std::unique_ptr<ReadServed[]> served;
  Seq post_response{};
  std::uint32_t post_read_sn = 0;
  PdId receive_pd{};     // judges the keys of receives: the shared receive queue's, or the queue pair's own
  RecvStream responses;  // irn: READ responses coming in
  Echo last_response;    // srnic: the last one that came in order
  Time rnr_until = kNever;
  Time read_base{};  // last READ response, or the oldest READ's request
  SenderSilence requests_silence;
  SenderSilence responses_silence;
  // What `progress` of our requests and `read_base` were put to when a stall of the world was forgiven. A
  // clock that still says so has had no answer since, and is not put forward again.
  Time progress_forgiven = kNever;
  Time read_forgiven = kNever;
  std::uint8_t read_backoff = 0;
  WcStatus stop_status = WcStatus::kSuccess;  // with kSendStopped
  std::uint16_t stop_slot = 0;
  // Responder.
  std::uint8_t held_syndrome = 0;      // a NAK that waits for older READ responses
  std::uint64_t response_charged = 0;  // path bytes of all responses recorded
  SenderAccount responses_account;
  Seq response_next{};                      // irn: first number the next READ request gets
  std::uint32_t served_head = 0;            // oldest recorded READ, a serial number
  std::uint32_t served_tail = 0;            // next read_WQE_SN to activate
  Time next_cnp{};                          // notification point: none before
  std::uint32_t next_waiting = UINT32_MAX;  // the path's line
};

struct alignas(64) QueuePair {
  // --- line 0: common and receive ---
  Qpn qpn = kNoQpn;
  Qpn remote{};
  PathId path{};
  PdId pd{};
  QpState state = QpState::kReset;
  QpType type = QpType::kRc;
  std::uint8_t tx_mode = 0;          // our requests and their responses
  std::uint8_t rx_mode = kUnpinned;  // the peer's, pinned by its first accepted request
  std::uint8_t access = 0;
  std::uint8_t flags = 0;
  std::uint8_t rx_flags = 0;
  Inbound inbound = Inbound::kNone;
  std::uint16_t mtu = 1024;
  std::uint8_t responses_owed = 0;    // roce: READ requests with responses still to send
  std::uint8_t level = 0;             // service level and kEchoOwed
  std::uint32_t inbound_message = 0;  // roce: full length of the current WRITE
  RecvStream requests;                // 16 bytes with block and held
  std::uint64_t inbound_va = 0;       // roce: where the current WRITE begins
  Key inbound_key{};
  std::uint32_t inbound_done = 0;  // roce: bytes of the current message that have come

  // --- line 1: responder ---
  alignas(64) Sender served;  // READ responses, where they are a stream
  std::uint16_t rq_head = 0;  // oldest receive not yet completed
  std::uint16_t rq_tail = 0;
  std::uint32_t recv_sn = 0;  // IRN: recv_WQE_SN of rq_head

  // --- line 2: requester ---
  alignas(64) Sender requests_out;
  std::uint16_t sq_head = 0;   // oldest request not completed
  std::uint16_t sq_acked = 0;  // first request not fully acknowledged
  std::uint16_t sq_send = 0;   // request being sent
  std::uint16_t sq_tail = 0;

  // --- line 3: congestion and pacing ---
  alignas(64) ControllerState controller;
  Time next_send{};                   // pacing: no data leaves before
  std::uint32_t window = UINT32_MAX;  // the controller's, packets in flight
  std::uint32_t send_offset = 0;      // packets of the sq_send message already sent
  std::uint8_t controller_row = 0;    // of controllers(); 0 is none
  std::uint8_t retries = 0;
  std::uint8_t rnr_retries = 0;
  std::uint8_t reads_outstanding = 0;

  const Dialect& tx_dialect() const { return dialect(tx_mode); }
  const Dialect& rx_dialect() const { return dialect(rx_mode); }
  // States in which packets are received, and in which requests are sent.
  bool receives() const { return state == QpState::kRtr || state == QpState::kSqe || sends(); }
  bool sends() const { return state == QpState::kRts || state == QpState::kSqd; }
  // srnic follows no message from packet to packet, but echoes the last packet that came in order.
  Echo last_in_order() const {
    return {inbound_key.v, static_cast<std::uint32_t>(inbound_va),
            static_cast<std::uint32_t>(inbound_va >> 32U)};
  }
  void set_last_in_order(const Echo& o) {
    inbound_key.v = o.psn;
    inbound_va = std::uint64_t{o.offset} << 32U | o.msn;
  }
  bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  void set(std::uint8_t flag) { flags |= flag; }
  void clear(std::uint8_t flag) { flags &= static_cast<std::uint8_t>(~flag); }
};
static_assert(sizeof(QueuePair) == 256);

}  // namespace weft
