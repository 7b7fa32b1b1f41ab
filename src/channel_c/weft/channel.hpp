// weft channels for programs in C++20: weft/channel.h with owners and exceptions for what only a mistake or a missing
// resource brings about. Everything else is the C interface's, and both may be mixed.
#pragma once
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "channel.h"

namespace weft::messaging {

// A message that is yours. It is released when it goes, unless a call took it.
class Message {
 public:
  Message(weft_context* context, weft_message* message) : context_(context), message_(message) {}
  Message(Message&& o) noexcept : context_(o.context_), message_(o.take()) {}
  Message& operator=(Message&& o) noexcept {
    std::swap(context_, o.context_);
    std::swap(message_, o.message_);
    return *this;
  }
  ~Message() {
    if (message_ != nullptr) weft_release(context_, message_);
  }
  std::span<std::uint8_t> bytes() const {
    return {static_cast<std::uint8_t*>(weft_data(message_)), weft_length(message_)};
  }
  std::string_view text() const {
    return {static_cast<const char*>(weft_data(message_)), weft_length(message_)};
  }
  weft_message* get() const { return message_; }
  weft_message* take() {
    weft_message* const m = message_;
    message_ = nullptr;
    return m;
  }

 private:
  weft_context* context_;
  weft_message* message_;
};

class Context {
 public:
  // Parameters are "name=value".
  explicit Context(std::initializer_list<std::string> parameters = {}, const char* device = nullptr) {
    std::vector<const char*> list;
    for (const std::string& p : parameters) list.push_back(p.c_str());
    list.push_back(nullptr);
    char why[256];
    weft_context* made = nullptr;
    if (weft_open(&made, device, list.data(), why, sizeof why) != 0) throw std::runtime_error(why);
    context_.reset(made);
  }
  weft_context* get() const { return context_.get(); }

  Message allocate(std::uint32_t length) const {
    weft_message* const m = weft_allocate(get(), length);
    if (m == nullptr) throw std::bad_alloc();
    return {get(), m};
  }
  // A message whose bytes stay where they are, in memory that weft_register() was told of.
  Message wrap(weft_memory* memory, std::uint64_t offset, std::uint32_t length) const {
    weft_message* const m = weft_wrap(get(), memory, offset, length);
    if (m == nullptr) throw std::bad_alloc();
    return {get(), m};
  }
  // One message of several pieces of such memory, in this order.
  Message gather(std::span<const weft_piece> pieces) const {
    weft_message* const m = weft_gather(get(), pieces.data(), static_cast<unsigned>(pieces.size()));
    if (m == nullptr) throw std::bad_alloc();
    return {get(), m};
  }
  weft_memory* register_memory(std::span<std::byte> bytes) const {
    weft_memory* memory = nullptr;
    check(weft_register(get(), bytes.data(), bytes.size(), &memory), "register memory");
    return memory;
  }
  void deregister(weft_memory* memory) const { check(weft_deregister(get(), memory), "deregister memory"); }
  Message copy(std::string_view text) const {
    if (text.size() > UINT32_MAX) throw std::length_error("a message that long");
    Message m = allocate(static_cast<std::uint32_t>(text.size()));
    if (!text.empty()) std::memcpy(m.bytes().data(), text.data(), text.size());
    return m;
  }
  void listen(std::uint16_t service) const { check(weft_listen(get(), service), "listen"); }
  weft_channel* connect(const std::string& address, std::uint16_t service, std::uint64_t user = 0) const {
    weft_channel* channel = nullptr;
    check(weft_connect(get(), address.c_str(), service, user, &channel), "connect");
    return channel;
  }
  // False: the window and the queue are full, or the channel is closed; the message is still yours.
  bool send(weft_channel* channel, Message& m, std::uint64_t user = 0, int flags = 0) const {
    return taken(m, weft_send(channel, m.get(), user, flags));
  }
  bool call(weft_channel* channel, Message& m, std::uint64_t user = 0, std::uint64_t timeout_us = 0) const {
    return taken(m, weft_call(channel, m.get(), user, timeout_us, nullptr));
  }
  bool answer(const Message& request, Message& m, std::uint32_t status = 0, std::uint64_t user = 0) const {
    return taken(m, weft_answer(request.get(), m.get(), status, user));
  }
  // The channel goes on over WEFT_RDMA or WEFT_TCP. False: it is just reconnecting; try again.
  bool move(weft_channel* channel, int carrier) const {
    const int error = weft_move(channel, carrier);
    if (error != EAGAIN) check(error, "move");
    return error == 0;
  }
  // What happened next; nothing after `timeout_ms` (-1: it waits).
  std::optional<weft_notice> wait(int timeout_ms = -1) const {
    weft_notice n;
    if (weft_wait(get(), &n, 1, timeout_ms) == 0) return std::nullopt;
    return n;
  }
  Message own(const weft_notice& n) const { return {get(), n.message}; }
  // Where the time of a received message went; nothing if it was not traced.
  static std::optional<weft_message_trace> trace(const Message& m) {
    weft_message_trace t;
    if (weft_trace(m.get(), &t, sizeof t) != 0) return std::nullopt;
    return t;
  }
  // The next line of what took too long.
  std::optional<std::string> slow() const {
    char line[512];
    if (weft_slow(get(), line, sizeof line) == 0) return std::nullopt;
    return line;
  }

 private:
  static void check(int error, const char* what) {
    if (error != 0) throw std::runtime_error(std::string(what) + ": " + std::strerror(error));
  }
  static bool taken(Message& m, int error) {
    if (error == 0) m.take();
    return error == 0;
  }
  struct Free {
    void operator()(weft_context* c) const { weft_free(c); }
  };
  std::unique_ptr<weft_context, Free> context_;
};

}  // namespace weft::messaging
