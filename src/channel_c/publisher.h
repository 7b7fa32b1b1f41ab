// Keeps the statistics page of a context (page/page.h): totals, a row for each channel, what took too
// long, and its parameters. A little at a time: at most once a millisecond, and then a bounded number of
// rows, the next ones in turn. So a context of ten thousand channels pays no more for it than one of ten, and
// its rows are older.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "channel/context.h"
#include "channel_c/waiting.h"
#include "page/page.h"

namespace weft::channel {

class Publisher {
 public:
  static constexpr std::uint32_t kMostChannels = 4096;  // rows; of more channels the first have one
  // Without a page (there is no shared memory) it does nothing.
  Publisher(const Context& context, const Waiting& waiting);

  // `now` as the context has it.
  void turn(Time now) {
    if (page_ != nullptr && now >= next_) publish(now);
  }
  // What an administrator wanted of this context (administered.h).
  void administered(std::uint64_t file, std::uint64_t version, std::uint64_t refused) {
    if (file == adm_file_ && version == adm_version_ && refused == adm_refused_) return;
    rows_behind_ = rows_behind_ == 0 ? 1 : rows_behind_;
    adm_file_ = file;
    adm_version_ = version;
    adm_refused_ = refused;
  }
  // Something happened that no row shows yet: the program should not sleep for long.
  bool behind() const { return page_ != nullptr && (rows_behind_ != 0 || happened() != seen_); }
  void rebase(Duration by) { next_ = next_.ps > by.ps ? next_ - by : Time{}; }

 private:
  // A number that is another one after whatever changes a row. A deadline ends a request without a
  // completion.
  std::uint64_t happened() const {
    const ContextCounts& n = context_.counts();
    return (n.completions + n.stream_frames + n.unanswered) * 8 + context_.open_channels();
  }
  void publish(Time now);
  void totals();
  void channel_row(std::uint32_t index);
  void slow_rows();
  void parameter_row();

  const Context& context_;
  const Waiting& waiting_;
  std::unique_ptr<page::Page> page_;
  Time next_{};
  std::uint32_t cursor_ = 0;
  std::uint32_t rows_ = 0;
  std::uint32_t rows_behind_ = 0;
  std::uint64_t seen_ = 0;  // of what happened
  std::uint64_t slow_seen_ = 0;
  std::uint64_t settings_seen_ = UINT64_MAX;
  std::uint64_t adm_file_ = 0;
  std::uint64_t adm_version_ = 0;
  std::uint64_t adm_refused_ = 0;
  // What each row shows. A channel keeps its opening for its life; its queue pair comes and goes with its
  // connections. The session is the program's secret and stays out of the page.
  struct Shown {
    std::uint64_t session = 0;
    std::uint64_t opening = 0;  // 0: the row is clear
  };
  std::vector<Shown> shown_;
  std::uint64_t openings_ = 0;
};

}  // namespace weft::channel
