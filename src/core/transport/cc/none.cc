// No congestion control: line rate, bounded by BDP-FC and path credit only. IRN's default (IRN §3.2).
#include "core/transport/cc/controller.h"

namespace weft {
namespace {

void start(ControllerState&, Rate, std::uint32_t, Time) {}
void on_ack(ControllerState&, const AckSample&) {}
void on_signal(ControllerState&, Time) {}
Permit permit(const ControllerState&) { return {}; }

}  // namespace

const Controller kNoController{
    "none", "line rate, bounded by the window alone", start, on_ack, on_signal, on_signal, permit};

}  // namespace weft
