// A context of the tools' own: opened, waited on, closed. Everything goes through weft/channel.h, as any
// program's.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "channel_c/weft/channel.h"
#include "core/base/result.h"

namespace weft::tools {

std::uint64_t now_ns();  // the machine's steady clock

class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const std::string& device,
                                               const std::vector<std::string>& parameters);
  weft_context* get() const { return context_.get(); }
  // Gives what happened to `see`, one after the other; waits `most_ms` for the first.
  void wait(int most_ms, const std::function<void(const weft_notice&)>& see) const;
  // A message with this text in it; nullptr: there is no memory.
  weft_message* message(const std::string& text) const;

 private:
  struct Free {
    void operator()(weft_context* c) const { weft_free(c); }
  };
  std::unique_ptr<weft_context, Free> context_;
};

}  // namespace weft::tools
