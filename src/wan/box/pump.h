// One turn of a live box: what both ports have goes into the logic, or past it; what the logic has to say
// goes out. No clock, no system call of its own, and no allocation: Ports do the one, the start did the
// other.
//
//   turn(now)       true: something moved, so there may be more
//   next_due(now)   when a turn is needed although nothing came
//   leave(now)      nothing new is taken; owes_nothing() says when everything is delivered
#pragma once
#include <array>
#include <memory>

#include "core/impair/impair.h"
#include "wan/box/bodies.h"
#include "wan/box/ethernet.h"
#include "wan/box/line_parity.h"
#include "wan/box/port.h"
#include "wan/box/senders.h"
#include "wan/logic/box.h"

namespace weft::wan {

struct PumpConfig {
  BoxConfig box;  // its `frames` follow from store and slot
  Rate rate{};    // of the line; 0: as fast as the port takes it
};

class Pump {
 public:
  // A frame of this MTU fits a slot, if RoCEv2 can be that long, or parity for it.
  static std::uint32_t slot_bytes(std::uint32_t mtu, ParityTerms parity = {});

  Pump(const PumpConfig& config, Port& near, Port& far);

  bool turn(Time now);
  Time next_due(Time now) const;
  void leave(Time now) { box_.leave(now); }
  bool owes_nothing() const { return box_.owned() == 0; }

  const Box& box() const { return box_; }
  std::uint64_t strangers(Stranger s) const { return strangers_[static_cast<std::size_t>(s)]; }
  std::uint64_t no_slot() const { return no_slot_; }      // dropped: every slot was in use
  std::uint64_t no_header() const { return no_header_; }  // not sent: nobody knows between which stations
  std::uint64_t trains() const { return trains_; }        // that were cut here
  std::uint64_t parity_broken() const { return parity_.broken(); }
  std::size_t slots_in_use() const { return bodies_.in_use(); }

 private:
  struct Outbox {
    std::array<TxFrame, Port::kBatch> frames;
    std::array<std::array<std::uint8_t, kMostWritten>, Port::kBatch> written;
    std::array<BodyId, Port::kBatch> over;  // bodies that are done with once these have left
    std::size_t size = 0;
    std::size_t over_count = 0;
  };

  Port& port(Side s) { return *ports_[static_cast<std::size_t>(s)]; }
  Outbox& outbox(Side s) { return *outboxes_[static_cast<std::size_t>(s)]; }
  bool take(Time now, Side from);
  void take_train(Time now, Side from, const RxFrame& f);
  void take_frame(Time now, Side from, const RxFrame& f);
  bool feed(Time now, Side from, BodyId body);
  void pass(Time now, Side to, const RxFrame& f);
  bool give(Time now, Side to);
  void put(Side to, const TxFrame& f);
  void flush(Side to);
  void pay(Time now, std::uint32_t bytes);

  Box box_;
  Port* ports_[2];
  Bodies bodies_;
  Senders senders_;
  LineParity parity_;
  std::unique_ptr<Outbox> outboxes_[2];
  Rate rate_;
  Time line_free_{};
  bool line_waits_ = false;  // for its rate
  std::array<std::uint64_t, kStrangerCount> strangers_{};
  std::uint64_t no_slot_ = 0;
  std::uint64_t no_header_ = 0;
  std::uint64_t trains_ = 0;
};

}  // namespace weft::wan
