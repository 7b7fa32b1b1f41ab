// What a command leaves behind: files and standard output, whole, or the command says that they are not.
//
// An OutputFile is written as NAME.part beside its place, and gets its name when all of it has reached the
// system: a reader finds the file as it was before or as it is meant to be. An interrupted run leaves
// NAME.part. A place that is no file (a pipe, a terminal, /dev/null) is written to directly.
//
// Streams swallow errors, so nothing here is done before finish() said so. main() of a program is
// run_program(), which finishes standard output and turns what was thrown into a sentence.
#pragma once
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "core/base/result.h"

namespace weft::record {

class OutputFile {
 public:
  // `what` begins every sentence about it: "--trace", or "" if the name of the file says enough.
  static Result<OutputFile> open(const std::string& what, const std::string& path);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  ~OutputFile();  // not finished: as if it had never been opened

  std::ostream& stream();
  // Everything has reached the system; nothing is written any more. Where several files belong together, all
  // of them before the first finish().
  Result<void> complete();
  Result<void> finish();  // complete(), and the file has its name

 private:
  struct State;
  explicit OutputFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The whole file at once.
Result<void> write_file(const std::string& path, const std::string& text);

// What main() does around its work: nothing thrown leaves it, and output that got lost is exit code 1.
int run_program(const char* name, const std::function<int()>& work);

}  // namespace weft::record
