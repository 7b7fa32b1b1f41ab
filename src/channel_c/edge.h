// The edge of the C interface, which every call passes: the context that a program's pointer names, pointers
// under their other names, no exceptions, and no calls of a child for its parent. library.cc has the calls
// that do something, waiting.cc those that wait, observe.cc those that only look.
#pragma once
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <string_view>

#include "channel/context.h"
#include "channel_c/administered.h"
#include "channel_c/clock.h"
#include "channel_c/pages.h"
#include "channel_c/publisher.h"
#include "channel_c/tcp.h"
#include "channel_c/waiting.h"
#include "channel_c/weft/channel.h"
#include "verbs_port/verbs_port.h"

struct weft_context {
  weft::channel::Clock clock{std::chrono::steady_clock::now()};
  weft::Time now() {
    return clock.at(std::chrono::steady_clock::now(), [this](weft::Duration by) {
      if (context != nullptr) context->rebase(by);
      if (publisher != nullptr) publisher->rebase(by);
      if (administered != nullptr) administered->rebase(by);
      waiting.rebase(by);
    });
  }
  std::unique_ptr<weft::IbverbsPort> port;
  std::unique_ptr<weft::channel::TcpPort> tcp;
  std::unique_ptr<weft::channel::Context> context;
  weft::channel::Waiting waiting;
  std::unique_ptr<weft::channel::Publisher> publisher;
  std::unique_ptr<weft::channel::Administered> administered;
  // The rest of a turn: what an administrator wants, and what others may see.
  void tend(weft::Time at, bool before_sleep) {
    if (before_sleep) {
      administered->look(at);
    } else {
      administered->turn(at);
    }
    publisher->administered(administered->file(), administered->version(), administered->refused());
    publisher->turn(at);
  }
  weft::channel::Owner owner;
  weft::channel::Notice kept;  // taken, but there was no room for it
  bool has_kept = false;
};

namespace weft::channel {

inline void say(std::string_view sentence, char* why, std::size_t room) {
  if (why == nullptr || room == 0) return;
  const std::size_t n = std::min(room - 1, sentence.size());
  std::memcpy(why, sentence.data(), n);
  why[n] = '\0';
}

// No exception leaves: there is no memory, and a call that can fail says so.
template <class Call>
int at_edge(const Call& call, char* why = nullptr, std::size_t room = 0) {
  try {
    return call();
  } catch (const std::exception&) {
    say("there is no memory", why, room);
    return ENOMEM;
  }
}

// Pointers of C are those of the library under other names.
inline Channel* of(weft_channel* c) { return reinterpret_cast<Channel*>(c); }
inline const Channel* of(const weft_channel* c) { return reinterpret_cast<const Channel*>(c); }
inline Message* of(weft_message* m) { return reinterpret_cast<Message*>(m); }
inline const Message* of(const weft_message* m) { return reinterpret_cast<const Message*>(m); }
inline weft_channel* to(Channel* c) { return reinterpret_cast<weft_channel*>(c); }
inline weft_message* to(Message* m) { return reinterpret_cast<weft_message*>(m); }

inline constexpr const char* kInherited =
    "this context is of the process that forked; a child opens one of its own, or ends";
inline bool inherited(const weft_context* c) { return c->owner.inherited(); }
inline bool inherited(const weft_channel* c) {
  return inherited(static_cast<const weft_context*>(of(c)->context->config().program));
}

// A call in a child of the process that made the context is refused.
template <class Of, class Call>
int at_edge_of(const Of* c, const Call& call, char* why = nullptr, std::size_t room = 0) {
  if (!inherited(c)) return at_edge(call, why, room);
  say(kInherited, why, room);
  return ECHILD;
}

}  // namespace weft::channel
