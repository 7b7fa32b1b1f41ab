// A wire with another inside: whatever it does not do itself, the inner one does. What a wire can do is added
// here once, and no layer forgets to pass it on.
#pragma once
#include <memory>
#include <utility>

#include "live/wires/wire.h"

namespace weft::live {

template <class Inner>
class WireAround : public Wire {
 public:
  const WireFacts& facts() const override { return inner_->facts(); }
  bool rest() override { return inner_->rest(); }
  void rise() override { inner_->rise(); }
  void mark() override { inner_->mark(); }
  bool passed() const override { return inner_->passed(); }
  void show_headers() override { inner_->show_headers(); }
  Outcome<void> join(const wire::Address& group) override { return inner_->join(group); }
  void leave(const wire::Address& group) override { inner_->leave(group); }
  int descriptor() const override { return inner_->descriptor(); }
  int mailbox() const override { return inner_->mailbox(); }
  int aside() const override { return inner_->aside(); }
  int groups() const override { return inner_->groups(); }
  Neighbours* neighbours() override { return inner_->neighbours(); }
  void abandon(int nowhere) override { inner_->abandon(nowhere); }
  void let_go() override { inner_->let_go(); }
  Time next_due() const override { return inner_->next_due(); }
  void visit_counters(const SeeCounter& see) const override { inner_->visit_counters(see); }

 protected:
  explicit WireAround(std::unique_ptr<Inner> inner) : inner_(std::move(inner)) {}

  std::unique_ptr<Inner> inner_;
};

}  // namespace weft::live
