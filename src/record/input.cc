#include "record/input.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace weft::record {

Result<std::string> read_file(const std::string& path) {
  const auto wrong = [&](const std::string& why) { return fail("'" + path + "' " + why); };
  std::FILE* in = std::fopen(path.c_str(), "rbe");
  if (in == nullptr) return wrong(std::string("cannot be read: ") + std::strerror(errno));
  std::string text;
  std::array<char, 65536> piece;
  std::size_t got = 0;
  while (text.size() <= kLargestInput && (got = std::fread(piece.data(), 1, piece.size(), in)) != 0)
    text.append(piece.data(), got);
  const bool broken = std::ferror(in) != 0;  // a folder, for one
  const int error = errno;
  std::fclose(in);
  if (broken) return wrong(std::string("cannot be read: ") + std::strerror(error));
  if (text.size() > kLargestInput)
    return wrong("is longer than " + std::to_string(kLargestInput >> 20U) + " MiB, the most that is read");
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    return wrong("is UTF-16; save it as UTF-8");
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  return text;
}

}  // namespace weft::record
