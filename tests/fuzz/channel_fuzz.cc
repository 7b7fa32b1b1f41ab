// A context of the middleware, and a byte string that plays its peers, its device, its program and the time:
// tests/fuzz/channel_peer.h says what must hold. Every message that comes from a peer is made there.
#include "tests/fuzz/channel_peer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzz::ChannelPeer({data, size}).run();
  return 0;
}
