/* A program above channels for the tests of the tools: it plays one part for a while, and then ends by
 * itself.
 *
 *   actor serve SECONDS [PARAMETER=VALUE...]          accepts, answers, releases
 *   actor hold SECONDS [...]                          accepts and releases nothing: a program that is stuck
 *   actor rest SECONDS [...]                          the same as serve; it sleeps as long as nothing happens
 *   actor doze SECONDS [...]                          answers, and is elsewhere for 20 ms now and then
 *   actor send ADDRESS SECONDS CHANNELS MESSAGES [...] opens channels, sends so many on each, and stays
 *   actor call ADDRESS SECONDS [...]                  one request after the other
 *   actor mend ADDRESS SECONDS [...]                  eight requests at a time, each with 50 ms for its
 * answer actor forget ADDRESS SECONDS [...]                the same with a bug: it forgets those that had no
 * answer
 *
 * A parameter of the context may stand at the end of each. "ready" is printed when it is set up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "channel_c/weft/channel.h"

static double now() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static weft_context* open_with(char** words) {
  char why[256];
  weft_context* context = nullptr;
  if (weft_open(&context, NULL, (const char* const*)words, why, sizeof why) != 0) {
    fprintf(stderr, "%s\n", why);
    exit(3);
  }
  return context;
}

static void print_slow(weft_context* context) {
  char line[512];
  while (weft_slow(context, line, sizeof line) != 0) printf("slow: %s\n", line);
}

static void serve(const char* part, double seconds, char** words) {
  weft_context* context = open_with(words);
  const double end = now() + seconds;
  double doze_at = now() + 0.3;
  if (weft_listen(context, 4711) != 0) exit(4);
  puts("ready");
  fflush(stdout);
  while (now() < end) {
    weft_notice n;
    if (strcmp(part, "doze") == 0 && now() > doze_at) {
      usleep(20000);
      doze_at = now() + 0.3;
    }
    /* It spins, so that time between polls is its own. */
    int most_ms = strcmp(part, "rest") == 0 ? (int)((end - now()) * 1000) + 1 : 50;
    if ((strcmp(part, "doze") == 0 ? weft_poll(context, &n, 1) : weft_wait(context, &n, 1, most_ms)) == 0)
      continue;
    if (n.kind == WEFT_ASKED) weft_accept(n.channel, 0);
    if (n.kind == WEFT_REQUEST) weft_answer(n.message, NULL, 0, 0);
    if (n.message != NULL && strcmp(part, "hold") != 0) weft_release(context, n.message);
  }
  print_slow(context);
  weft_free(context);
}

static void send_all(const char* address, double seconds, int channels, int messages, char** words) {
  weft_context* context = open_with(words);
  const double end = now() + seconds;
  weft_notice n;
  int opened = 0, said = 0;
  weft_channel* all[64];
  if (channels > 64) exit(2);
  for (int i = 0; i < channels; ++i) {
    if (weft_connect(context, address, 4711, 0, &all[i]) != 0) exit(5);
  }
  while (now() < end) {
    if (weft_wait(context, &n, 1, 50) != 0) {
      if (n.kind == WEFT_CLOSED) exit(6);
      if (n.kind == WEFT_OPENED) ++opened;
    }
    if (opened != channels || said) continue;
    said = 1;
    for (int i = 0; i < channels; ++i) {
      for (int k = 0; k < messages; ++k) {
        weft_message* m = weft_allocate(context, 64);
        if (m == NULL || weft_send(all[i], m, 0, 0) != 0) exit(7);
      }
    }
    puts("ready");
    fflush(stdout);
  }
  weft_free(context);
}

static void call_on(const char* address, double seconds, char** words) {
  weft_context* context = open_with(words);
  const double end = now() + seconds;
  weft_channel* channel = nullptr;
  weft_notice n;
  long calls = 0, under_way = 0;
  if (weft_connect(context, address, 4711, 0, &channel) != 0) exit(5);
  while (now() < end) {
    if (weft_wait(context, &n, 1, 50) == 0) continue;
    if (n.kind == WEFT_CLOSED) exit(6);
    if (n.kind == WEFT_RESPONSE) weft_release(context, n.message), under_way = 0;
    if (n.kind != WEFT_OPENED && n.kind != WEFT_RESPONSE) continue;
    if (n.kind == WEFT_OPENED) puts("ready"), fflush(stdout);
    if (under_way == 0 && weft_call(channel, weft_allocate(context, 64), 0, 0, NULL) == 0)
      ++calls, under_way = 1;
  }
  print_slow(context);
  printf("calls: %ld\n", calls);
  weft_free(context);
}

/* Eight may be under way. `forget` counts answers and no outcomes, so each request that is lost is one that
 * it never makes again: as long as none is lost, nothing shows. */
static void call_eight(const char* part, const char* address, double seconds, char** words) {
  weft_context* context = open_with(words);
  const double end = now() + seconds;
  weft_channel* channel = nullptr;
  weft_notice n;
  int open = 0, room = 8;
  if (weft_connect(context, address, 4711, 0, &channel) != 0) exit(5);
  while (now() < end) {
    while (open && room > 0 && weft_call(channel, weft_allocate(context, 64), 0, 50000, NULL) == 0) --room;
    if (weft_wait(context, &n, 1, 50) == 0) continue;
    if (n.message != NULL) weft_release(context, n.message);
    if (n.kind == WEFT_CLOSED) exit(6);
    if (n.kind == WEFT_OPENED) open = 1, puts("ready"), fflush(stdout);
    if (n.kind == WEFT_RESPONSE || (n.kind == WEFT_OUTCOME && strcmp(part, "mend") == 0)) ++room;
  }
  weft_free(context);
}

int main(int count, char** words) {
  const char* part = count > 1 ? words[1] : "";
  if (count > 2 &&
      (!strcmp(part, "serve") || !strcmp(part, "rest") || !strcmp(part, "hold") || !strcmp(part, "doze")))
    serve(part, atof(words[2]), words + 3);
  else if (count > 5 && !strcmp(part, "send"))
    send_all(words[2], atof(words[3]), atoi(words[4]), atoi(words[5]), words + 6);
  else if (count > 3 && !strcmp(part, "call"))
    call_on(words[2], atof(words[3]), words + 4);
  else if (count > 3 && (!strcmp(part, "mend") || !strcmp(part, "forget")))
    call_eight(part, words[2], atof(words[3]), words + 4);
  else
    return 2;
  return 0;
}
