#include "channel_c/administered.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "adm/file.h"
#include "channel/params.h"

namespace weft::channel {
namespace {

constexpr Duration kEvery = milliseconds(100);

// As the kernel has it, and as statistics pages show it.
std::string program_name() {
  std::array<char, adm::kMostProgram + 2> bytes{};
  const int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  const ssize_t n = read(fd, bytes.data(), bytes.size());
  close(fd);
  std::string name(bytes.data(), n < 0 ? 0 : static_cast<std::size_t>(n));
  return name.substr(0, name.find('\n'));
}

}  // namespace

Administered::Administered(Context& context)
    : context_(context),
      path_(adm::settings_path()),
      file_(path_.empty() ? 0 : adm::number_of(path_)),
      program_(program_name()),
      watch_(path_),
      kept_(params().size()) {}

void Administered::look(Time now) {
  next_ = now.after(kEvery);
  if (path_.empty()) return;
  stale_ = watch_.changed() || stale_;
  if (!stale_) return;
  // A file that cannot be read or is wrong changes nothing; its next change is another one.
  const auto settings = adm::load(path_);
  if (settings) apply(*settings);
  stale_ = false;
}

// Throws without memory: then it is applied again, and what is done already stays as it is.
void Administered::apply(const adm::Settings& settings) {
  std::uint64_t refused = 0;
  const auto all = params();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Param& p = all[i];
    Kept& kept = kept_[i];
    const auto wanted = settings.wanted(program_, p.name);
    if (wanted != kept.given) {
      const std::uint64_t own = kept.given ? kept.own : p.get(context_.config());
      kept.refused = !context_.set(p.name, wanted.value_or(own)) && wanted;
      kept.own = own;
      kept.given = wanted;
    }
    refused += wanted && kept.refused ? 1U : 0U;
  }
  refused_ = refused;
  version_ = settings.version;
}

}  // namespace weft::channel
