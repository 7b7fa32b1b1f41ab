// Regions and windows come and go here; lookups, which every packet needs, are in the header.
#include "core/transport/key_table.h"

namespace weft {

Outcome<std::uint32_t> KeyTable::take_row() {
  if (free_.empty()) return fail(Errc::kNoMemory);
  const std::uint32_t index = free_.back();
  free_.pop_back();
  return index;
}

namespace {

bool rights_make_sense(std::uint8_t access) {
  return (access & (kRemoteWrite | kRemoteAtomic)) == 0 || (access & kLocalWrite) != 0;
}

bool wraps(std::uint64_t address, std::uint64_t length) {
  return length > 0 && address + (length - 1) < address;
}

}  // namespace

Outcome<Key> KeyTable::add(PdId pd, std::uint64_t address, std::uint64_t length, std::uint8_t access) {
  if ((access & kZeroBased) != 0) address = 0;
  if (!rights_make_sense(access) || wraps(address, length)) return fail(Errc::kInvalid);
  const auto index = take_row();
  if (!index) return fail(index.error());
  Row& r = rows_[*index];
  r = {};
  r.address = address;
  r.length = length;
  r.pd = pd;
  r.access = access;
  r.tag = static_cast<std::uint8_t>(random_.next());
  r.live = true;
  return Key{(*index << 8U) | r.tag};
}

Outcome<void> KeyTable::change(Key key, std::uint8_t changes, PdId pd, std::uint64_t address,
                               std::uint64_t length, std::uint8_t access) {
  const Row* found = find(key);
  if (found == nullptr || found->kind != Kind::kRegion) return fail(Errc::kNotFound);
  if (found->links != 0) return fail(Errc::kBusy);
  if (changes == 0) return fail(Errc::kInvalid);
  Row r = *found;
  if ((changes & kChangePd) != 0) r.pd = pd;
  if ((changes & kChangeAccess) != 0) r.access = access;
  if ((changes & kChangeRange) != 0) {
    r.address = address;
    r.length = length;
  }
  if ((r.access & kZeroBased) != 0) r.address = 0;
  // Its addresses count from elsewhere only where it says so.
  const bool based = ((r.access ^ found->access) & kZeroBased) == 0 || (changes & kChangeRange) != 0;
  if (!based || !rights_make_sense(r.access) || wraps(r.address, r.length)) return fail(Errc::kInvalid);
  rows_[key.v >> 8U] = r;
  return {};
}

Outcome<void> KeyTable::remove(Key key) {
  const Row* r = find(key);
  if (r == nullptr || r->kind != Kind::kRegion) return fail(Errc::kNotFound);
  if (r->links != 0) return fail(Errc::kBusy);
  release(key.v >> 8U);
  return {};
}

Outcome<Key> KeyTable::add_window(PdId pd, WindowType type) {
  const auto index = take_row();
  if (!index) return fail(index.error());
  Row& r = rows_[*index];
  r = {};
  r.pd = pd;
  r.kind = type == WindowType::k1 ? Kind::kWindow1 : Kind::kWindow2;
  r.tag = static_cast<std::uint8_t>(random_.next());
  r.live = true;
  return Key{(*index << 8U) | r.tag};
}

// By index alone: the caller may hold any tag that the window ever had.
Outcome<void> KeyTable::remove_window(Key key) {
  const std::uint32_t index = key.v >> 8U;
  if (index >= rows_.size() || !rows_[index].live || rows_[index].kind == Kind::kRegion)
    return fail(Errc::kNotFound);
  unbind(rows_[index]);
  release(index);
  return {};
}

void KeyTable::unbind(Row& window) {
  if (!window.bound) return;
  --rows_[window.links].links;
  window.bound = false;
  if (window.kind == Kind::kWindow2) --bound_;
}

void KeyTable::unbind_all(Qpn qpn) {
  if (bound_ == 0) return;
  for (Row& r : rows_) {
    if (r.live && r.kind == Kind::kWindow2 && r.bound && r.qpn == qpn.v) unbind(r);
  }
}

bool KeyTable::bind(const WindowBind& b, PdId pd, Qpn qpn) {
  const std::uint32_t index = b.window.v >> 8U;
  if (index >= rows_.size() || !rows_[index].live || rows_[index].kind == Kind::kRegion) return false;
  Row& w = rows_[index];
  if (w.pd != pd) return false;
  const auto tag = static_cast<std::uint8_t>(b.window.v);
  if (w.kind == Kind::kWindow2 && (w.bound || b.length == 0)) return false;
  if (b.length == 0) {  // type 1: gives its rights up
    unbind(w);
    w.tag = tag;
    return true;
  }
  const Row* found = find(b.region);
  if (found == nullptr || found->kind != Kind::kRegion) return false;
  Row& region = rows_[b.region.v >> 8U];
  // Local writing is the region's own right; a window may name it, as programs do.
  constexpr std::uint8_t kKnown = kRemoteRead | kRemoteWrite | kRemoteAtomic | kLocalWrite | kZeroBased;
  const bool zero_based = (b.access & kZeroBased) != 0;
  if ((region.access & kMwBind) == 0 || (b.access & ~kKnown) != 0) return false;
  if ((region.access & kZeroBased) != 0 || (zero_based && w.kind == Kind::kWindow1)) return false;
  if ((b.access & (kRemoteWrite | kRemoteAtomic)) != 0 && (region.access & kLocalWrite) == 0) return false;
  RegionId unused;
  std::uint64_t offset = 0;
  if (check(region, b.region.v >> 8U, pd, 0, b.address, b.length, unused, offset) != Denied::kNo)
    return false;
  unbind(w);
  w.address = zero_based ? 0 : b.address;
  w.length = b.length;
  w.base = offset;
  w.access = b.access;
  w.tag = tag;
  w.bound = true;
  w.links = b.region.v >> 8U;
  w.qpn = w.kind == Kind::kWindow2 ? qpn.v : kNoQpn.v;
  ++region.links;
  if (w.kind == Kind::kWindow2) ++bound_;
  return true;
}

bool KeyTable::invalidate(Key key, Qpn qpn) {
  const Row* r = find(key);
  if (r == nullptr || r->kind != Kind::kWindow2 || !r->bound || r->qpn != qpn.v) return false;
  unbind(rows_[key.v >> 8U]);
  return true;
}

KeyTable::Denied KeyTable::check_window(const Row& r, PdId pd, Qpn qpn, std::uint8_t rights,
                                        std::uint64_t address, std::uint64_t length, RegionId& region,
                                        std::uint64_t& offset) const {
  if (!r.bound) return Denied::kKey;
  if (r.kind == Kind::kWindow2 && r.qpn != qpn.v) return Denied::kDomain;
  const Denied denied = check(r, r.links, pd, rights, address, length, region, offset);
  if (denied != Denied::kNo) return denied;
  offset += r.base;
  return Denied::kNo;
}

}  // namespace weft
