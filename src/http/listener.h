// cpp-httplib's server with bounds of its own. The library's time-outs are of one read or write, and it
// bounds neither headers in number nor a chunked body: here a question has kMostQuestion bytes and
// kQuestionPatience seconds in all, an answer has kAnswerPatience seconds, and every question has a
// connection of its own.
//
//   accept -> enqueue() -> process_and_close_socket(): the library reads and writes through a Line
//
// kThreads questions are answered at a time, as many wait as kWaiting says, and the kernel keeps the rest.
// end() shuts every connection down, so that nobody who asks can hold up the monitor's end.
#pragma once
#include <cstddef>
#include <memory>

namespace httplib {
class Server;
}

namespace weft::http {

inline constexpr std::size_t kMostQuestion = 16'384;
inline constexpr int kQuestionPatience = 5;  // seconds
inline constexpr int kAnswerPatience = 20;   // seconds
inline constexpr std::size_t kThreads = 4;
inline constexpr int kWaiting = 64;

class Listener {
 public:
  Listener();
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  httplib::Server& server();
  void end();

 private:
  class Bounded;
  std::unique_ptr<Bounded> bounded_;
};

}  // namespace weft::http
