// A replicated block store in Pangu's shape: `replication` is a chunk server, `replication ADDRESS ADDRESS
// ADDRESS` a block server that writes every block to three of them and goes on when all have it.
// docs/guide/messaging.md
#include <cstdio>
#include <map>
#include <string>
#include <weft/channel.hpp>

using weft::messaging::Context;
using weft::messaging::Message;

constexpr std::uint16_t kService = 4712;
constexpr std::uint64_t kBlocks = 64;
constexpr std::uint32_t kBlock = 128 * 1024;  // fetched by the chunk servers, in fragments

static int chunk_server() {
  Context context;
  std::map<std::uint64_t, std::string> store;
  context.listen(kService);
  std::puts("listening");
  std::fflush(stdout);
  for (;;) {
    const weft_notice n = *context.wait();
    if (n.kind == WEFT_ASKED) weft_accept(n.channel, 0);
    if (n.kind == WEFT_REQUEST) {
      const Message block = context.own(n);
      store[store.size()] = block.text();
      weft_answer(n.message, nullptr, 0, 0);
    }
    if (n.kind == WEFT_CLOSED) return std::printf("%zu blocks\n", store.size()), 0;
  }
}

static int block_server(int count, char** addresses) {
  Context context;
  std::vector<weft_channel*> chunks;
  for (int i = 0; i < count; ++i) context.connect(addresses[i], kService);
  std::uint64_t next = 0, open = 0;
  std::map<std::uint64_t, int> copies;
  const auto write = [&] {
    for (weft_channel* chunk : chunks) {
      Message block = context.allocate(kBlock);
      std::memset(block.bytes().data(), static_cast<int>(next), kBlock);
      if (!context.call(chunk, block, next, 5'000'000)) throw std::runtime_error("a chunk server is overrun");
    }
    ++next;
  };
  for (;;) {
    const weft_notice n = *context.wait();
    if (n.kind == WEFT_OPENED) chunks.push_back(n.channel);
    if (n.kind == WEFT_OPENED && ++open == static_cast<std::uint64_t>(count)) write();
    if (n.kind == WEFT_OUTCOME || (n.kind == WEFT_CLOSED && next < kBlocks))
      return std::puts("a copy was lost"), 1;
    if (n.kind == WEFT_RESPONSE) {
      weft_release(context.get(), n.message);
      if (++copies[n.user] < count) continue;
      if (next < kBlocks) {
        write();
      } else {
        for (weft_channel* chunk : chunks) weft_close(chunk);
      }
    }
    if (n.kind == WEFT_CLOSED && --open == 0)
      return std::printf("%llu blocks, %d copies each\n", static_cast<unsigned long long>(next), count), 0;
  }
}

int main(int argc, char** argv) { return argc == 1 ? chunk_server() : block_server(argc - 1, argv + 1); }
