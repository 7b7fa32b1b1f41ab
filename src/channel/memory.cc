#include "channel/memory.h"

#include <algorithm>
#include <bit>
#include <new>

#include "channel/clock.h"
#include "core/base/check.h"

namespace weft::channel {
namespace {

constexpr std::uint32_t kLeastPayload = 256;
constexpr std::uint32_t kMostPayload = INT32_MAX;  // as Config::largest
constexpr std::uint64_t kLine = 64;

}  // namespace

MemoryCache::MemoryCache(VerbsPort& port, std::uint8_t access, std::uint32_t frame, Bytes region, Bytes most)
    : port_(port), access_(access), region_(region), most_(most) {
  stride_[kFrames] = (kFrameAt + frame + kLine - 1) / kLine * kLine;
  for (std::uint32_t i = 1; i < kClasses; ++i)
    stride_[i] = kPayloadAt + (std::uint64_t{kLeastPayload} << (i - 1));
  open_.fill(kNone);
}

MemoryCache::~MemoryCache() {
  for (Region& r : regions_) {
    if (r.there) (void)port_.release(r.memory.lkey);
  }
}

std::uint32_t MemoryCache::class_of(std::uint32_t payload) {
  if (payload <= kLeastPayload) return 1;
  return std::min(static_cast<std::uint32_t>(std::bit_width((payload - 1) / kLeastPayload)) + 1U, kOwn);
}

void MemoryCache::link(std::uint16_t at) {
  Region& r = regions_[at];
  std::uint16_t& head = open_[r.length_class];
  r.before = kNone;
  r.after = head;
  if (head != kNone) regions_[head].before = at;
  head = at;
}

void MemoryCache::unlink(std::uint16_t at) {
  const Region& r = regions_[at];
  (r.before != kNone ? regions_[r.before].after : open_[r.length_class]) = r.after;
  if (r.after != kNone) regions_[r.after].before = r.before;
}

bool MemoryCache::grow(std::uint32_t length_class, std::uint64_t stride, std::uint64_t bytes) {
  auto place = std::find_if(regions_.begin(), regions_.end(), [](const Region& r) { return !r.there; });
  if (counts_.registered + bytes > most_.n || (place == regions_.end() && regions_.size() == kNone)) {
    ++counts_.refused;
    return false;
  }
  const auto memory = port_.allocate(bytes, access_, MemoryKind::kBytes);
  if (!memory) {
    ++counts_.refused;
    return false;
  }
  if (place == regions_.end()) place = regions_.insert(regions_.end(), Region{});
  *place = Region{};
  place->memory = *memory;
  place->stride = stride;
  place->blocks = static_cast<std::uint32_t>(bytes / stride);
  place->length_class = static_cast<std::uint8_t>(length_class);
  place->there = true;
  place->idle_since = now_;
  link(static_cast<std::uint16_t>(place - regions_.begin()));
  counts_.registered += bytes;
  counts_.most = std::max(counts_.most, counts_.registered);
  ++counts_.regions;
  ++counts_.grown;
  return true;
}

Message* MemoryCache::take_from(std::uint16_t at) {
  Region& r = regions_[at];
  if (++r.used == r.blocks) unlink(at);
  counts_.in_use += r.stride;
  if (Message* const m = r.free; m != nullptr) {
    r.free = m->after;
    m->renew();
    return m;
  }
  const std::uint64_t offset = r.stride * r.fresh++;
  auto* const m = new (&r.memory.bytes[offset]) Message;
  m->region = at;
  m->address = r.memory.address + offset;
  m->lkey = r.memory.lkey;
  m->rkey = r.memory.rkey;
  m->data = reinterpret_cast<std::uint8_t*>(m) + kPayloadAt;
  m->capacity = static_cast<std::uint32_t>(r.stride - kPayloadAt);
  return m;
}

Message* MemoryCache::take(std::uint32_t payload) {
  if (payload > kMostPayload) {
    ++counts_.refused;
    return nullptr;
  }
  const std::uint32_t length_class = class_of(payload);
  if (length_class == kOwn) return take_own(payload);
  std::uint16_t& open = open_[length_class];
  if (open == kNone && !grow(length_class, stride_[length_class], std::max(region_.n, stride_[length_class])))
    return nullptr;
  Message* m = take_from(open);
  m->length = payload;
  return m;
}

Message* MemoryCache::take_frame() {
  if (open_[kFrames] == kNone && !grow(kFrames, stride_[kFrames], std::max(region_.n, stride_[kFrames])))
    return nullptr;
  return take_from(open_[kFrames]);
}

// An idle region that is long enough and not twice as long; or a new one.
Message* MemoryCache::take_own(std::uint32_t payload) {
  const std::uint64_t need = (std::uint64_t{kPayloadAt} + payload + kLine - 1) / kLine * kLine;
  std::uint16_t at = open_[kOwn];
  while (at != kNone && (regions_[at].stride < need || regions_[at].stride / 2 > need))
    at = regions_[at].after;
  if (at == kNone) {
    if (!grow(kOwn, need, need)) return nullptr;
    at = open_[kOwn];
  }
  Message* m = take_from(at);
  m->length = payload;
  return m;
}

void MemoryCache::give(Message* m) {
  const std::uint16_t at = m->region;
  CHECK_OP(at, <, regions_.size());
  Region& r = regions_[at];
  CHECK_OP(r.used, >, 0U);
  m->after = r.free;
  r.free = m;
  counts_.in_use -= r.stride;
  if (r.used-- == r.blocks) link(at);
  if (r.used == 0) r.idle_since = now_;
}

bool MemoryCache::reserve(std::uint32_t payload, std::uint32_t count) {
  if (payload > kMostPayload) return false;
  const std::uint32_t length_class = class_of(payload);
  if (length_class != kOwn) return reserve_class(length_class, count);
  const std::uint64_t need = (std::uint64_t{kPayloadAt} + payload + kLine - 1) / kLine * kLine;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!grow(kOwn, need, need)) return false;
  }
  return true;
}

bool MemoryCache::reserve_class(std::uint32_t length_class, std::uint32_t count) {
  std::uint64_t free = 0;
  for (std::uint16_t at = open_[length_class]; at != kNone; at = regions_[at].after)
    free += regions_[at].blocks - regions_[at].used;
  while (free < count) {
    if (!grow(length_class, stride_[length_class], std::max(region_.n, stride_[length_class]))) return false;
    free += regions_[open_[length_class]].blocks;
  }
  return true;
}

void MemoryCache::rebase(Duration by) {
  now_ = rebased(now_, by);
  for (Region& r : regions_) r.idle_since = rebased(r.idle_since, by);
}

void MemoryCache::shrink(Duration idle) {
  for (std::uint16_t at = 0; at < regions_.size(); ++at) {
    Region& r = regions_[at];
    if (!r.there || r.used != 0 || now_ - r.idle_since < idle) continue;
    if (!port_.release(r.memory.lkey)) continue;
    unlink(at);
    counts_.registered -= r.memory.length;
    --counts_.regions;
    ++counts_.shrunk;
    r.there = false;
  }
}

}  // namespace weft::channel
