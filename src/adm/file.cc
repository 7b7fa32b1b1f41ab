#include "adm/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace weft::adm {
namespace {

constexpr const char* kDefault = "/run/weft/parameters";
constexpr int kPatience = 5;  // seconds that a change waits for another

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

tl::unexpected<Error> wrong(const std::string& path, const std::string& what) {
  return fail("the parameters' file '" + path + "': " + what);
}
tl::unexpected<Error> cannot_write(const std::string& path) {
  const int why = errno;
  return wrong(path,
               std::string("it cannot be written (") + std::strerror(why) +
                   "); run this as root, or name a file of your own by WEFT_PARAMETERS, here and in the "
                   "programs' environment");
}

// `name` beside the file, in a folder that is made if there is none. Programs of all users follow what is in
// the folder, whatever the umask is; a lock is its owner's alone, because whoever may open it may hold it for
// ever.
int open_lock(const std::string& path, const char* name) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  if (!folder.empty() && mkdir(folder.c_str(), 0755) == 0) chmod(folder.c_str(), 0755);
  const int fd = open((path + name).c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd >= 0) fchmod(fd, 0600);
  return fd;
}

// Whoever changes the file, or looks for an agent, holds a lock for a moment.
bool locked_within(int fd, int seconds) {
  constexpr int kTries = 50;  // a second
  for (int i = 0; i < seconds * kTries; ++i) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    usleep(1'000'000 / kTries);
  }
  return false;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

Result<void> store(const std::string& path, const Settings& settings) {
  const std::string part = path + ".part";
  unlink(part.c_str());
  Fd file(open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  // Whatever the umask is: programs of all users read it, and nobody else writes it.
  if (file.get() < 0 || fchmod(file.get(), 0644) != 0 || !write_all(file.get(), text_of(settings)) ||
      fsync(file.get()) != 0 || std::rename(part.c_str(), path.c_str()) != 0)
    return cannot_write(path);
  return {};
}

}  // namespace

std::string settings_path() {
  const char* const asked = secure_getenv("WEFT_PARAMETERS");
  if (asked == nullptr || *asked == '\0') return kDefault;
  return std::strcmp(asked, "0") == 0 ? "" : asked;
}

std::uint64_t number_of(const std::string& path) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : path) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash | 1U;
}

Result<Settings> load(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (file.get() < 0 && (errno == ENOENT || errno == ENOTDIR)) return Settings{};
  struct stat facts {};
  if (file.get() < 0 || fstat(file.get(), &facts) != 0)
    return wrong(path, std::string("it cannot be read: ") + std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) return wrong(path, "it is no file");
  if ((facts.st_uid != 0 && facts.st_uid != geteuid()) || (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return wrong(path,
                 "others may write it, so that it is not read; make it yours or root's with 'chmod 644'");
  std::string text(kMostText + 1, '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t n = read(file.get(), text.data() + length, text.size() - length);
    if (n < 0) return wrong(path, std::string("it cannot be read: ") + std::strerror(errno));
    if (n == 0) break;
    length += static_cast<std::size_t>(n);
  }
  text.resize(length);
  auto settings = read_settings(text);
  if (!settings) return wrong(path, settings.error().message);
  return settings;
}

Result<Settings> change(const std::string& path, const std::function<Result<void>(Settings&)>& change) {
  const Fd lock(open_lock(path, ".lock"));
  if (lock.get() < 0) return cannot_write(path);
  if (!locked_within(lock.get(), kPatience))
    return wrong(path, "somebody else has been changing it for " + std::to_string(kPatience) + " s; 'fuser " +
                           path + ".lock' names the process: end it, and try again");
  auto settings = load(path);
  if (!settings) return settings;
  if (const auto changed = change(*settings); !changed) return tl::unexpected(changed.error());
  ++settings->version;
  if (const auto stored = store(path, *settings); !stored) return tl::unexpected(stored.error());
  return settings;
}

bool has_agent(const std::string& path) {
  const Fd lock(open((path + ".agent").c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  return lock.get() >= 0 && flock(lock.get(), LOCK_SH | LOCK_NB) != 0;
}

Result<std::unique_ptr<Agency>> Agency::begin(const std::string& path) {
  Fd lock(open_lock(path, ".agent"));
  if (lock.get() < 0) return cannot_write(path);
  if (!locked_within(lock.get(), 1))
    return wrong(path, "another weft adm agent keeps it; end that one first");
  return std::unique_ptr<Agency>(new Agency(lock.release()));
}

Agency::~Agency() { close(fd_); }

}  // namespace weft::adm
