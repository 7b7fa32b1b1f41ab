// Regions and windows come and go here; lookups, which every packet needs, are in the header.
#include "core/transport/key_table.h"

namespace weft {

Outcome<std::uint32_t> KeyTable::take_row() {
  if (free_.empty()) return fail(Errc::kNoMemory);
  const std::uint32_t index = free_.back();
  free_.pop_back();
  return index;
}

Outcome<Key> KeyTable::add(PdId pd, std::uint64_t address, std::uint64_t length, std::uint8_t access) {
  if ((access & (kRemoteWrite | kRemoteAtomic)) != 0 && (access & kLocalWrite) == 0)
    return fail(Errc::kInvalid);
  if (length > 0 && address + (length - 1) < address) return fail(Errc::kInvalid);
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
  constexpr std::uint8_t kRemote = kRemoteRead | kRemoteWrite | kRemoteAtomic;
  if ((region.access & kMwBind) == 0 || (b.access & ~kRemote) != 0) return false;
  if ((b.access & (kRemoteWrite | kRemoteAtomic)) != 0 && (region.access & kLocalWrite) == 0) return false;
  RegionId unused;
  std::uint64_t offset = 0;
  if (check(region, b.region.v >> 8U, pd, 0, b.address, b.length, unused, offset) != Denied::kNo)
    return false;
  unbind(w);
  w.address = b.address;
  w.length = b.length;
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
  RegionId unused;
  const Denied denied = check(r, 0, pd, rights, address, length, unused, offset);
  if (denied != Denied::kNo) return denied;
  region = {r.links};
  offset = address - rows_[r.links].address;
  return Denied::kNo;
}

}  // namespace weft
