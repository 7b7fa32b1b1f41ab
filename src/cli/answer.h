// For tests: a command as the shell runs it, and what it says.
#pragma once
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"

namespace weft::cli {

struct Answer {
  int code;
  std::string out;
  std::string err;
};

inline Answer answer_to(std::vector<std::string> args) {
  std::ostringstream out;
  std::ostringstream err;
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = run(std::move(args), out, err);
  return {code, out.str() + ::testing::internal::GetCapturedStdout(),
          err.str() + ::testing::internal::GetCapturedStderr()};
}

}  // namespace weft::cli
