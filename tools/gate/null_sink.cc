// The Device's templates, instantiated over a Sink that does nothing, so that check_symbols.py can look
// into the code that otherwise exists only inside a world's objects. Never linked.
#include "core/transport/device.h"
#include "core/transport/sink.h"

namespace weft {

template void Device::on_packets<NullSink>(Time now, std::span<const wire::RxPacket> packets, NullSink& sink);

}  // namespace weft
