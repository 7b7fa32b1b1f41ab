// The papers' figures of memory, to the digits that they print, out of the designs that the program carries.
#include "lab/nic_account.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "account/irn.h"
#include "account/quantities.h"
#include "account/stated.h"
#include "lab/account.h"
#include "sim/nic/memory.h"
#include "sim/world/nic_design.h"

namespace weft::lab {
namespace {

using account::Stated;

class NicStatement : public ::testing::TestWithParam<Stated> {};

TEST_P(NicStatement, FollowsFromTheDesign) {
  const Stated s = GetParam();
  const auto computed = account_quantity(std::string(s.id) + "." + std::to_string(s.figure));
  ASSERT_TRUE(computed) << computed.error().message;
  EXPECT_NEAR(computed->value, s.value, s.within) << computed->text;
}

constexpr Stated kStated[] = {
    {"srnic-eq1-maxqp", 0, 5600, 50},
    {"srnic-eq1-maxqp", 1, 22, 0.5},
    {"srnic-tab1-recvbuf", 0, 0.6, 0.05},
    {"srnic-tab1-recvbuf", 1, 0.6, 0.05},
    {"srnic-tab1-qpc", 0, 2.0, 0.05},
    {"srnic-tab1-mtt", 0, 8, 0},
    {"srnic-tab1-mtt", 1, 1.2, 0.05},
    {"srnic-tab1-wqe", 0, 4.9, 0.05},
    {"srnic-tab1-wqe", 1, 9.8, 0.05},
    {"srnic-tab1-wqe", 2, 0, 0},
    {"srnic-tab1-bitmap", 0, 3.0, 0.05},
    {"srnic-tab1-bitmap", 1, 0, 0},
    {"srnic-tab1-reorder", 0, 4.9, 0.05},
    {"srnic-tab1-reorder", 1, 0, 0},
    {"srnic-tab1-ort", 0, 11.7, 0.05},
    {"srnic-tab1-ort", 1, 114.4, 0.05},
    {"srnic-tab1-ort", 2, 0, 0},
    {"srnic-tab1-total", 0, 3.8, 0.05},
    {"srnic-tab1-total", 1, 137.8, 0.1},
    {"srnic-tab2-resources", 0, 2.3, 0.05},
    {"srnic-tab2-resources", 1, 1.2, 0.05},
    {"srnic-tab2-resources", 2, 0.6, 0.05},
    {"srnic-tab2-resources", 3, 0.3, 0.05},
    {"srnic-tab2-resources", 4, 4.4, 0.05},
    {"srnic-mem-scaling", 0, 2, 0},
    {"srnic-mem-scaling", 1, 1, 0},
    {"srnic-schedq", 0, 19.5, 0.05},
    {"srnic-norm-scal", 0, 18, 0.5},
    {"csrna-qpc-4gb", 0, 4, 0},
    {"csrna-formula2", 0, 40, 2},  // the paper gives no fields' widths
    {"csrna-ooo16-mem", 1, 0.625, 0},
    {"csrna-sqtable", 0, 1.25, 0},
    {"csrna-table1-csrna", 0, 1.4, 0.05},
    {"csrna-table1-others", 0, 32, 0.5},
    {"csrna-table1-others", 2, 2, 0},
    {"csrna-pf-size", 0, 6, 0},
    {"csrna-prt-size", 0, 3, 0},
};
INSTANTIATE_TEST_SUITE_P(Papers, NicStatement, ::testing::ValuesIn(kStated),
                         [](const auto& each) { return name_of(each.param); });

TEST(NicQuantities, EachHasANameOfItsOwnAndFigures) {
  std::set<std::string> ids;
  for (const account::Quantity& q : account::quantities()) ids.insert(q.id);
  for (const ComputedQuantity& q : nic_quantities()) {
    EXPECT_TRUE(ids.insert(q.id).second) << q.id;
    const auto figures = q.figures();
    ASSERT_TRUE(figures) << q.id << ": " << figures.error().message;
    EXPECT_FALSE(figures->empty()) << q.id;
  }
}

// SRNIC §3.2.2: the other option. A shared buffer takes the memory of one, however many queue pairs there
// are.
TEST(Conceptual, SharesAReorderingBufferInsteadOfOneEach) {
  const auto each = sim::design_named("conceptual", "", "");
  const auto shared = sim::design_named("conceptual", "", "recovery.reorder=shared");
  ASSERT_TRUE(each);
  ASSERT_TRUE(shared) << shared.error().message;
  for (const std::uint64_t n : {1U, 10'000U}) {
    const std::uint64_t of_one = std::uint64_t{512} << 10U;
    EXPECT_EQ(sim::memory_of(*each, n)->bytes("reordering buffers"), n * of_one);
    EXPECT_EQ(sim::memory_of(*shared, n)->bytes("reordering buffer"), of_one);
  }
}

// IRN §6.1: what the design adds to each queue pair is what the arithmetic of src/account says.
TEST(IrnNic, AddsTheStateThatThePaperCounts) {
  const auto design = sim::design_named("irn-nic", "", "");
  ASSERT_TRUE(design);
  const auto memory = sim::memory_of(*design, 1);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->bytes("recovery state") * 8,
            2 * account::irn::state_bits(4) + account::irn::read_bits(32, account::irn::kPsnBits));
  EXPECT_EQ(memory->bytes("bitmaps") * 8,
            account::irn::bitmap_bits(110, 32) * account::irn::Bitmaps{}.total());
}

}  // namespace
}  // namespace weft::lab
