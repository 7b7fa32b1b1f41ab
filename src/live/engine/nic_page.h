// The statistics page of a Nic (page/page.h): its counters, and a row for each queue pair, completion queue
// and region. Keys and addresses are nobody else's business and stay away. The background
// thread keeps it, ten times a second while anything happens and once a second otherwise; programs pay
// nothing else.
#pragma once
#include <cstdint>
#include <memory>

#include "live/engine/context.h"
#include "page/page.h"

namespace weft::live {

class Nic;

class NicPage {
 public:
  static constexpr std::uint32_t kMostQps = 1024;  // rows
  static constexpr std::uint32_t kMostCqs = 1024;
  static constexpr std::uint32_t kMostRegions = 1024;
  static constexpr std::uint32_t kSlice = 4096;  // places of regions that are looked at together

  explicit NicPage(const Attributes& attributes);
  // Under the ownership.
  void publish_owned(Nic& nic);
  void leave_to_parent() {
    if (page_ != nullptr) page_->leave_to_parent();
  }
  bool there() const { return page_ != nullptr; }

 private:
  // How many there are. What all shards share is on the first one's page.
  std::uint64_t queue_pairs(Nic& nic);
  std::uint64_t completion_queues(Nic& nic);
  void regions(Nic& nic);
  void totals(Nic& nic, std::uint64_t qps, std::uint64_t cqs);
  void clear_from(std::uint32_t table, std::uint32_t row, std::uint32_t& used);

  std::unique_ptr<page::Page> page_;
  std::uint32_t qp_rows_ = 0;  // in use
  std::uint32_t cq_rows_ = 0;
  std::uint32_t region_rows_ = 0;
  std::uint32_t next_row_ = 0;  // of the next region
  std::uint32_t place_ = 0;     // of the next region to look at
  std::uint64_t regions_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t regions_so_far_ = 0;
  std::uint64_t bytes_so_far_ = 0;
};

}  // namespace weft::live
