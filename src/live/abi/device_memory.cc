// Device memory. A soft NIC has none of its own, so the process's memory stands for it: what a program sees
// is what hardware shows, down to its rules. It is reached by copies in whole words of four bytes, or by keys
// of regions that count from zero, and it is scarce: kDeviceMemory bytes for all contexts of a process.
//
//   ibv_dm   --  Block  --  bytes, aligned as was asked
//      ^           ^
//   regions     imports (imports.cc) have the same block under another handle
//
// A block goes when its last handle does. A handle does not go before the regions on it (EBUSY), so no region
// outlives its bytes.
#include "live/abi/device_memory.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

namespace weft::live::abi {
namespace {

constexpr std::uint32_t kWord = 4;
constexpr std::size_t kLeastAlignment = 64;   // of a cache line
constexpr std::uint32_t kMostAlignment = 12;  // as a power of two: a page

std::atomic<std::uint64_t> used{0};  // by the blocks of the process

// Whether there was room.
bool reserve(std::uint64_t bytes) {
  std::uint64_t before = used.load();
  do {
    if (bytes > kDeviceMemory - before) return false;
  } while (!used.compare_exchange_weak(before, before + bytes));
  return true;
}

// Numbers by which handles are imported.
std::uint32_t next_number() {
  static std::atomic<std::uint32_t> last{0};
  return ++last;
}

// Where a copy of the block's words begins; nullptr: there are no such words.
std::uint8_t* words_at(ibv_dm* dm, std::uint64_t offset, std::size_t length) {
  const Block& block = *handle_of<DmHandle>(dm).block;
  const bool whole = offset % kWord == 0 && length % kWord == 0;
  return whole && block.has(offset, length) ? block.bytes() + offset : nullptr;
}

int copy_to(ibv_dm* dm, std::uint64_t offset, const void* from, std::size_t length) {
  std::uint8_t* const to = words_at(dm, offset, length);
  if (to == nullptr) return errno = EINVAL;
  std::memcpy(to, from, length);
  return 0;
}

int copy_from(void* to, ibv_dm* dm, std::uint64_t offset, std::size_t length) {
  const std::uint8_t* const from = words_at(dm, offset, length);
  if (from == nullptr) return errno = EINVAL;
  std::memcpy(to, from, length);
  return 0;
}

void fill(DmHandle& h, ibv_context* context) {
  h.base.context = context;
  h.base.memcpy_to_dm = copy_to;
  h.base.memcpy_from_dm = copy_from;
  h.base.comp_mask = IBV_DM_MASK_HANDLE;
  h.base.handle = next_number();
}

}  // namespace

std::shared_ptr<Block> Block::make(std::size_t length, std::size_t alignment) {
  auto block = std::make_shared<Block>();  // if there is no memory for it, nothing was taken yet
  if (!reserve(length)) return nullptr;
  block->length_ = length;
  const std::size_t whole = (length + alignment - 1) / alignment * alignment;
  block->bytes_ = static_cast<std::uint8_t*>(std::aligned_alloc(alignment, whole));
  if (block->bytes_ == nullptr) return nullptr;
  std::memset(block->bytes_, 0, whole);
  return block;
}

Block::~Block() {
  std::free(bytes_);
  used -= length_;
}

ibv_dm* alloc_device_memory(ibv_context* context, ibv_alloc_dm_attr* attr) {
  return at_edge([&]() -> ibv_dm* {
    if (attr->comp_mask != 0 || attr->length == 0 || attr->length > kDeviceMemory ||
        attr->log_align_req > kMostAlignment)
      return refuse(EINVAL);
    NewHandle<DmHandle> h(context);
    h->block = Block::make(attr->length, std::max(kLeastAlignment, std::size_t{1} << attr->log_align_req));
    if (h->block == nullptr) return refuse(ENOMEM);
    fill(*h.get(), context);
    return &h.publish(h->base.handle)->base;
  });
}

int free_device_memory(ibv_dm* dm) {
  return at_edge([&] {
    return destroy<DmHandle>(dm, [](const DmHandle& h) { return objects().needed(&h) ? EBUSY : 0; });
  });
}

ibv_mr* register_device_memory(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length,
                               unsigned access) {
  return at_edge([&]() -> ibv_mr* {
    const DmHandle* const h = find<DmHandle>(dm, pd->context);
    if (h == nullptr || (access & IBV_ACCESS_ZERO_BASED) == 0 || !h->block->has(offset, length))
      return refuse(EINVAL);
    std::uint8_t* const memory = h->block->bytes() + offset;
    ibv_mr* const mr =
        register_memory(pd, memory, length, reinterpret_cast<std::uint64_t>(memory), access, dm);
    if (mr != nullptr) mr->addr = nullptr;  // the program has no pointer to it
    return mr;
  });
}

ibv_dm* import_block(ibv_context* context, const DmHandle& from) {
  NewHandle<DmHandle> h(context);
  h->block = from.block;
  fill(*h.get(), context);
  return &h.publish(h->base.handle)->base;
}

}  // namespace weft::live::abi
