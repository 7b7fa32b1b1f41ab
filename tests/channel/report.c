/* A context says what it is doing: `weft_report` whole and cut off, `weft_counts` of a program that knows
 * fewer of them. It sends from memory of its own, too, and its cache is isolated. Beside the server of examples/channel/pingpong.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <weft/channel.h>

/* Memory of anonymous pages, with guards. */
static const char* const kParameters[] = {"isolate=1", "memory_mode=1", NULL};

int main(int count, char** words) {
  char why[200], page[4000], little[10];
  weft_context* context = NULL;
  weft_channel* channel = NULL;
  weft_notice n;
  uint64_t few[2] = {99, 99};
  weft_channel_counts all;
  if (count != 2 || weft_open(&context, NULL, kParameters, why, sizeof why) != 0) return 2;
  if (weft_connect(context, words[1], 4711, 0, &channel) != 0) return 3;
  if (weft_wait(context, &n, 1, 10000) != 1 || n.kind != WEFT_OPENED) return 4;
  weft_message* request = weft_allocate(context, 8);
  memset(weft_data(request), 0, 8);
  if (weft_call(channel, request, 0, 0, NULL) != 0) return 5;
  if (weft_wait(context, &n, 1, 10000) != 1 || n.kind != WEFT_RESPONSE) return 6;
  weft_release(context, n.message);
  /* The same again, from memory of our own. */
  static char mine[100];
  weft_memory* memory = NULL;
  if (weft_register(context, mine, sizeof mine, &memory) != 0) return 12;
  if (weft_wrap(context, memory, 93, 8) != NULL) return 13;
  if (weft_call(channel, weft_wrap(context, memory, 50, 8), 0, 0, NULL) != 0) return 14;
  if (weft_deregister(context, memory) != EBUSY) return 15;
  if (weft_wait(context, &n, 1, 10000) != 1 || n.kind != WEFT_RESPONSE) return 16;
  weft_release(context, n.message);
  for (int i = 0; i < 1000 && weft_deregister(context, memory) == EBUSY; ++i)
    if (weft_wait(context, &n, 1, 1) != 0) return 17;
  weft_counts(channel, &all, sizeof all);
  weft_counts(channel, (weft_channel_counts*)few, sizeof few[0]);
  if (all.rtt_count != 2 || all.rtt_last_ns == 0 || all.calls != 0) return 7;
  if (few[0] != all.sent || few[1] != 99) return 8;
  size_t whole = weft_report(context, page, sizeof page);
  if (whole != strlen(page) || weft_report(context, NULL, 0) != whole) return 9;
  if (weft_report(context, little, sizeof little) != whole || strncmp(little, page, 9) != 0 || little[9] != 0)
    return 10;
  fputs(page, stdout);
  weft_close(channel);
  if (weft_wait(context, &n, 1, 10000) != 1 || n.kind != WEFT_CLOSED) return 11;
  weft_free(context);
  return 0;
}
