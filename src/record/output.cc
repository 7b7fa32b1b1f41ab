#include "record/output.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <new>
#include <stdexcept>
#include <streambuf>
#include <system_error>

namespace weft::record {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOutOfMemory =
    "out of memory: this needs more than the machine has free; ask for fewer or smaller messages";

// A stream's buffer over a FILE, which remembers the reason of the first failure.
class FileBuffer final : public std::streambuf {
 public:
  std::FILE* file = nullptr;
  int error = 0;

  bool flush() { return note(std::fflush(file) == 0); }
  bool close() {
    const bool closed = std::fclose(file) == 0;
    file = nullptr;
    return note(closed);
  }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    return note(std::fputc(c, file) != EOF) ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    const auto whole = static_cast<std::size_t>(size);
    return note(std::fwrite(text, 1, whole, file) == whole) ? size : 0;
  }
  int sync() override { return flush() ? 0 : -1; }

 private:
  bool note(bool good) {
    if (!good && error == 0) error = errno;
    return good && error == 0;
  }
};

// Programs open files. With a closed standard stream the first one would get its number, and with it what
// people are told. Nothing can be written to what stands there instead.
void hold_standard_streams() {
  while (std::FILE* f = std::fopen("/dev/null", "re")) {
    if (fileno(f) <= 2) continue;
    std::fclose(f);
    return;
  }
}

int failed(const char* program, const std::string& sentence) {
  std::fprintf(stderr, "%s: %s.\n", program, sentence.c_str());
  return 1;
}

int outcome(const char* program, const std::function<int()>& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return failed(program, kOutOfMemory);
  } catch (const std::length_error&) {  // a vector was asked for more than there are addresses
    return failed(program, kOutOfMemory);
  } catch (const std::exception& error) {
    return failed(program, error.what());
  }
}

}  // namespace

struct OutputFile::State {
  FileBuffer buffer;
  std::ostream stream{&buffer};
  std::string what;  // with its colon
  fs::path place;    // where it is to lie
  fs::path written;  // where it lies until then; the same for what is no file
  bool done = false;

  ~State() {
    if (buffer.file != nullptr) std::fclose(buffer.file);
    std::error_code none;
    if (!done && written != place) fs::remove(written, none);
  }
  tl::unexpected<Error> wrong(const char* verb, int error) const {
    return fail(what + "'" + place.string() + "' " + verb + ": " + std::strerror(error));
  }
};

OutputFile::OutputFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

std::ostream& OutputFile::stream() { return state_->stream; }

Result<OutputFile> OutputFile::open(const std::string& what, const std::string& path) {
  auto s = std::make_unique<State>();
  s->what = what.empty() ? "" : what + ": ";
  s->place = path;
  std::error_code none;
  // A link stays a link: what it leads to is replaced.
  if (const fs::path real = fs::canonical(s->place, none); !none) s->place = real;
  const bool direct = fs::exists(s->place, none) && !fs::is_regular_file(s->place, none);
  s->written = direct ? s->place : fs::path(s->place.string() + ".part");
  errno = 0;
  s->buffer.file = std::fopen(s->written.c_str(), "wbe");
  if (s->buffer.file == nullptr) {
    const int error = errno;
    s->written = s->place;
    return s->wrong("cannot be written", error);
  }
  return OutputFile(std::move(s));
}

Result<void> OutputFile::complete() {
  State& s = *state_;
  if (s.buffer.file == nullptr) return {};
  const bool flushed = s.buffer.flush();
  if (!s.buffer.close() || !flushed) return s.wrong("could not be written to its end", s.buffer.error);
  return {};
}

Result<void> OutputFile::finish() {
  if (const auto whole = complete(); !whole) return whole;
  State& s = *state_;
  if (s.written != s.place && std::rename(s.written.c_str(), s.place.c_str()) != 0)
    return s.wrong("could not be put in its place", errno);
  s.done = true;
  return {};
}

Result<void> write_file(const std::string& path, const std::string& text) {
  auto file = OutputFile::open("", path);
  if (!file) return tl::unexpected(file.error());
  file->stream() << text;
  return file->finish();
}

int run_program(const char* name, const std::function<int()>& work) {
  hold_standard_streams();
  FileBuffer out;
  out.file = stdout;
  std::streambuf* const before = std::cout.rdbuf(&out);
  const int code = outcome(name, work);
  std::cout.rdbuf(before);
  if (out.flush() && std::ferror(stdout) == 0) return code;
  const std::string reason = out.error != 0 ? std::string(": ") + std::strerror(out.error) : std::string();
  return failed(name, "standard output could not be written to its end" + reason);
}

}  // namespace weft::record
