// csRNA's Algorithms 1 and 2 as they are printed (csRNA §4.3), step by step and without time: to show what
// they do with evictions, with requests that follow each other, and with indexes that come back. Each repair
// is a switch; with all of them it is what sim/nic/context/non_blocking.h does.
//
// What the paper leaves open is chosen in its favour: roles of the two FIFOs change when an empty one is
// popped, a request of type 2 that heads the FIFO when an answer comes is looked at like any other (as the
// authors' code does), and the traversal goes on as long as anything is pending.
#pragma once
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <string>
#include <vector>

namespace weft::sim {

struct Repairs {
  bool count_when_returned = false;  // pnd_cnt-- only for an element that is returned (the text says so)
  bool read_when_converted = false;  // type 2 becomes type 1: dma_posted = 1, and a read (the text says so)
  bool any_free_entry = false;       // instead of Formula 1
  bool tickets = false;              // instead of the place in the FIFO
  bool out_of_the_way = false;       // what heads the FIFO when an answer comes goes to the other one
};

class PrintedStore {
 public:
  PrintedStore(std::size_t cache, std::uint32_t capacity, Repairs repairs)
      : repairs_(repairs), cache_size_(cache), table_(capacity) {
    for (std::uint32_t i = 0; i < capacity; ++i) indexes_.push_back(i);
  }

  // Request handling; returns "hit", "miss" or "behind".
  std::string request(char qpn) {
    const std::uint32_t index = indexes_.front();
    indexes_.pop_front();
    Element e{qpn, index, false, asked_[qpn]++, 0};
    if (Entry* entry = find(qpn); entry != nullptr) {
      ++entry->pending;
      e.ticket = entry->last++;
      offline_.push_back(e);
      return "behind";
    }
    if (cached(qpn)) {
      give(e);
      return "hit";
    }
    reads_.push_back(qpn);
    e.reading = true;
    offline_.push_back(e);
    Entry* place = &table_[index];
    if (repairs_.any_free_entry) {
      for (Entry& t : table_) {
        if (!t.valid) place = &t;
      }
    }
    *place = {true, qpn, 1, false, 0, 1};
    return "miss";
  }

  // The memory answers its oldest read; pending handling goes on until the answer is used.
  void answer() {
    const char qpn = reads_.front();
    reads_.pop_front();
    bring(qpn);
    for (int pops = 0;; ++pops) {
      if (online_.empty()) online_.swap(offline_);
      if (online_.empty()) return;  // nobody waits for it any more
      if (pops == 1000) {
        stuck_ = true;
        return;
      }
      const Element e = online_.front();
      online_.pop_front();
      if (!e.reading) {
        look_at(e, repairs_.out_of_the_way ? offline_ : online_);
        continue;
      }
      if (Entry* entry = find(qpn); entry != nullptr) {
        entry->returned = true;
        gone(*entry);
      }
      give(e);
      return;
    }
  }

  // One step of the traversal in idle time.
  void check() {
    if (offline_.empty()) offline_.swap(online_);
    if (offline_.empty()) return;
    const Element e = offline_.front();
    offline_.pop_front();
    if (e.reading) {
      online_.push_back(e);
    } else {
      look_at(e, online_);
    }
  }
  void check_all() {
    for (int i = 0; i < 100; ++i) check();
  }

  // "X0 X1 Y0": in the order in which they were granted; the number says which request of its queue pair it
  // was.
  std::string granted() const { return granted_; }
  std::size_t reads() const { return reads_.size(); }
  // An answer went round and round among elements that it is not for.
  bool stuck() const { return stuck_; }

 private:
  struct Element {
    char qpn;
    std::uint32_t index;
    bool reading;
    int number;
    std::uint32_t ticket;
  };
  struct Entry {
    bool valid = false;
    char qpn = 0;
    int pending = 0;
    bool returned = false;  // dma_rtn
    std::uint32_t next = 0;
    std::uint32_t last = 0;
  };
  Entry* find(char qpn) {
    for (Entry& e : table_) {
      if (e.valid && e.qpn == qpn) return &e;
    }
    return nullptr;
  }
  bool cached(char qpn) const {
    for (const char c : cache_) {
      if (c == qpn) return true;
    }
    return false;
  }
  void bring(char qpn) {
    cache_.remove(qpn);
    if (cache_.size() == cache_size_) cache_.pop_back();
    cache_.push_front(qpn);
  }
  void gone(Entry& entry) {
    ++entry.next;
    if (--entry.pending <= 0) entry.valid = false;
  }
  void give(const Element& e) {
    bring(e.qpn);
    if (!granted_.empty()) granted_ += ' ';
    granted_ += e.qpn;
    granted_ += std::to_string(e.number);
    indexes_.push_back(e.index);
  }
  // The second half of Algorithm 2.
  void look_at(Element e, std::deque<Element>& stays) {
    Entry* entry = find(e.qpn);
    if (entry == nullptr || (repairs_.tickets && e.ticket != entry->next)) {
      stays.push_back(e);
      return;
    }
    if (!repairs_.count_when_returned) --entry->pending;
    if (cached(e.qpn)) {
      if (repairs_.count_when_returned) --entry->pending;
      ++entry->next;
      if (entry->pending <= 0) entry->valid = false;
      give(e);
    } else if (entry->returned) {
      entry->returned = false;
      if (repairs_.read_when_converted) {
        e.reading = true;
        reads_.push_back(e.qpn);
      }
      offline_.push_back(e);
    } else {
      stays.push_back(e);
    }
  }

  Repairs repairs_;
  std::size_t cache_size_;
  std::vector<Entry> table_;
  std::deque<std::uint32_t> indexes_;
  std::deque<Element> online_, offline_;
  std::deque<char> reads_;
  std::list<char> cache_;
  std::map<char, int> asked_;
  std::string granted_;
  bool stuck_ = false;
};

}  // namespace weft::sim
