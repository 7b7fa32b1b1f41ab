// What boxes of this host say of themselves, for `weft wan stat` and whoever watches them: a file for each,
// box-PID.json, written anew twice a second under another name and renamed, so that a reader finds it whole.
//
// A box that ends removes its file. One that is killed cannot: its file names the process and when that was
// started, and a reader finds no such process any more.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "record/record.h"

namespace weft::cli {

// Where files of status are: the folder that was asked for, else /run/weft where that can be, else
// $XDG_RUNTIME_DIR/weft; empty: nowhere.
std::string status_folder(const std::string& asked, bool make);

class StatusFile {
 public:
  // `folder` empty: nothing is ever written.
  explicit StatusFile(const std::string& folder);
  ~StatusFile();
  StatusFile(const StatusFile&) = delete;
  StatusFile& operator=(const StatusFile&) = delete;
  // Names the process, and replaces what was written before.
  bool write(record::Record status);

 private:
  std::string path_;
};

enum class Life : std::uint8_t {
  kRuns,
  kSilent,  // its process is there, and has written nothing for seconds
  kGone,    // no such process any more
};

struct BoxStatus {
  std::string path;
  Life life = Life::kRuns;
  std::string json;
};
// By process. What is no status of a box is left out.
std::vector<BoxStatus> read_statuses(const std::string& folder);

}  // namespace weft::cli
