// What `weft bench channel` measures (X-RDMA §7): one part a file. Both ends are processes of this machine,
// on addresses and cores of their own.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "channel_bench/far.h"
#include "channel_bench/options.h"
#include "channel_bench/turns.h"
#include "channel_tools/session.h"
#include "record/record.h"

namespace weft::bench {

// Of one part: as a table, and for programs.
struct Measured {
  std::string text;
  record::Record record;
};

Result<Measured> latency(FarEnd& far, const Options& o);
Result<Measured> connecting(FarEnd& far, const Options& o);
Result<Measured> not_ready(FarEnd& far, const Options& o);
Result<Measured> memory(FarEnd& far, const Options& o);
Result<Measured> scale(FarEnd& far, const Options& o);
Result<Measured> gone(FarEnd& far, const Options& o);
Result<Measured> protocol(FarEnd& far, const Options& o);
Result<Measured> waiting(FarEnd& far, const Options& o);
Result<Measured> shared(FarEnd& far, const Options& o);
Result<Measured> cache(FarEnd& far, const Options& o);
Result<Measured> pages(FarEnd& far, const Options& o);

// --- what parts share ---

// A context at either end, and a channel between them, opened by this one.
class Pair {
 public:
  // `id` is the context's at the far end; parameters are of both.
  static Result<std::unique_ptr<Pair>> open(FarEnd& far, std::uint16_t id,
                                            const std::vector<std::string>& parameters);
  ~Pair();
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  const tools::Session& session() const { return *session_; }
  weft_channel* channel() const { return channel_; }
  std::uint16_t id() const { return id_; }
  Result<void> set(const char* name, std::uint64_t value);  // at both ends
  // The far end serves from here until stop(). It sleeps while nothing happens: it hears of connections at
  // once then, and spins otherwise.
  Result<void> serve(std::uint32_t hold_us = 0, bool sleeps = false);
  Result<void> stop();

 private:
  Pair(FarEnd& far, std::uint16_t id) : far_(far), id_(id) {}
  FarEnd& far_;
  const std::uint16_t id_;
  std::unique_ptr<tools::Session> session_;
  weft_channel* channel_ = nullptr;
};

// Polls until `done` says so, or gives up after so many seconds; false: it gave up. It spins, or sleeps for
// `nap_ms` at most while nothing happens.
bool poll_until(const tools::Session& session, double seconds,
                const std::function<void(const weft_notice&)>& see, const std::function<bool()>& done,
                int nap_ms = 0);
// For so long, whatever comes is given back.
void turn_for(const tools::Session& session, std::uint64_t ns);
// The median time of a request of so many bytes and its response, in us; it looks with `nap_ms` as above.
Result<double> call_us(const Pair& pair, std::uint32_t bytes, std::uint32_t rounds, int nap_ms);

}  // namespace weft::bench
