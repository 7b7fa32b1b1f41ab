// The drop-in libibverbs.so.1: the handles that programs hold, and how they lead to ours.
//
// Each struct begins with the public one of <infiniband/verbs.h> (or, for the context, ends with it:
// `verbs_get_ctx` looks in front of ibv_context), so that a pointer to one is a pointer to the other.
// Inline functions of that header read and call through these structs, which makes them the ABI: programs
// that Debian built run over them in tests/interop.
//
// What a file here does is translation and nothing else: errno in, Outcome out. State is the engine's.
#pragma once
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "live/abi/edge.h"
#include "live/abi/objects.h"
#include "live/engine/context.h"

// The header's macros would rename what we define.
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define WEFT_EXPORT extern "C" __attribute__((visibility("default")))

namespace weft::live::abi {

struct Device {
  ibv_device base{};
  Options options;
};

struct ContextHandle;

// One opening of the device, and the contexts that share it (imports.cc).
struct Opened {
  std::unique_ptr<Context> engine;
  std::vector<ContextHandle*> contexts;  // those that were closed, too
  std::uint32_t open = 0;                // those that are not
};

struct ContextHandle {
  ContextHandle();
  ~ContextHandle();
  verbs_context vctx{};  // its last member is the ibv_context that programs hold
  std::shared_ptr<Opened> opened;
  Context* engine = nullptr;  // the opening's
  int command_fd = -1;
  void use_command_file(int file) { command_fd = vctx.context.cmd_fd = file; }
};

struct PdHandle {
  ibv_pd base{};
  PdId id{};
  std::optional<std::uint32_t> shard;  // of its thread domain, if it has one
  bool is_parent = false;              // a parent domain: another handle of the domain that it was made of
  bool is_import = false;              // another handle of a domain of another context
  std::optional<Allocators> allocators;
  Home home_for(Resource resource) const { return {allocators ? &*allocators : nullptr, resource}; }
};

struct TdHandle {
  ibv_td base{};
  std::uint32_t shard = 0;  // of what is made in it
};

struct MrHandle {
  ibv_mr base{};
  Key lkey{};
};

struct MwHandle {
  ibv_mw base{};
  Key key{};  // as allocated: its tag changes with every binding, its index stays
};

struct ChannelHandle {
  ibv_comp_channel base{};
  CompletionChannel* engine = nullptr;
};

struct CqHandle {
  ibv_cq_ex base{};
  Cq* engine = nullptr;
  Completion current;  // between start_poll and end_poll
  Home home;
};

struct SrqHandle {
  ibv_srq base{};
  Srq* engine = nullptr;
  Home home;
};

struct AhHandle {
  ibv_ah base{};
  AhId id{};
};

struct QpHandle {
  QpHandle();
  ~QpHandle();
  ibv_qp_ex base{};
  Qp* engine = nullptr;
  ibv_qp_init_attr init{};  // as asked, capabilities as granted
  std::mutex address_lock;
  ibv_ah_attr address{};
  struct Sends;                  // requests between wr_start and wr_complete (send_builder.cc)
  std::unique_ptr<Sends> sends;  // only with ibv_create_qp_ex and send operations
  Home home;
};

template <class Handle, class Base>
Handle& handle_of(Base* base) {
  return *reinterpret_cast<Handle*>(base);
}
inline ContextHandle& handle_of_context(ibv_context* context) {
  return *reinterpret_cast<ContextHandle*>(reinterpret_cast<char*>(context) -
                                           offsetof(verbs_context, context));
}
inline Context& engine_of(ibv_context* context) { return *handle_of_context(context).engine; }

int errno_of(Errc e);
// For calls that answer with an errno.
template <class T>
int answer(const Outcome<T>& outcome) {
  return outcome ? 0 : errno_of(outcome.error());
}

// --- data_path.cc ---
int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
int post_all_or_none(ibv_qp* qp, ibv_send_wr* wr);
int post_receive(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad);
int post_shared_receive(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad);
int poll(ibv_cq* cq, int count, ibv_wc* out);
// What a completion tells as service level: no packet says one, so a datagram's tells what it came in, as
// ConnectX does: bit 3, over UDP; below, 2 for IPv4 and 1 for IPv6. UCX finds the destination's address by
// it.
inline std::uint8_t kind_of_frame(std::uint8_t flags) {
  if ((flags & kWcGrh) == 0) return 0;
  return (flags & kWcOverIpv6) != 0 ? 0x09 : 0x0A;
}
// As programs see them.
inline unsigned wc_flags_of(std::uint8_t flags) { return flags & ~unsigned{kWcOverIpv6}; }
int request_notify(ibv_cq* cq, int solicited_only);

// --- domains.cc ---
ibv_td* alloc_thread_domain(ibv_context* context, ibv_td_init_attr* init);
int dealloc_thread_domain(ibv_td* td);
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* init);

// --- device_memory.cc ---
inline constexpr std::uint64_t kDeviceMemory = 1U << 20U;  // of a process
ibv_dm* alloc_device_memory(ibv_context* context, ibv_alloc_dm_attr* attr);
int free_device_memory(ibv_dm* dm);
ibv_mr* register_device_memory(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length,
                               unsigned access);

// --- imports.cc ---
int new_command_file();  // tells openings apart; -1: errno tells
void begin_opened(ContextHandle& h, std::unique_ptr<Context> engine);
void close_opened(ContextHandle& h);  // frees what nobody has open any more, `h` with it

// --- resources.cc ---
// `lies_in`: an object that must not go before the region.
ibv_mr* register_memory(ibv_pd* pd, void* memory, std::size_t length, std::uint64_t iova, unsigned access,
                        const void* lies_in = nullptr);
ibv_mw* alloc_window(ibv_pd* pd, ibv_mw_type type);
int bind_window(ibv_qp* qp, ibv_mw* window, ibv_mw_bind* bind);
int dealloc_window(ibv_mw* window);
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* init);

// --- address_handles.cc ---
// The peer of an address vector; RoCE has no other addressing than the global one.
bool path_of(const Addresses& own, const ibv_ah_attr& a, PathAttr& out);
// Whether there is a way from one of our addresses to the peer's. If not, a sentence was printed, because a
// program prints errno's text at best.
bool reaches(const Addresses& own, const wire::Address& peer);

// --- completions.cc ---
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* init);

// --- queue_pairs.cc ---
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* init);

// --- send_builder.cc ---
inline constexpr std::uint32_t kAtomicWriteBytes = 8;  // they are sent inline
void add_send_operations(QpHandle& qp);

// --- device.cc ---
// Makes a context known that has its opening.
void publish_context(ContextHandle& h, ibv_device* device);
void free_context(void* context);
void complain(const std::string& sentence);
int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* out, std::size_t size);
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* out,
                    std::size_t size);

}  // namespace weft::live::abi
