#include "check/messages.h"

namespace weft::check {

std::uint32_t Messages::accepted(Flow flow, Sort sort, std::uint32_t request) {
  Known& k = flows_[flow];
  k.messages.push_back({sort, request});
  ++count_;
  return static_cast<std::uint32_t>(k.messages.size() - 1);
}

void Messages::withdrawn(Flow flow, std::uint32_t number) {
  std::vector<Message>& all = flows_[flow].messages;
  if (number + 1 != all.size()) return report_.add({}, "messages", "only the last message can be withdrawn");
  all.pop_back();
  --count_;
}

Messages::Message* Messages::find(Flow flow, std::uint32_t number, const char* what, Time now) {
  Known& k = flows_[flow];
  if (number < k.messages.size()) return &k.messages[number];
  report_.add(now, "messages", "channel %u: message %u is %s, and was never sent", flow.channel, number,
              what);
  return nullptr;
}

void Messages::handed(Flow flow, std::uint32_t number, bool bytes_right, Time now) {
  Message* const m = find(flow, number, "handed over", now);
  if (m == nullptr) return;
  Known& k = flows_[flow];
  if (m->handed) report_.add(now, "once", "channel %u: message %u comes twice", flow.channel, number);
  if (number < k.next)
    report_.add(now, "order", "channel %u: message %u comes after message %u", flow.channel, number,
                k.next - 1);
  if (!bytes_right) report_.add(now, "whole", "channel %u: message %u has other bytes", flow.channel, number);
  if (m->has_end && m->end == End::kNotSent)
    report_.add(now, "not sent", "channel %u: message %u comes, and was told not sent", flow.channel, number);
  m->handed = true;
  k.next = number + 1;
  if (++k.held > k.window)
    report_.add(now, "window", "channel %u: %u messages are held, the window is %u", flow.channel, k.held,
                k.window);
}

void Messages::given_back(Flow flow, std::uint32_t number, Time now) {
  Message* const m = find(flow, number, "given back", now);
  if (m == nullptr) return;
  m->back = true;
  --flows_[flow].held;
}

void Messages::ended(Flow flow, std::uint32_t number, End end, Time now) {
  Message* const m = find(flow, number, "told", now);
  if (m == nullptr) return;
  if (m->has_end) report_.add(now, "one end", "channel %u: message %u ends twice", flow.channel, number);
  if (end == End::kDelivered && !m->back)
    report_.add(now, "taken", "channel %u: message %u is told delivered, and nobody gave it back",
                flow.channel, number);
  if (end == End::kNotSent && m->handed)
    report_.add(now, "not sent", "channel %u: message %u was handed over, and is told not sent", flow.channel,
                number);
  if (end == End::kAnswered && !m->handed)
    report_.add(now, "answer", "channel %u: request %u is answered, and nobody has it", flow.channel, number);
  m->has_end = true;
  m->end = end;
}

// The request of the other direction ended without waiting for its answer.
bool Messages::over(Flow answer, std::uint32_t request) const {
  const auto it = flows_.find({answer.channel, static_cast<std::uint8_t>(1 - answer.from)});
  if (it == flows_.end() || request >= it->second.messages.size()) return false;
  const Message& m = it->second.messages[request];
  return m.has_end && (m.end == End::kTooLate || m.end == End::kCancelled);
}

void Messages::finish(Time now) {
  for (const auto& [flow, k] : flows_) {
    if (k.held != 0 && !k.receiver_crashed)
      report_.add(now, "buffers", "channel %u: %u messages are still held", flow.channel, k.held);
    if (k.sender_crashed) continue;
    for (std::uint32_t n = 0; n < k.messages.size(); ++n) {
      const Message& m = k.messages[n];
      if (m.has_end || m.back) continue;
      if (m.sort == Sort::kAnswer && over(flow, m.request)) continue;
      report_.add(now, "one end", "channel %u: nobody was told what became of message %u from end %u",
                  flow.channel, n, static_cast<unsigned>(flow.from));
    }
    for (std::uint32_t n = 0; n < k.messages.size(); ++n) {
      const Message& m = k.messages[n];
      if ((m.sort == Sort::kTold || m.sort == Sort::kRequest) && !m.has_end)
        report_.add(now, "one end", "channel %u: the program waits to be told of message %u", flow.channel,
                    n);
    }
  }
}

}  // namespace weft::check
