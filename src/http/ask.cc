#include "http/ask.h"

#include <fmt/format.h>
#include <httplib.h>

#include <chrono>
#include <thread>

namespace weft::http {
namespace {

constexpr std::chrono::milliseconds kAgain{20};  // a connection that is only now there is shut down as well

}  // namespace

Answer Asker::ask(const Question& question, const std::function<bool(std::string&)>& take) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(question.patience);
  httplib::Client client(question.base);
  client.set_connection_timeout(question.patience);
  client.set_read_timeout(question.patience);
  client.set_write_timeout(question.patience);
  Answer answer;
  bool enough = false;
  bool too_long = false;
  httplib::Request request;
  request.method = question.body.empty() ? "GET" : "POST";
  request.path = question.path;
  request.body = question.body;
  if (!question.body.empty()) request.set_header("Content-Type", "application/json");
  request.response_handler = [&](const httplib::Response& head) {
    answer.status = head.status;
    return true;
  };
  request.content_receiver = [&](const char* data, std::size_t length, std::uint64_t, std::uint64_t) {
    too_long = length > question.most - answer.body.size();
    if (too_long) return false;
    answer.body.append(data, length);
    enough = take != nullptr && !take(answer.body);
    return !enough;
  };
  bool done = false;
  bool cut = false;  // by the watch: what came may look whole, where its end is that of the connection
  std::thread watch([&] {
    std::unique_lock held(lock_);
    changed_.wait_until(held, deadline, [&] { return done || ended_; });
    while (!done) {
      cut = true;
      held.unlock();
      client.stop();
      held.lock();
      changed_.wait_for(held, kAgain, [&] { return done; });
    }
  });
  const auto result = client.send(request);
  {
    const std::lock_guard held(lock_);
    done = true;
  }
  changed_.notify_all();
  watch.join();
  if (enough || (result && !cut)) return answer;
  answer.status = 0;
  if (too_long) {
    answer.why = fmt::format("its answer is longer than {} bytes", question.most);
  } else if (std::chrono::steady_clock::now() >= deadline) {
    answer.why = fmt::format("it takes longer than {} s", question.patience);
  } else {
    answer.why = result.error() == httplib::Error::Connection ? "nobody answers there"
                                                              : httplib::to_string(result.error());
  }
  return answer;
}

void Asker::end() {
  {
    const std::lock_guard held(lock_);
    ended_ = true;
  }
  changed_.notify_all();
}

}  // namespace weft::http
