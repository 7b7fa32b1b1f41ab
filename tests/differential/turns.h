// Two threads that take turns: a piece of work runs on the other one until it is done or waits, and only then
// does the caller go on.
#pragma once
#include <functional>
#include <semaphore>
#include <thread>
#include <utility>

namespace weft::differential {

class Turns {
 public:
  Turns() : thread_([this] { serve(); }) {}
  ~Turns() {
    ends_ = true;
    go_.release();
    thread_.join();
  }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Begins `work`, or goes on with what waits if there is none; comes back when it is done or waits.
  void begin(std::function<void()> work) {
    work_ = std::move(work);
    busy_ = true;
    go_on();
  }
  void go_on() {
    go_.release();
    back_.acquire();
  }
  bool busy() const { return busy_; }  // it waits

  // The work's: the caller of begin() goes on.
  void wait() {
    back_.release();
    go_.acquire();
  }

 private:
  void serve() {
    for (go_.acquire(); !ends_; go_.acquire()) {
      work_();
      busy_ = false;
      back_.release();
    }
  }

  std::function<void()> work_;
  bool busy_ = false;
  bool ends_ = false;
  std::binary_semaphore go_{0};
  std::binary_semaphore back_{0};
  std::thread thread_;
};

}  // namespace weft::differential
