// How the device describes itself, by calls and by what programs read in sysfs; and what it does not have,
// refused the way a NIC without it refuses.
#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "live/abi/program.h"

// In no header that Debian installs.
extern "C" {
int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, int* type);
int ibv_read_sysfs_file(const char* directory, const char* file, char* out, std::size_t size);
}

namespace weft::live::abi {
namespace {

std::string in_sysfs(const std::string& folder, const char* file, std::size_t room = 64) {
  char text[64];
  std::memset(text, '!', sizeof text);
  const int length = ibv_read_sysfs_file(folder.c_str(), file, text, room);
  return length < 0 ? "none" : std::string(text, static_cast<std::size_t>(length) + 1).c_str();
}

std::string in_groups(const ibv_gid& gid) {
  std::string text;
  for (int i = 0; i < 16; i += 2) {
    char group[8];
    std::snprintf(group, sizeof group, "%s%02x%02x", i == 0 ? "" : ":", gid.raw[i], gid.raw[i + 1]);
    text += group;
  }
  return text;
}

TEST(Gids, AreTheAddressOfTheInterfaceThatHasIt) {
  Program p;
  ibv_gid gid{};
  ASSERT_EQ(ibv_query_gid(p.context, 1, 0, &gid), 0);
  ibv_gid_entry entry{};
  ASSERT_EQ(ibv_query_gid_ex(p.context, 1, 0, &entry, 0), 0);
  EXPECT_EQ(std::memcmp(&entry.gid, &gid, sizeof gid), 0);
  EXPECT_EQ(entry.gid_index, 0U);
  EXPECT_EQ(entry.port_num, 1U);
  EXPECT_EQ(entry.gid_type, std::uint32_t{IBV_GID_TYPE_ROCE_V2});
  EXPECT_EQ(entry.ndev_ifindex, if_nametoindex("lo"));
  ibv_gid_entry table[4]{};
  ASSERT_EQ(ibv_query_gid_table(p.context, table, 4, 0), 1);
  EXPECT_EQ(std::memcmp(&table[0], &entry, sizeof entry), 0);
  int type = -1;
  EXPECT_EQ(ibv_query_gid_type(p.context, 1, 0, &type), 0);
  EXPECT_EQ(type, 1);  // RoCE v2 in sysfs' numbers

  EXPECT_EQ(ibv_query_gid_table(p.context, table, 0, 0), -EINVAL);
  EXPECT_EQ(ibv_query_gid_table(p.context, table, 4, 1), -EINVAL);
  EXPECT_EQ(ibv_query_gid_ex(p.context, 2, 0, &entry, 0), EINVAL);
  EXPECT_EQ(ibv_query_gid_ex(p.context, 1, 0, &entry, 1), EINVAL);
  EXPECT_EQ(ibv_query_gid_type(p.context, 1, 2, &type), -1);
}

// With one address the place of another is empty, as most of a hardware NIC's are.
TEST(Gids, HaveAnEmptyPlaceWithOneAddress) {
  Program p;
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(p.context, 1, &port), 0);
  EXPECT_EQ(port.gid_tbl_len, 2);
  ibv_gid_entry entry{};
  EXPECT_EQ(ibv_query_gid_ex(p.context, 1, 1, &entry, 0), ENODATA);
  EXPECT_EQ(ibv_query_gid_ex(p.context, 1, 2, &entry, 0), EINVAL);
  ibv_gid gid{};
  gid.raw[3] = 1;
  EXPECT_EQ(ibv_query_gid(p.context, 1, 1, &gid), 0);
  EXPECT_EQ(in_groups(gid), "0000:0000:0000:0000:0000:0000:0000:0000");
  int type = -1;
  EXPECT_EQ(ibv_query_gid_type(p.context, 1, 1, &type), 0);
  EXPECT_EQ(type, 0);
  const std::string folder = p.context->device->ibdev_path;
  EXPECT_EQ(in_sysfs(folder, "ports/1/gids/1"), in_groups(gid));
  ibv_ah_attr to = p.address();
  to.grh.sgid_index = 1;
  errno = 0;
  EXPECT_EQ(ibv_create_ah(p.pd, &to), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// A device with an address of each family, on a machine that has IPv6.
struct BothFamilies {
  BothFamilies() {
    choose_address();
    setenv("WEFT_ADDR", (std::string(getenv("WEFT_ADDR")) + ",::1").c_str(), 1);
    ibv_device** const list = ibv_get_device_list(nullptr);
    context = list != nullptr ? ibv_open_device(list[0]) : nullptr;
    ibv_free_device_list(list);
    if (context != nullptr) pd = ibv_alloc_pd(context);
  }
  ~BothFamilies() {
    if (pd != nullptr) ibv_dealloc_pd(pd);
    if (context != nullptr) ibv_close_device(context);
  }
  BothFamilies(const BothFamilies&) = delete;
  BothFamilies& operator=(const BothFamilies&) = delete;
  // An address handle from an entry of the table to a GID.
  bool leads(std::uint8_t from, const ibv_gid& to) const {
    ibv_ah_attr a{};
    a.is_global = 1;
    a.port_num = 1;
    a.grh.dgid = to;
    a.grh.sgid_index = from;
    ibv_ah* const ah = ibv_create_ah(pd, &a);
    if (ah == nullptr) return false;
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
    return true;
  }
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
};

TEST(Gids, AreOneOfEachFamilyAndEachLeadsToItsOwn) {
  const BothFamilies p;
  if (p.context == nullptr) GTEST_SKIP() << "no IPv6 on this machine";
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(p.context, 1, &port), 0);
  EXPECT_EQ(port.gid_tbl_len, 2);
  ibv_gid_entry table[2]{};
  EXPECT_EQ(ibv_query_gid_table(p.context, table, 1, 0), -EINVAL);
  ASSERT_EQ(ibv_query_gid_table(p.context, table, 2, 0), 2);
  const std::string folder = p.context->device->ibdev_path;
  for (std::uint32_t i = 0; i < 2; ++i) {
    ibv_gid gid{};
    ASSERT_EQ(ibv_query_gid(p.context, 1, static_cast<int>(i), &gid), 0);
    EXPECT_EQ(std::memcmp(&table[i].gid, &gid, sizeof gid), 0);
    EXPECT_EQ(table[i].gid_index, i);
    EXPECT_EQ(table[i].gid_type, std::uint32_t{IBV_GID_TYPE_ROCE_V2});
    EXPECT_EQ(table[i].ndev_ifindex, if_nametoindex("lo"));
    EXPECT_EQ(in_sysfs(folder, ("ports/1/gids/" + std::to_string(i)).c_str()), in_groups(gid));
    EXPECT_TRUE(p.leads(static_cast<std::uint8_t>(i), gid));
    EXPECT_FALSE(p.leads(static_cast<std::uint8_t>(1 - i), gid));
  }
  EXPECT_EQ(in_groups(table[1].gid), "0000:0000:0000:0000:0000:0000:0000:0001");
  EXPECT_EQ(in_sysfs(folder, "ports/1/gids/2"), "none");
  ibv_gid gid{};
  EXPECT_EQ(ibv_query_gid(p.context, 1, 2, &gid), -1);
  EXPECT_EQ(ibv_query_gid(p.context, 1, -1, &gid), -1);
  EXPECT_FALSE(p.leads(2, table[0].gid));
}

TEST(Sysfs, SaysWhatTheCallsSay) {
  Program p;
  const std::string folder = p.context->device->ibdev_path;
  ibv_gid gid{};
  ASSERT_EQ(ibv_query_gid(p.context, 1, 0, &gid), 0);
  EXPECT_EQ(in_sysfs(folder, "ports/1/gids/0"), in_groups(gid));
  EXPECT_EQ(in_sysfs(folder + "/ports/1", "gid_attrs/types/0"), "RoCE v2");
  EXPECT_EQ(in_sysfs(folder, "ports/1/gid_attrs/ndevs/0"), "lo");
  EXPECT_EQ(in_sysfs(folder, "ports/1/pkeys/0"), "0xffff");
  EXPECT_EQ(in_sysfs(folder, "ports/1/state"), "4: ACTIVE");
  EXPECT_EQ(in_sysfs(folder, "ports/1/link_layer"), "Ethernet");
  EXPECT_EQ(in_sysfs(folder, "node_type"), "1: CA");
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(p.context, &device), 0);
  EXPECT_EQ(in_sysfs(folder, "fw_ver"), device.fw_ver);
  const auto* const guid = reinterpret_cast<const unsigned char*>(&device.node_guid);
  char text[32];
  std::snprintf(text, sizeof text, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", guid[0], guid[1], guid[2], guid[3],
                guid[4], guid[5], guid[6], guid[7]);
  EXPECT_EQ(in_sysfs(folder, "node_guid"), text);
}

TEST(Sysfs, HasNothingElseOfOurs) {
  Program p;
  const std::string folder = p.context->device->ibdev_path;
  for (const char* file :
       {"ports/1/gids/2", "ports/1/gid_attrs/types/1", "ports/2/state", "ports/1/", "", "no"})
    EXPECT_EQ(in_sysfs(folder, file), "none") << file;
  EXPECT_EQ(in_sysfs(folder, "node_type", 5), "none") << "no room for the text and its end";
  EXPECT_EQ(in_sysfs(folder, "node_type", 6), "1: CA");
  // Everybody else's files are read, without their line's end.
  EXPECT_EQ(in_sysfs("/proc/sys/kernel", "ostype"), "Linux");
  EXPECT_EQ(in_sysfs("/proc/sys/kernel", "ostype", 3), "none");
  EXPECT_EQ(in_sysfs("/sys/class/infiniband", "no_such_device/node_type"), "none");
}

// The parent's device is open meanwhile, and of no use to the child: nothing of it would ever leave.
TEST(Fork, LeavesTheChildADeviceOfItsOwn) {
  Program parent;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    const Program p;
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_RDMA_WRITE;
    _exit(p.complete(p.talking_to_itself(p.pd, p.cq), wr).status == IBV_WC_SUCCESS ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Fork, NeedsNoPreparation) {
  EXPECT_EQ(ibv_fork_init(), 0);
  EXPECT_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

void expect_unsupported(const void* answer) {
  EXPECT_EQ(answer, nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  errno = 0;
}

TEST(Refusals, AreThoseOfANicWithoutTheCapability) {
  Program p;
  ibv_device_attr_ex device{};
  ASSERT_EQ(ibv_query_device_ex(p.context, nullptr, &device), 0);
  errno = 0;

  for (const ibv_qp_type type : {IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, IBV_QPT_DRIVER}) {
    ibv_qp_init_attr init = p.plain(type);
    expect_unsupported(ibv_create_qp(p.pd, &init));
  }
  ibv_xrcd_init_attr xrc{};
  expect_unsupported(ibv_open_xrcd(p.context, &xrc));
  ibv_srq_init_attr_ex shared{};
  shared.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ;
  shared.attr = {16, 1, 0};
  shared.pd = p.pd;
  shared.cq = p.cq;
  for (const ibv_srq_type type : {IBV_SRQT_XRC, IBV_SRQT_TM}) {
    shared.srq_type = type;
    expect_unsupported(ibv_create_srq_ex(p.context, &shared));
  }
  EXPECT_EQ(device.tm_caps.max_num_tags, 0U);

  EXPECT_EQ(device.odp_caps.general_caps, 0U);
  expect_unsupported(ibv_reg_mr(p.pd, p.memory.data(), 100, int{IBV_ACCESS_ON_DEMAND}));
  ibv_sge piece{};
  EXPECT_EQ(ibv_advise_mr(p.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &piece, 1), EOPNOTSUPP);
  expect_unsupported(ibv_alloc_null_mr(p.pd));
  expect_unsupported(ibv_reg_dmabuf_mr(p.pd, 0, 100, 0, 0, 0));

  ibv_flow_attr flow{};
  expect_unsupported(ibv_create_flow(p.qp, &flow));
  ibv_wq_init_attr queue{};
  expect_unsupported(ibv_create_wq(p.context, &queue));
  ibv_rwq_ind_table_init_attr spread{};
  expect_unsupported(ibv_create_rwq_ind_table(p.context, &spread));
  EXPECT_EQ(device.rss_caps.supported_qpts, 0U);
  EXPECT_EQ(device.max_wq_type_rq, 0U);
  EXPECT_EQ(device.raw_packet_caps, 0U);
  EXPECT_EQ(device.tso_caps.max_tso, 0U);
  ibv_counters_init_attr counters{};
  expect_unsupported(ibv_create_counters(p.context, &counters));

  EXPECT_EQ(device.completion_timestamp_mask, 0U);
  ibv_values_ex clock{};
  EXPECT_EQ(ibv_query_rt_values_ex(p.context, &clock), EOPNOTSUPP);
  ibv_cq_init_attr_ex times{};
  times.cqe = 4;
  times.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  expect_unsupported(ibv_create_cq_ex(p.context, &times));
  EXPECT_EQ(device.cq_mod_caps.max_cq_count, 0U);
  ibv_modify_cq_attr moderation{};
  EXPECT_EQ(ibv_modify_cq(p.cq, &moderation), EOPNOTSUPP);
  EXPECT_EQ(device.packet_pacing_caps.qp_rate_limit_max, 0U);
  ibv_qp_rate_limit_attr rate{};
  EXPECT_EQ(ibv_modify_qp_rate_limit(p.qp, &rate), EOPNOTSUPP);

  ibv_srq_attr longer{32, 1, 0};
  EXPECT_EQ(device.orig_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE, 0U);
  EXPECT_EQ(ibv_modify_srq(p.srq, &longer, IBV_SRQ_MAX_WR), EOPNOTSUPP);
  ibv_ece vendors{};
  vendors.vendor_id = 0x15B3;
  EXPECT_EQ(ibv_set_ece(p.qp, &vendors), EOPNOTSUPP);
}

}  // namespace
}  // namespace weft::live::abi
