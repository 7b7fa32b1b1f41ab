// A context of the middleware at its TCP port, and a byte string that plays whoever comes there:
// tests/fuzz/stream_peer.h says what must hold.
#include "tests/fuzz/stream_peer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzz::StreamPeer({data, size}).run();
  return 0;
}
