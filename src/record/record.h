// What a run leaves behind for programs to read: a tree of named values, written as JSON. Names keep the
// order in which they were set, so equal runs give equal bytes.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace weft::record {

class Record {
 public:
  Record();
  ~Record();
  Record(Record&&) noexcept;
  Record& operator=(Record&&) noexcept;

  Record& set(std::string_view name, std::int64_t value);
  Record& set(std::string_view name, std::uint64_t value);
  Record& set(std::string_view name, double value);
  Record& set(std::string_view name, bool value);
  Record& set(std::string_view name, std::string_view value);
  Record& set(std::string_view name, const char* value) { return set(name, std::string_view(value)); }
  Record& set(std::string_view name, Record value);
  // Adds to the list of this name.
  Record& append(std::string_view name, Record value);

  std::string json() const;  // indented, ends with a line break

 private:
  struct Tree;
  std::unique_ptr<Tree> tree_;
};

}  // namespace weft::record
