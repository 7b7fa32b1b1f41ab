// That a refusal's errno is what the caller sees, whatever is destroyed on the way out.
#include "live/abi/edge.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace weft::live::abi {
namespace {

struct ClosesWithAnError {
  ~ClosesWithAnError() { errno = EAGAIN; }
};

TEST(Edge, AnswersWithTheErrnoOfTheRefusalAndNotOfWhatIsDestroyedAfterIt) {
  errno = 0;
  int* const answer = at_edge([]() -> int* {
    const ClosesWithAnError thing;
    return refuse(EMFILE);
  });
  EXPECT_EQ(answer, nullptr);
  EXPECT_EQ(errno, EMFILE);
}

TEST(Edge, ForgetsTheRefusalOfAnEarlierCall) {
  at_edge([]() -> int* { return refuse(EMFILE); });
  errno = 0;
  at_edge([]() -> int* { return nullptr; });
  EXPECT_EQ(errno, 0);
}

TEST(Edge, AnswersWithAnErrorNumberThatIsInErrnoToo) {
  errno = 0;
  EXPECT_EQ(at_edge([] { return EINVAL; }), EINVAL);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace weft::live::abi
