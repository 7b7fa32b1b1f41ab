// The one device, weft0: found, opened, described. One Nic per process, shared by all contexts; its
// settings come from WEFT_* variables, which `weft run` writes.
#include <endian.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "live/abi/handles.h"
#include "live/engine/sysfs_files.h"

namespace weft::live::abi {
namespace {

constexpr std::uint32_t kVendor = 0x025253;  // of the extensions' MADs too (docs/protocol/constants.md#sizes)
constexpr std::uint8_t kEthernet = IBV_LINK_LAYER_ETHERNET;

std::mutex process_lock;
std::weak_ptr<Nic> process_nic;
// Every device that a list ever named, one for each set of settings: a program may open one after it has
// freed the list (perftest does). Never freed, for threads may still be here when the process ends.
std::deque<Device>& devices = *new std::deque<Device>;

Device& device_of(const Options& options) {
  const std::lock_guard lock(process_lock);
  for (Device& d : devices) {
    if (d.options == options) return d;
  }
  Device& d = devices.emplace_back();
  d.options = options;
  d.base.node_type = IBV_NODE_CA;
  d.base.transport_type = IBV_TRANSPORT_IB;
  std::strcpy(d.base.name, "weft0");
  std::strcpy(d.base.dev_name, "uverbs0");
  std::strcpy(d.base.dev_path, "/sys/class/infiniband_verbs/uverbs0");
  std::strcpy(d.base.ibdev_path, kDeviceFolder);
  return d;
}

Result<std::shared_ptr<Nic>> nic_of_process(const Options& options) {
  const std::lock_guard lock(process_lock);
  std::shared_ptr<Nic> nic = process_nic.lock();
  if (nic != nullptr && !is_inherited(*nic)) return nic;
  auto opened = open_nic(options);
  if (opened) process_nic = *opened;
  return opened;
}

ibv_mtu mtu_code(std::uint32_t bytes) {
  std::uint32_t code = IBV_MTU_256;
  for (std::uint32_t size = 256; size < bytes && code < IBV_MTU_4096; size *= 2) ++code;
  return static_cast<ibv_mtu>(code);
}

void fill(verbs_context& v) {
  v.sz = sizeof v;
  v.query_port = query_port;
  v.query_device_ex = query_device_ex;
  v.create_cq_ex = create_cq_ex;
  v.create_qp_ex = create_qp_ex;
  v.create_srq_ex = create_srq_ex;
  v.alloc_td = alloc_thread_domain;
  v.dealloc_td = dealloc_thread_domain;
  v.alloc_parent_domain = alloc_parent_domain;
  v.alloc_dm = alloc_device_memory;
  v.free_dm = free_device_memory;
  v.reg_dm_mr = register_device_memory;
  ibv_context_ops& ops = v.context.ops;
  ops.alloc_mw = alloc_window;
  ops.bind_mw = bind_window;
  ops.dealloc_mw = dealloc_window;
  ops.poll_cq = poll;
  ops.req_notify_cq = request_notify;
  ops.post_send = post_send;
  ops.post_recv = post_receive;
  ops.post_srq_recv = post_shared_receive;
  v.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
}

bool only_port(std::uint32_t port) { return port == 1; }

// The table of GIDs has a place for each address that a device can have. One may be empty.
bool in_table(std::uint32_t index) { return index < Addresses::kMost; }
bool has_gid(const Context& c, std::uint32_t index) { return index < c.attributes().own.count(); }

ibv_gid gid_of(const Context& c, std::uint32_t index) {
  ibv_gid gid;
  const wire::Address& a = c.attributes().own.at(index);
  std::copy(a.bytes.begin(), a.bytes.end(), gid.raw);
  return gid;
}

int clamp_int(std::uint64_t v) { return static_cast<int>(std::min<std::uint64_t>(v, INT32_MAX)); }

std::nullptr_t refuse_to_open(const Error& e) {
  complain(e.number == EMFILE ? e.message + "; raise the limit with ulimit -n" : e.message);
  return refuse(e.number != 0 ? e.number : EADDRINUSE);
}

ibv_context* open_device(ibv_device* device) {
  auto nic = nic_of_process(handle_of<Device>(device).options);
  if (!nic) return refuse_to_open(nic.error());
  auto handle = std::make_unique<ContextHandle>();
  auto engine = Context::open(std::move(*nic));
  if (!engine) return refuse_to_open(engine.error());
  // Nothing is ever sent to it, but programs look at it, set its flags, and import by it.
  handle->use_command_file(new_command_file());
  if (handle->command_fd < 0) {
    return refuse_to_open(fail_system("cannot make the file that a device is imported by", errno).value());
  }
  begin_opened(*handle, std::move(*engine));
  publish_context(*handle, device);
  return &handle.release()->vctx.context;
}

}  // namespace

// A program that cannot open its device prints errno's text at best, so this sentence is printed first.
void complain(const std::string& sentence) { std::fprintf(stderr, "weft: %s\n", sentence.c_str()); }

void free_context(void* context) { delete &handle_of_context(static_cast<ibv_context*>(context)); }

void publish_context(ContextHandle& h, ibv_device* device) {
  fill(h.vctx);
  ibv_context& c = h.vctx.context;
  c.device = device;
  c.async_fd = h.engine->async_fd();
  c.num_comp_vectors = 1;
  objects().add(&c, {free_context, nullptr, 0});
}

ContextHandle::ContextHandle() { pthread_mutex_init(&vctx.context.mutex, nullptr); }
ContextHandle::~ContextHandle() {
  if (command_fd >= 0) close(command_fd);
  pthread_mutex_destroy(&vctx.context.mutex);
}

int errno_of(Errc e) {
  switch (e) {
    case Errc::kInvalid:
      return EINVAL;
    case Errc::kNotFound:
      return ENOENT;
    case Errc::kFault:
      return EFAULT;
    case Errc::kNoDescriptor:
      return EMFILE;
    case Errc::kNoMemory:
      return ENOMEM;
    case Errc::kBusy:
      return EBUSY;
    case Errc::kUnsupported:
      return EOPNOTSUPP;
  }
  return EINVAL;
}

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* out, std::size_t size) {
  if (!only_port(port)) return errno = EINVAL;
  const Attributes& a = engine_of(context).attributes();
  ibv_port_attr p{};
  p.state = IBV_PORT_ACTIVE;
  p.max_mtu = mtu_code(a.max_mtu);
  p.active_mtu = mtu_code(a.active_mtu);
  p.gid_tbl_len = int{Addresses::kMost};
  p.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  p.max_msg_sz = 1U << 31U;
  p.pkey_tbl_len = 1;
  p.max_vl_num = 1;
  p.active_width = 2;   // 4X
  p.active_speed = 32;  // EDR: a number programs can print; there is no line rate here
  p.phys_state = 5;     // link up
  p.link_layer = kEthernet;
  std::memset(out, 0, size);
  std::memcpy(out, &p, std::min(size, sizeof p));
  return 0;
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* out,
                    std::size_t size) {
  if (size < sizeof out->orig_attr || (input != nullptr && input->comp_mask != 0)) return errno = EINVAL;
  ibv_device_attr_ex a{};
  if (const int failed = ibv_query_device(context, &a.orig_attr); failed != 0) return failed;
  a.phys_port_cnt_ex = a.orig_attr.phys_port_cnt;
  a.device_cap_flags_ex = a.orig_attr.device_cap_flags;  // all of them, as the kernel has it
  a.max_dm_size = kDeviceMemory;
  std::memset(out, 0, size);
  std::memcpy(out, &a, std::min(size, sizeof a));
  return 0;
}

}  // namespace weft::live::abi

using namespace weft;
using namespace weft::live;
using namespace weft::live::abi;

// --- the list ---

WEFT_EXPORT ibv_device** ibv_get_device_list(int* count) {
  if (count != nullptr) *count = 0;
  return at_edge([&]() -> ibv_device** {
    const auto options = options_from_environment(std::getenv);
    if (!options) {
      complain(options.error().message);
      return refuse(EINVAL);
    }
    auto list = std::make_unique<ibv_device*[]>(2);
    list[0] = &device_of(*options).base;
    if (count != nullptr) *count = 1;
    return list.release();
  });
}

WEFT_EXPORT void ibv_free_device_list(ibv_device** list) { delete[] list; }

WEFT_EXPORT const char* ibv_get_device_name(ibv_device* device) { return device->name; }
WEFT_EXPORT int ibv_get_device_index(ibv_device* device) {
  static_cast<void>(device);
  return 0;
}
WEFT_EXPORT __be64 ibv_get_device_guid(ibv_device* device) {
  return htobe64(guid_of(handle_of<Device>(device).options.own.first));
}

// --- open and close ---

WEFT_EXPORT ibv_context* ibv_open_device(ibv_device* device) {
  return at_edge([&] { return open_device(device); });
}

WEFT_EXPORT int ibv_close_device(ibv_context* context) {
  return at_edge([&] {
    if (!objects().find(context, free_context, nullptr) || objects().take(context).empty()) return EINVAL;
    close_opened(handle_of_context(context));
    return 0;
  });
}

// --- what it is ---

WEFT_EXPORT int ibv_query_device(ibv_context* context, ibv_device_attr* out) {
  const Attributes& a = engine_of(context).attributes();
  *out = {};
  std::strcpy(out->fw_ver, kFirmware);
  out->node_guid = out->sys_image_guid = htobe64(a.guid);
  out->max_mr_size = a.max_mr_size;
  out->page_size_cap = 0xFFFFF000;
  out->vendor_id = kVendor;
  out->vendor_part_id = 1;
  out->hw_ver = 1;
  out->max_qp = clamp_int(a.max_qp);
  out->max_qp_wr = clamp_int(a.max_qp_wr);
  out->device_cap_flags =
      IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID;
  if (a.max_mw != 0) out->device_cap_flags |= IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  out->max_sge = out->max_sge_rd = clamp_int(a.max_sge);
  out->max_cq = clamp_int(a.max_cq);
  out->max_cqe = clamp_int(a.max_cqe);
  out->max_mr = clamp_int(a.max_mr);
  out->max_mw = clamp_int(a.max_mw);
  out->max_ah = clamp_int(a.max_ah);
  out->max_pd = clamp_int(a.max_pd);
  out->max_qp_rd_atom = clamp_int(a.max_qp_rd_atomic);
  out->max_qp_init_rd_atom = clamp_int(a.max_qp_init_rd_atomic);
  out->max_res_rd_atom = clamp_int(std::uint64_t{a.max_qp} * a.max_qp_rd_atomic);
  out->atomic_cap = IBV_ATOMIC_HCA;
  out->max_srq = clamp_int(a.max_srq);
  out->max_srq_wr = clamp_int(a.max_qp_wr);
  out->max_srq_sge = clamp_int(a.max_sge);
  out->max_mcast_grp = clamp_int(a.max_groups);
  out->max_mcast_qp_attach = clamp_int(a.max_members);
  out->max_total_mcast_qp_attach = clamp_int(std::uint64_t{a.max_groups} * a.max_members);
  out->max_pkeys = 1;
  out->phys_port_cnt = 1;
  return 0;
}

// The plain symbol is for binaries older than the extended context; its struct is a prefix.
WEFT_EXPORT int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* out) {
  constexpr std::size_t kCompatSize = offsetof(ibv_port_attr, port_cap_flags2);
  return query_port(context, port, reinterpret_cast<ibv_port_attr*>(out), kCompatSize);
}

WEFT_EXPORT int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* out) {
  const auto place = static_cast<std::uint32_t>(index);
  if (!only_port(port) || !in_table(place)) {
    errno = EINVAL;
    return -1;
  }
  const Context& engine = engine_of(context);
  *out = has_gid(engine, place) ? gid_of(engine, place) : ibv_gid{};
  return 0;
}

WEFT_EXPORT int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index,
                                  ibv_gid_entry* out, std::uint32_t flags, std::size_t size) {
  if (!only_port(port) || flags != 0 || size < sizeof *out) return errno = EINVAL;
  if (!in_table(index)) return errno = EINVAL;
  const Context& engine = engine_of(context);
  if (!has_gid(engine, index)) return errno = ENODATA;
  std::memset(out, 0, size);
  out->gid = gid_of(engine, index);
  out->gid_index = index;
  out->port_num = 1;
  out->gid_type = IBV_GID_TYPE_ROCE_V2;
  out->ndev_ifindex = interface_of(engine.attributes().own.at(index));
  return 0;
}

WEFT_EXPORT ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t count,
                                         std::uint32_t flags, std::size_t size) {
  if (flags != 0 || size < sizeof *entries) return -EINVAL;
  const std::size_t all = engine_of(context).attributes().own.count();
  if (count < all) return -EINVAL;
  for (std::uint32_t i = 0; i < all; ++i) {
    auto* const entry = reinterpret_cast<ibv_gid_entry*>(reinterpret_cast<char*>(entries) + i * size);
    if (const int failed = _ibv_query_gid_ex(context, 1, i, entry, 0, size); failed != 0) return -failed;
  }
  return static_cast<ssize_t>(all);
}

// As sysfs names types: 0 for InfiniBand and RoCE v1, and where there is nothing, 1 for RoCE v2.
WEFT_EXPORT int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, int* type) {
  if (!only_port(port) || !in_table(index)) {
    errno = EINVAL;
    return -1;
  }
  *type = has_gid(engine_of(context), index) ? 1 : 0;
  return 0;
}

WEFT_EXPORT int ibv_query_pkey(ibv_context* context, std::uint8_t port, int index, __be16* out) {
  static_cast<void>(context);
  if (!only_port(port) || index != 0) {
    errno = EINVAL;
    return -1;
  }
  *out = 0xFFFF;
  return 0;
}

WEFT_EXPORT int ibv_get_pkey_index(ibv_context* context, std::uint8_t port, __be16 pkey) {
  static_cast<void>(context);
  if (only_port(port) && pkey == 0xFFFF) return 0;
  errno = EINVAL;
  return -1;
}

// --- fork: registered memory is the process's own, nothing needs protecting ---

WEFT_EXPORT int ibv_fork_init() { return 0; }
WEFT_EXPORT ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }
WEFT_EXPORT int ibv_dontfork_range(void* base, std::size_t size) {
  static_cast<void>(base);
  static_cast<void>(size);
  return 0;
}
WEFT_EXPORT int ibv_dofork_range(void* base, std::size_t size) { return ibv_dontfork_range(base, size); }
