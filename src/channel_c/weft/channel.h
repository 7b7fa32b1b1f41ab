/* weft channels: messages over RDMA, for programs in C. docs/guide/messaging.md is the guide.
 *
 * Three types: a context belongs to one thread; a channel is one peer; a message is registered memory that is
 * sent or was received. No call waits but weft_wait(). Nothing is called back: weft_poll() tells what
 * happened, in order.
 *
 * Calls that can fail answer 0 or an errno: EAGAIN the window and the queue are full, EINVAL an argument is
 * wrong or the channel is closed, ENOMEM, ENOENT. A pointer stays good until the notice that ends it: a
 * channel until WEFT_CLOSED, a received message until weft_release(). A message that weft_send() and its like
 * took (0) is no longer yours; one that they refused is. Only a message of weft_allocate() can be sent, once
 * (EINVAL); what was received is copied into one.
 *
 * The library is stable. weft_notice stays as it is. weft_channel_counts and weft_message_trace may get
 * fields at their ends, and their size is passed: a program that is newer than its library finds 0 there.
 *
 * No call throws. Without memory those that can fail answer ENOMEM; weft_poll() and its like have no word for
 * it, and what happens meanwhile may go untold. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_API __attribute__((visibility("default")))

typedef struct weft_context weft_context;
typedef struct weft_channel weft_channel;
typedef struct weft_message weft_message;
typedef struct weft_memory weft_memory;

enum weft_kind {
  WEFT_ASKED = 0, /* channel: a peer asks for it; weft_accept() or weft_refuse() */
  WEFT_OPENED,    /* channel */
  WEFT_MESSAGE,   /* message: yours until weft_release() */
  WEFT_REQUEST,   /* message: weft_answer() it, then weft_release() it */
  WEFT_RESPONSE,  /* message, status; user of the request */
  WEFT_OUTCOME,   /* fate; user of the message or request */
  WEFT_CLOSED     /* channel, why */
};

enum weft_fate {
  WEFT_DELIVERED = 0, /* the program at the far side has taken it */
  WEFT_NOT_SENT,      /* it never left */
  WEFT_UNKNOWN,       /* it left; whether it was taken, nobody knows */
  WEFT_TOO_LATE,      /* a request: no response in time */
  WEFT_CANCELLED
};

typedef struct weft_notice {
  int kind;        /* enum weft_kind */
  int fate;        /* WEFT_OUTCOME: enum weft_fate */
  uint32_t status; /* WEFT_RESPONSE: the answering program's number */
  uint32_t reserved;
  weft_channel* channel;
  weft_message* message;
  uint64_t user;   /* what was given with the message, the request or the channel */
  const char* why; /* WEFT_CLOSED: a sentence */
} weft_notice;

/* Opens the first RDMA device, or the named one. `parameters` is NULL or a list of "name=value" that ends
 * with NULL (weft_parameter() lists them). On failure `why` holds a sentence. */
WEFT_API int weft_open(weft_context** out, const char* device, const char* const* parameters, char* why,
                       size_t room);
WEFT_API void weft_free(weft_context* context); /* every channel ends at once */

/* Online parameters; an offline one is refused with EBUSY. */
WEFT_API int weft_set(weft_context* context, const char* name, uint64_t value, char* why, size_t room);
WEFT_API int weft_get(const weft_context* context, const char* name, uint64_t* value);
/* The name of parameter `index`, NULL behind the last. `meaning` and `online` may be NULL. */
WEFT_API const char* weft_parameter(unsigned index, const char** meaning, int* online);

/* Memory. A message of `length` bytes, to be filled and sent; NULL: there is no memory. */
WEFT_API weft_message* weft_allocate(weft_context* context, uint32_t length);
WEFT_API void weft_release(weft_context* context, weft_message* message);
WEFT_API void* weft_data(weft_message* message);
WEFT_API uint32_t weft_length(const weft_message* message);
WEFT_API int weft_shorten(weft_message* message, uint32_t length);
/* Registers memory for `count` messages of `length` ahead of time. */
WEFT_API int weft_reserve(weft_context* context, uint32_t length, uint32_t count);

/* Memory of your own: registered, messages are sent from it without a copy. Its bytes must not change until
   the message's outcome is told (WEFT_TELL), or its response is here; peers may read it until it is
   deregistered. EBUSY: messages of it are about. weft_wrap: a message of `length` bytes from `offset` on;
   NULL: they do not lie in it, or there is no memory. */
WEFT_API int weft_register(weft_context* context, void* at, size_t length, weft_memory** out);
WEFT_API int weft_deregister(weft_context* context, weft_memory* memory);
WEFT_API weft_message* weft_wrap(weft_context* context, weft_memory* memory, uint64_t offset,
                                 uint32_t length);
/* The same of several pieces, which may lie in different memory: the peer gets one message of their bytes,
   one behind the other. At most `pieces` of them (a parameter), otherwise NULL. weft_data() is the first
   piece's. */
typedef struct weft_piece {
  weft_memory* memory;
  uint64_t offset;
  uint32_t length, reserved;
} weft_piece;
WEFT_API weft_message* weft_gather(weft_context* context, const weft_piece* pieces, unsigned count);

/* Channels. `address` is IPv4 in dots. */
WEFT_API int weft_listen(weft_context* context, uint16_t service);
WEFT_API int weft_connect(weft_context* context, const char* address, uint16_t service, uint64_t user,
                          weft_channel** out);
/* The peer's address, IPv4 in dots: ENOSPC if it needs more than `room`. */
WEFT_API int weft_peer(const weft_channel* channel, char* address, size_t room);
WEFT_API void weft_accept(weft_channel* channel, uint64_t user);
WEFT_API void weft_refuse(weft_channel* channel);
WEFT_API void weft_close(weft_channel* channel); /* when everything that was sent is taken */
WEFT_API void weft_abort(weft_channel* channel); /* now */

/* The channel goes on over this carrier, and nothing is lost or repeated. 0: it has begun; weft_counts() says
 * what carries the channel. If the peer does not answer over TCP, the channel goes back to RDMA. EOPNOTSUPP:
 * an end keeps no sessions (reconnect_ms), or the end that was asked has no tcp_port. EAGAIN: the channel is
 * just reconnecting. */
enum { WEFT_RDMA = 0, WEFT_TCP = 1 };
WEFT_API int weft_move(weft_channel* channel, int carrier);

/* Messages. With WEFT_TELL the delivery is told too; a failure always is. */
enum { WEFT_TELL = 1 };
WEFT_API int weft_send(weft_channel* channel, weft_message* message, uint64_t user, int flags);
/* A request. Without a response after `timeout_us` (0: never) its outcome is WEFT_TOO_LATE. `id` may be NULL.
 */
WEFT_API int weft_call(weft_channel* channel, weft_message* request, uint64_t user, uint64_t timeout_us,
                       uint32_t* id);
/* `response` may be NULL: the status alone. EAGAIN: the peer takes no answers; the request stays yours, try
 * again after weft_poll(). */
WEFT_API int weft_answer(weft_message* request, weft_message* response, uint32_t status, uint64_t user);
WEFT_API int weft_cancel(weft_context* context, uint32_t id);

/* The turn: up to `room` things that happened. */
WEFT_API int weft_poll(weft_context* context, weft_notice* notices, int room);
/* The same; with nothing to tell it looks busily while something happened in the last spin_us, and then
 * sleeps, `timeout_ms` at most (-1: no limit). Without room nothing can be told: it answers 0 at once. */
WEFT_API int weft_wait(weft_context* context, weft_notice* notices, int room, int timeout_ms);
/* For select, poll and epoll. weft_arm() before sleeping; if it answers 1 there is something to poll for
 * already. *sleep_us is how long the context can do without weft_poll(). */
WEFT_API int weft_event_fd(const weft_context* context);
WEFT_API int weft_arm(weft_context* context, uint64_t* sleep_us);

typedef struct weft_channel_counts {
  uint64_t sent, sent_bytes, received, received_bytes;
  uint64_t acks, nops, probes, fragments, waited, reconnects;
  uint32_t in_flight, queued;
  uint32_t held, calls; /* received and not released; requests without an answer */
  /* Nanoseconds from weft_call() to its response: the last, the least, smoothed; how many. */
  uint64_t rtt_last_ns, rtt_least_ns, rtt_smoothed_ns, rtt_count;
  uint32_t carrier, moves; /* WEFT_RDMA or WEFT_TCP; how often it changed */
} weft_channel_counts;
/* `size` is sizeof(weft_channel_counts). */
WEFT_API void weft_counts(const weft_channel* channel, weft_channel_counts* out, size_t size);
/* What the context and each of its channels are doing, as a page of text: at most `room` bytes with the NUL
 * at the end. Answers how long the whole page is, so that 0 bytes of room ask for its length. */
WEFT_API size_t weft_report(const weft_context* context, char* out, size_t room);

/* Where the time of a received message went (trace_sample_mask at its sender; docs/guide/messaging.md).
 * Nanoseconds. left_ns is of the sender's clock, arrived_ns of this context's; network_ns is their difference
 * less offset_ns, and offset_ns is wrong by error_ns at most. Without offset_known the three are 0. Of a
 * response: what the request waited here, how long it and its response took, and how much of that the peer
 * had it. */
typedef struct weft_message_trace {
  uint64_t id, left_ns, arrived_ns;
  int64_t offset_ns, network_ns;
  uint64_t error_ns;
  uint64_t queued_ns, round_ns, there_ns;
  int32_t offset_known, response;
} weft_message_trace;
/* ENOENT: the message was not traced. `size` is sizeof(weft_message_trace). */
WEFT_API int weft_trace(const weft_message* message, weft_message_trace* out, size_t size);
/* The next line of what took too long (slow_threshold, polling_warn_cycle), with the NUL at most `room` bytes
 * of it. Answers how long it is; 0: there is none. */
WEFT_API size_t weft_slow(weft_context* context, char* out, size_t room);

#ifdef __cplusplus
}
#endif
