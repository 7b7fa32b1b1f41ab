// weft_gather() as a program in C++20 calls it; both ends are contexts of this process, over our own
// libibverbs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "channel_c/weft/channel.hpp"

namespace weft::channel {
namespace {

// The owners of C++20: one message of four pieces in two registrations, short and fetched.
TEST(Pieces, OfAProgramsMemoryArriveAsOneMessage) {
  alarm(60);
  const auto pid = static_cast<unsigned>(getpid());
  const std::string address =
      "127." + std::to_string(1 + (pid >> 8U) % 254U) + "." + std::to_string(pid & 0xFFU) + ".91";
  setenv("WEFT_ADDR", address.c_str(), 1);
  const messaging::Context server;
  const messaging::Context client;
  server.listen(7);
  std::vector<std::byte> index(4096, std::byte{'i'});
  std::vector<std::byte> log(200'000, std::byte{'l'});
  weft_memory* const at_index = client.register_memory(index);
  weft_memory* const at_log = client.register_memory(log);
  weft_channel* const channel = client.connect(address, 7);
  for (const std::uint32_t length : {100U, 80'000U}) {
    const weft_piece pieces[] = {
        {at_index, 1, 10, 0}, {at_log, 5, length, 0}, {at_index, 0, 10, 0}, {at_log, 100'000, length, 0}};
    const std::string part(length, 'l');
    bool sent = false;
    bool came = false;
    while (!came) {  // alarm() ends it
      weft_notice n{};
      if (!sent) {
        messaging::Message m = client.gather(pieces);
        ASSERT_EQ(m.bytes().size(), 20 + 2 * length);
        sent = client.send(channel, m, 0, WEFT_TELL);
      }
      (void)weft_poll(client.get(), &n, 1);
      if (weft_poll(server.get(), &n, 1) == 0) continue;
      if (n.kind == WEFT_ASKED) weft_accept(n.channel, 0);
      if (n.kind != WEFT_MESSAGE) continue;
      EXPECT_EQ(server.own(n).text(), "iiiiiiiiii" + part + "iiiiiiiiii" + part);
      came = true;
    }
  }
  const weft_piece five[5] = {};
  EXPECT_EQ(weft_gather(client.get(), five, 5), nullptr);
  for (weft_notice n{}; weft_deregister(client.get(), at_log) == EBUSY;) {
    (void)weft_poll(client.get(), &n, 1);
    (void)weft_poll(server.get(), &n, 1);
  }
  client.deregister(at_index);
  alarm(0);
}

}  // namespace
}  // namespace weft::channel
