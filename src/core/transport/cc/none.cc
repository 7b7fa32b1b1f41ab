// No congestion control: line rate, bounded by BDP-FC and path credit only. IRN's default (IRN §3.2).
#include "core/transport/cc/controller.h"

namespace weft {
namespace {

void start(ControllerState&, const ControllerStart&) {}
void on_ack(ControllerState&, const AckSample&) {}
void on_loss(ControllerState&, const LossSample&) {}
void on_cnp(ControllerState&, Time) {}
void on_sent(ControllerState&, const SendSample&) {}
Permit permit(ControllerState&, Time) { return {}; }

}  // namespace

const Controller kNoController{"none",       "line rate, bounded by the window alone",
                               "IRN §3.2",   false,
                               kCnpInterval, start,
                               on_ack,       on_loss,
                               on_cnp,       on_sent,
                               permit};

}  // namespace weft
