#include "channel_bench/external.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "channel_bench/host.h"
#include "channel_tools/session.h"
#include "process/child.h"

namespace weft::bench {
namespace {

using tools::now_ns;

constexpr std::uint64_t kLongest = 30'000'000'000;  // ns, of a client
constexpr int kTries = 30;                          // while its server begins
constexpr useconds_t kBetween = 150'000;
constexpr std::size_t kMostText = 1U << 20U;

std::string text(std::uint32_t n) { return std::to_string(n); }

// The number in front of a unit.
std::optional<double> number_before(const std::string& said, const std::string& unit) {
  const std::size_t at = said.find(unit);
  if (at == std::string::npos) return std::nullopt;
  std::size_t end = at;
  while (end > 0 && said[end - 1] == ' ') --end;
  const std::size_t begin = said.find_last_of(" \n", end - 1) + 1;
  return std::strtod(said.c_str() + begin, nullptr);
}

// Column `column` of the last line that begins with `first`, "" for one that begins with a digit.
std::optional<double> column_of(const std::string& said, const std::string& first, int column) {
  std::istringstream lines(said);
  std::optional<double> found;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    const bool wanted = first.empty() ? !word.empty() && word[0] >= '0' && word[0] <= '9' : word == first;
    if (!wanted) continue;
    for (int i = 0; i < column; ++i) words >> word;
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (words && end != word.c_str() && value > 0) found = value;
  }
  return found;
}

std::vector<std::string> ucx(const char* transports) {
  const bool tcp = std::strcmp(transports, "tcp") == 0;
  return {"env",
          std::string("UCX_TLS=") + transports + ",self",
          tcp ? "UCX_NET_DEVICES=lo" : "UCX_NET_DEVICES=weft0:1",
          "ucx_perftest",
          "-p",
          tcp ? "13402" : "13401"};
}
std::vector<std::string> ucx_client(const char* transports, const std::string& server, std::uint32_t size,
                                    std::uint32_t rounds) {
  std::vector<std::string> all = ucx(transports);
  for (const std::string& w : {server, std::string("-t"), std::string("tag_lat"), std::string("-n"),
                               text(rounds), std::string("-s"), text(size)})
    all.push_back(w);
  return all;
}
std::vector<std::string> fabric(const char* provider, std::uint32_t size, std::uint32_t rounds) {
  return {"fi_pingpong", "-p", provider, "-e", "msg", "-I", text(rounds), "-S", text(size)};
}

constexpr const char* kRc = "rc_verbs,ud_verbs:aux";

// Of a client: all that it said, and whether it ended well.
struct Said {
  std::string text;
  bool well = false;
};

// Lies beside this program.
std::string weft_beside() {
  std::array<char, PATH_MAX> self{};
  if (readlink("/proc/self/exe", self.data(), self.size() - 1) <= 0) return "weft";
  const std::string path = self.data();
  return path.substr(0, path.rfind('/') + 1) + "weft";
}

pid_t begin(const std::vector<std::string>& words, const std::string& address, int core, bool files,
            int out) {
  std::vector<std::string> all{weft_beside(), "run", "--addr", address};
  if (files) all.emplace_back("--device-files");
  all.emplace_back("--");
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (const std::string& w : all) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  return process::spawn([&] {
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(out >= 0 ? out : nothing, STDOUT_FILENO);
    dup2(out >= 0 ? out : nothing, STDERR_FILENO);
    pin(core);
    execv(argv[0], argv.data());
  });
}

void end(pid_t child) {
  kill(child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Said hear(const std::vector<std::string>& words, const std::string& address, bool files) {
  std::array<int, 2> pipe{};
  Said said;
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) return said;
  const pid_t child = begin(words, address, core_of(0), files, pipe[1]);
  close(pipe[1]);
  const std::uint64_t until = now_ns() + kLongest;
  for (pollfd look{pipe[0], POLLIN, 0}; child > 0 && now_ns() < until;) {
    if (::poll(&look, 1, 200) <= 0) continue;
    std::array<char, 4096> piece;
    const ssize_t n = read(pipe[0], piece.data(), piece.size());
    if (n == 0 || (n < 0 && errno != EINTR)) break;
    if (n > 0 && said.text.size() < kMostText) said.text.append(piece.data(), static_cast<std::size_t>(n));
  }
  close(pipe[0]);
  int status = 0;
  if (child > 0 && waitpid(child, &status, WNOHANG) == 0 && now_ns() >= until) kill(child, SIGKILL);
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  said.well = child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return said;
}

bool installed(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::string last_line(const std::string& said) {
  std::istringstream lines(said);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace

const std::array<Program, kPrograms>& programs() {
  static constexpr std::array<Program, kPrograms> kAll{{
      {"ibv_rc_pingpong",
       [](std::uint32_t size, std::uint32_t rounds) -> std::vector<std::string> {
         return {"ibv_rc_pingpong", "-g", "0", "-s", text(size), "-n", text(rounds)};
       },
       [](const std::string& server, std::uint32_t size, std::uint32_t rounds) -> std::vector<std::string> {
         return {"ibv_rc_pingpong", "-g", "0", "-s", text(size), "-n", text(rounds), server};
       },
       [](const std::string& said) -> std::optional<double> {
         const auto whole = number_before(said, "usec/iter");
         return whole ? std::optional(*whole / 2) : std::nullopt;
       },
       false, false},
      {"ucx_rc", [](std::uint32_t, std::uint32_t) { return ucx(kRc); },
       [](const std::string& server, std::uint32_t size, std::uint32_t rounds) {
         return ucx_client(kRc, server, size, rounds);
       },
       [](const std::string& said) { return column_of(said, "Final:", 2); }, true, false},
      {"ucx_tcp", [](std::uint32_t, std::uint32_t) { return ucx("tcp"); },
       [](const std::string& server, std::uint32_t size, std::uint32_t rounds) {
         return ucx_client("tcp", server, size, rounds);
       },
       [](const std::string& said) { return column_of(said, "Final:", 2); }, false, false},
      {"fi_verbs", [](std::uint32_t size, std::uint32_t rounds) { return fabric("verbs", size, rounds); },
       [](const std::string& server, std::uint32_t size, std::uint32_t rounds) {
         auto all = fabric("verbs", size, rounds);
         all.push_back(server);
         return all;
       },
       [](const std::string& said) { return column_of(said, "", 6); }, false, true},
      {"fi_tcp", [](std::uint32_t size, std::uint32_t rounds) { return fabric("tcp", size, rounds); },
       [](const std::string& server, std::uint32_t size, std::uint32_t rounds) {
         auto all = fabric("tcp", size, rounds);
         all.push_back(server);
         return all;
       },
       [](const std::string& said) { return column_of(said, "", 6); }, false, false},
  }};
  return kAll;
}

std::optional<double> Externals::half_round_trip(const Program& p, std::uint32_t size, std::uint32_t rounds) {
  if (absent_.contains(p.name)) return std::nullopt;
  const auto leave_out = [&](const std::string& why) {
    absent_[p.name] = why;
    return std::nullopt;
  };
  const std::vector<std::string> server = p.server(size, rounds);
  const std::vector<std::string> client = p.client(far_, size, rounds);
  const std::string program = server[0] == "env" ? server[3] : server[0];
  if (!installed(program)) return leave_out(program + " is not installed");
  if (p.not_on_loopback && near_.starts_with("127."))
    return leave_out("it passes over loopback addresses; --namespace has others");
  const pid_t there = begin(server, far_, core_of(1), p.files, -1);
  if (there < 0) return leave_out("its server cannot be started");
  Said said;
  bool serves = true;
  for (int i = 0; i < kTries && !said.well && serves; ++i) {
    usleep(kBetween);
    said = hear(client, near_, p.files);
    serves = said.well || waitpid(there, nullptr, WNOHANG) == 0;
  }
  if (serves) end(there);
  if (!said.well) return leave_out("it does not run here: " + last_line(said.text));
  const auto us = p.half_us(said.text);
  if (!us || *us <= 0) return leave_out("what it says is not understood: " + last_line(said.text));
  return us;
}

}  // namespace weft::bench
