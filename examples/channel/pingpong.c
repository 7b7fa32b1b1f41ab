/* Ping-pong: `pingpong` waits for a peer, `pingpong ADDRESS [ROUNDS]` asks it. docs/guide/messaging.md */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/channel.h>

int main(int argc, char** argv) {
  char why[200];
  weft_context* context;
  weft_channel* channel;
  long rounds = argc > 2 ? atol(argv[2]) : 1000, left = rounds;
  if (weft_open(&context, NULL, NULL, why, sizeof why) != 0) return fprintf(stderr, "%s\n", why), 1;
  if (argc == 1 && weft_listen(context, 4711) != 0) return fprintf(stderr, "the service is taken\n"), 1;
  if (argc > 1 && weft_connect(context, argv[1], 4711, 0, &channel) != 0) return fprintf(stderr, "no such address\n"), 1;
  if (argc == 1) puts("listening"), fflush(stdout);
  for (;;) {
    weft_notice n;
    if (weft_wait(context, &n, 1, -1) == 0) continue;
    switch (n.kind) {
      case WEFT_ASKED:
        weft_accept(n.channel, 0);
        break;
      case WEFT_OPENED:
        if (argc > 1) weft_call(n.channel, weft_allocate(context, 64), 0, 0, NULL);
        break;
      case WEFT_REQUEST: {
        weft_message* answer = weft_allocate(context, weft_length(n.message));
        memcpy(weft_data(answer), weft_data(n.message), weft_length(n.message));
        weft_answer(n.message, answer, 0, 0);
        weft_release(context, n.message);
        break;
      }
      case WEFT_RESPONSE:
        weft_release(context, n.message);
        if (--left > 0) weft_call(n.channel, weft_allocate(context, 64), 0, 0, NULL);
        if (left == 0) printf("%ld rounds\n", rounds), weft_close(n.channel);
        break;
      case WEFT_CLOSED:
        printf("%s\n", n.why);
        weft_free(context);
        return left > 0 && argc > 1;
    }
  }
}
