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

MemoryCache::MemoryCache(VerbsPort& port, std::uint8_t access, std::uint32_t frame, const Config& config)
    : port_(port),
      access_(access),
      region_(config.region),
      most_(config.memory),
      guard_(config.isolate ? kGuard : 0),
      pages_(config.pages),
      mode_(config.memory_mode) {
  if (mode_ == MemoryMode::kPort && config.isolate && pages_.map != nullptr) mode_ = MemoryMode::kPages;
  stride_[kFrames] = (kFrameAt + frame + kLine - 1) / kLine * kLine + guard_;
  for (std::uint32_t i = 1; i < kClasses; ++i)
    stride_[i] = kPayloadAt + (std::uint64_t{kLeastPayload} << (i - 1)) + guard_;
  open_.fill(kNone);
}

MemoryCache::~MemoryCache() {
  for (Region& r : regions_) {
    if (r.there) (void)give_back(r);
  }
}

// Memory of the port's own; or of the program's platform, which the port adopts. `mode`: what it is.
Outcome<PortMemory> MemoryCache::obtain(std::uint64_t bytes, MemoryMode& mode) {
  mode = mode_;
  if (mode == MemoryMode::kPort) return port_.allocate(bytes, access_, MemoryKind::kBytes);
  void* at = pages_.map(bytes, mode);
  if (at == nullptr && (mode == MemoryMode::kHuge || mode == MemoryMode::kContiguous)) {
    mode = MemoryMode::kPages;
    at = pages_.map(bytes, mode);
  }
  if (at == nullptr) return fail(Errc::kNoMemory);
  auto memory = port_.adopt({static_cast<std::uint8_t*>(at), bytes}, access_);
  if (!memory) pages_.unmap(at, bytes, mode);
  return memory;
}

Outcome<void> MemoryCache::give_back(const Region& region) {
  const auto gone = port_.release(region.memory.lkey);
  if (gone && region.mode != MemoryMode::kPort)
    pages_.unmap(region.memory.bytes.data(), region.memory.length, region.mode);
  return gone;
}

// --- guards: bytes behind every message that nobody may write ---

// From the end of what was asked for to the end of the block; of a message that lies
// elsewhere nothing.
std::span<std::uint8_t> MemoryCache::guard_of(Message& m) const {
  const std::uint64_t stride = regions_[m.region].stride;
  const std::uint64_t begin = m.outside_bytes() ? stride : kPayloadAt + m.capacity;
  return {reinterpret_cast<std::uint8_t*>(&m) + begin, stride - begin};
}

void MemoryCache::seal(Message& m) const {
  if (guard_ == 0) return;
  std::uint32_t i = 0;
  for (std::uint8_t& b : guard_of(m)) b = guard_byte(i++);
}

void MemoryCache::guard(Message& m, std::uint32_t payload) const {
  m.capacity = payload;
  seal(m);
}

void MemoryCache::restore(Message& m) const {
  m.capacity = static_cast<std::uint32_t>(regions_[m.region].stride - kPayloadAt - guard_);
  seal(m);
}

bool MemoryCache::look_at_guard(Message& m) {
  const std::span<std::uint8_t> guard = guard_of(m);
  std::uint32_t i = 0;
  while (i < guard.size() && guard[i] == guard_byte(i)) ++i;
  if (i == guard.size()) return true;
  ++counts_.overruns;
  last_overrun_ = {m.data, m.length, m.cookie, static_cast<std::uint64_t>(&guard[i] - m.data)};
  seal(m);
  return false;
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
  const std::uint64_t aside = length_class != kFrames && aside_ != 0 ? aside_bytes() : 0;
  if (counts_.registered + aside + bytes > most_.n || (place == regions_.end() && regions_.size() == kNone)) {
    ++counts_.refused;
    return false;
  }
  MemoryMode mode{};
  const auto memory = obtain(bytes, mode);
  if (!memory) {
    ++counts_.refused;
    return false;
  }
  if (place == regions_.end()) place = regions_.insert(regions_.end(), Region{});
  *place = Region{};
  place->memory = *memory;
  place->mode = mode;
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
  counts_.plain += mode == mode_ ? 0U : 1U;
  return true;
}

// Regions that the frames set aside would need beyond the blocks that are free.
std::uint64_t MemoryCache::aside_bytes() const {
  std::uint64_t free = 0;
  for (std::uint16_t at = open_[kFrames]; at != kNone; at = regions_[at].after)
    free += regions_[at].blocks - regions_[at].used;
  if (aside_ <= free) return 0;
  const std::uint64_t bytes = std::max(region_.n, stride_[kFrames]);
  const std::uint64_t each = bytes / stride_[kFrames];
  return (aside_ - free + each - 1) / each * bytes;
}

Message* MemoryCache::take_from(std::uint16_t at) {
  Region& r = regions_[at];
  if (++r.used == r.blocks) unlink(at);
  counts_.in_use += r.stride;
  if (Message* const m = r.free; m != nullptr) {
    r.free = static_cast<Message*>(m->next);
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
  m->capacity = static_cast<std::uint32_t>(r.stride - kPayloadAt - guard_);
  seal(*m);
  return m;
}

[[gnu::flatten]] Message* MemoryCache::take(std::uint32_t payload) {
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
  if (guard_ != 0) [[unlikely]]
    guard(*m, payload);
  return m;
}

Message* MemoryCache::take_frame() {
  if (open_[kFrames] == kNone && !grow(kFrames, stride_[kFrames], std::max(region_.n, stride_[kFrames])))
    return nullptr;
  return take_from(open_[kFrames]);
}

// An idle region that is long enough and not twice as long; or a new one.
Message* MemoryCache::take_own(std::uint32_t payload) {
  const std::uint64_t need = (std::uint64_t{kPayloadAt} + payload + kLine - 1) / kLine * kLine + guard_;
  std::uint16_t at = open_[kOwn];
  while (at != kNone && (regions_[at].stride < need || regions_[at].stride / 2 > need))
    at = regions_[at].after;
  if (at == kNone) {
    if (!grow(kOwn, need, need)) return nullptr;
    at = open_[kOwn];
  }
  Message* m = take_from(at);
  m->length = payload;
  if (guard_ != 0) [[unlikely]]
    guard(*m, payload);
  return m;
}

void MemoryCache::give(Message* m) {
  (void)intact(*m);
  const std::uint16_t at = m->region;
  CHECK_OP(at, <, regions_.size());
  Region& r = regions_[at];
  CHECK_OP(r.used, >, 0U);
  m->next = r.free;
  r.free = m;
  counts_.in_use -= r.stride;
  if (r.used-- == r.blocks) link(at);
  if (r.used == 0) r.idle_since = now_;
}

bool MemoryCache::reserve(std::uint32_t payload, std::uint32_t count) {
  if (payload > kMostPayload) return false;
  const std::uint32_t length_class = class_of(payload);
  if (length_class != kOwn) return reserve_class(length_class, count);
  const std::uint64_t need = (std::uint64_t{kPayloadAt} + payload + kLine - 1) / kLine * kLine + guard_;
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
    if (!give_back(r)) continue;
    unlink(at);
    counts_.registered -= r.memory.length;
    --counts_.regions;
    ++counts_.shrunk;
    r.there = false;
  }
}

}  // namespace weft::channel
