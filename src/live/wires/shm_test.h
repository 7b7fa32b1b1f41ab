// The fixture of the tests of shared memory: wires of one host, what one sends and another receives.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <utility>
#include <vector>

#include "live/wires/numbered_frames.h"
#include "live/wires/shm.h"

namespace weft::live {

using numbered::counter;
using numbered::Frame;
using numbered::frame_for;
using numbered::host;
using numbered::kPort;
using numbered::number_of;

using Numbers = std::vector<std::uint32_t>;

inline std::unique_ptr<ShmWire> open_at(const wire::Address& address) {
  auto wire = ShmWire::open(address, kPort);
  EXPECT_TRUE(wire.has_value()) << wire.error().message;
  return std::move(*wire);
}

class Shm : public ::testing::Test {
 protected:
  SendStatus send(Wire& from, const Wire& to, std::uint32_t number, std::size_t size = 64) {
    const Frame f = frame_for(to.facts().slot, number, size);
    return from.send({.bytes = f,
                      .frame_size = static_cast<std::uint32_t>(size),
                      .destination = to.facts().own.first,
                      .ip = {},
                      .now = now});
  }
  // The numbers of what comes in over so many looks, a millisecond apart.
  Numbers receive(Wire& wire, int looks = 5) {
    Numbers numbers;
    for (int i = 0; i < looks; ++i) {
      now = now + milliseconds(1);
      for (const RxTrain& t : wire.receive(now)) {
        last = t;
        for (std::uint32_t at = 0; at < t.bytes; at += t.frame_size) {
          numbers.push_back(number_of(t.data + at));
        }
      }
    }
    return numbers;
  }
  static bool rings(const Wire& wire, int wait_ms) {
    pollfd fd{wire.aside(), POLLIN, 0};
    return ::poll(&fd, 1, wait_ms) == 1;
  }

  static std::vector<std::uint32_t> open_descriptors() {
    std::vector<std::uint32_t> all;
    for (std::uint32_t fd = 0; fd < 256; ++fd) {
      if (fcntl(static_cast<int>(fd), F_GETFD) >= 0) all.push_back(fd);
    }
    return all;
  }

  Time now = Time{} + seconds(1);
  RxTrain last;
};

}  // namespace weft::live
