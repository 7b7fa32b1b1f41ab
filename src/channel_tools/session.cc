#include "channel_tools/session.h"

#include <chrono>
#include <cstring>

namespace weft::tools {

std::uint64_t now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

Result<std::unique_ptr<Session>> Session::open(const std::string& device,
                                               const std::vector<std::string>& parameters) {
  std::vector<const char*> list;
  for (const std::string& p : parameters) list.push_back(p.c_str());
  list.push_back(nullptr);
  char why[512] = {};
  weft_context* made = nullptr;
  if (weft_open(&made, device.empty() ? nullptr : device.c_str(), list.data(), why, sizeof why) != 0)
    return fail(std::string(why));
  auto session = std::make_unique<Session>();
  session->context_.reset(made);
  return session;
}

void Session::wait(int most_ms, const std::function<void(const weft_notice&)>& see) const {
  weft_notice told[64];
  const int n = most_ms == 0 ? weft_poll(get(), told, 64) : weft_wait(get(), told, 64, most_ms);
  for (int i = 0; i < n; ++i) see(told[i]);
}

weft_message* Session::message(const std::string& text) const {
  weft_message* const m = weft_allocate(get(), static_cast<std::uint32_t>(text.size()));
  if (m != nullptr) std::memcpy(weft_data(m), text.data(), text.size());
  return m;
}

}  // namespace weft::tools
