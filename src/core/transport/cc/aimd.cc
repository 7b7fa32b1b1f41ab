// TCP's additive increase, multiplicative decrease over packet losses (RFC 5681), as IRN §4.4.4 and §4.6
// combine it with IRN's loss recovery: half a window less for each recovery, one packet more for each
// window acknowledged. There is no slow start at the beginning: flows begin at line rate (IRN §4.1).
#include "core/transport/cc/window.h"

namespace weft {
namespace {

void start(ControllerState& s, const ControllerStart& w) { state_new<Window>(s).start(w.bdp_packets); }
void on_ack(ControllerState& s, const AckSample& a) { state_as<Window>(s).grow(a.packets); }
void on_loss(ControllerState& s, const LossSample& l) {
  Window& w = state_as<Window>(s);
  if (l.timeout) {
    w.time_out();
  } else {
    w.shrink_to(w.packets / 2);
  }
}
void on_cnp(ControllerState&, Time) {}
void on_sent(ControllerState&, const SendSample&) {}
Permit permit(ControllerState& s, Time) { return {state_as<Window>(s).packets, {}}; }

}  // namespace

const Controller kAimd{"aimd",
                       "a window: halved on loss, one packet more per round trip",
                       "RFC 5681; IRN §4.4.4, §4.6",
                       false,
                       kCnpInterval,
                       start,
                       on_ack,
                       on_loss,
                       on_cnp,
                       on_sent,
                       permit};

}  // namespace weft
