// The event channels that there are. A program's thread may come to rdma_get_cm_event(3) with a channel that
// another of its threads has just destroyed: rping ends like that, and so do its many copies. Whoever comes
// too late must touch nothing that is gone, and whoever is inside keeps what he needs.
#pragma once
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace weft::live::rdmacm {

struct Channel;

class ChannelBook {
 public:
  Channel* enter(std::shared_ptr<Channel> channel) {
    const std::lock_guard lock(mutex_);
    Channel* const name = channel.get();
    channels_.emplace(name, std::move(channel));
    return name;
  }
  // nullptr: it is gone, or never was.
  std::shared_ptr<Channel> find(Channel* name) const {
    const std::lock_guard lock(mutex_);
    const auto it = channels_.find(name);
    return it == channels_.end() ? nullptr : it->second;
  }
  void remove(Channel* name) {
    std::shared_ptr<Channel> last;  // it ends after the lock is released
    const std::lock_guard lock(mutex_);
    const auto it = channels_.find(name);
    if (it == channels_.end()) return;
    last = std::move(it->second);
    channels_.erase(it);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<Channel*, std::shared_ptr<Channel>> channels_;
};

}  // namespace weft::live::rdmacm
