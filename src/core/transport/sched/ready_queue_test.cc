// The order in which send queues have their turns, for each policy.
#include "core/transport/sched/ready_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace weft {
namespace {

// Every queue pair always has work: `turns` turns, and who had them.
std::vector<std::uint32_t> serve(ReadyQueue& q, int turns,
                                 const std::map<std::uint32_t, std::uint32_t>& level,
                                 const std::vector<std::uint32_t>& weight) {
  std::vector<std::uint32_t> served;
  for (int i = 0; i < turns; ++i) {
    const std::uint32_t index = q.pop();
    served.push_back(index);
    q.push_again(index, level.at(index), weight[level.at(index)]);
  }
  return served;
}
const std::map<std::uint32_t, std::uint32_t> kLevels{{10, 0}, {11, 1}, {12, 3}};
const std::vector<std::uint32_t> kWeights{1, 2, 3, 4};

ReadyQueue with_all(Schedule s) {
  ReadyQueue q(16, s);
  for (const auto& [index, level] : kLevels) q.push(index, level);
  return q;
}

TEST(ReadyQueue, RoundRobinTakesTurns) {
  ReadyQueue q = with_all(Schedule::kRoundRobin);
  EXPECT_EQ(serve(q, 7, kLevels, kWeights), (std::vector<std::uint32_t>{10, 11, 12, 10, 11, 12, 10}));
}

TEST(ReadyQueue, WeightsAreTurnsInARow) {
  ReadyQueue q = with_all(Schedule::kWeighted);
  EXPECT_EQ(serve(q, 10, kLevels, kWeights),
            (std::vector<std::uint32_t>{10, 11, 11, 12, 12, 12, 12, 10, 11, 11}));
}

// One alone gets every turn; another that comes meanwhile waits for the end of its run.
TEST(ReadyQueue, AWeightBeginsAgainAfterItsRun) {
  ReadyQueue q(16, Schedule::kWeighted);
  q.push(12, 3);
  EXPECT_EQ(serve(q, 6, kLevels, kWeights), (std::vector<std::uint32_t>{12, 12, 12, 12, 12, 12}));
  q.push(10, 0);
  EXPECT_EQ(serve(q, 4, kLevels, kWeights), (std::vector<std::uint32_t>{12, 12, 10, 12}));
}

TEST(ReadyQueue, PriorityStarvesLowerLevels) {
  ReadyQueue q = with_all(Schedule::kPriority);
  q.push(13, 3);
  EXPECT_EQ(q.upcoming(), 2U);
  EXPECT_EQ(q.pop(), 12U);
  EXPECT_EQ(q.pop(), 13U);
  EXPECT_EQ(q.pop(), 11U);
  q.push(12, 3);  // comes back ahead of the lower one that waits
  EXPECT_EQ(q.pop(), 12U);
  EXPECT_EQ(q.pop(), 10U);
  EXPECT_TRUE(q.empty());
  q.push(10, 0);
  EXPECT_EQ(q.peek(0), 10U);
  EXPECT_EQ(q.pop(), 10U);
}

// The counters run freely: far more turns than slots.
TEST(ReadyQueue, GoesRoundItsRing) {
  for (const Schedule s : {Schedule::kRoundRobin, Schedule::kWeighted, Schedule::kPriority}) {
    ReadyQueue q(4, s);
    for (std::uint32_t i = 0; i < 4; ++i) q.push(i, 2);
    std::vector<int> turns(4);
    for (int i = 0; i < 3000; ++i) {
      const std::uint32_t index = q.pop();
      ++turns[index];
      q.push_again(index, 2, 3);
    }
    for (const int n : turns) EXPECT_EQ(n, 750);
  }
}

}  // namespace
}  // namespace weft
