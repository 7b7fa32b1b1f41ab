// One HTTP question and its answer, bounded in time and in bytes whatever the other side does: a time-out of
// cpp-httplib is of one read, so that somebody who sends a byte now and then would hold its thread for ever.
// A thread watches the clock meanwhile, and shuts the connection down. Not bounded by it: how long the
// resolver takes for a name; and what headers take in memory, but by the time.
//
// ask() is of one thread at a time; end() may come from any other.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>

namespace weft::http {

struct Question {
  std::string base;  // "http://HOST:PORT"
  std::string path;
  std::string body;      // empty: it is a GET
  int patience = 1;      // seconds, from the beginning to the last byte
  std::size_t most = 0;  // bytes of an answer
};
struct Answer {
  int status = 0;  // 0: there is none
  std::string body;
  std::string why;  // there is none
};

class Asker {
 public:
  // `take` sees what came so far, after each piece; false: that is enough, and `status` is that of the
  // answer.
  Answer ask(const Question& question, const std::function<bool(std::string& body)>& take = nullptr);
  // What is being asked, and all that is asked from here on, has no answer.
  void end();

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  bool ended_ = false;
};

}  // namespace weft::http
