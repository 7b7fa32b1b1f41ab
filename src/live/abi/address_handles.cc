// Address handles: where a datagram goes, from an address vector or from a datagram that came; and groups,
// where datagrams for several come.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/wire/ip.h"
#include "live/abi/handles.h"
#include "live/wires/udp.h"

namespace weft::live::abi {

static_assert(sizeof(ibv_grh) == wire::kGrhBytes);

bool reaches(const Addresses& own, const wire::Address& peer) {
  const wire::Address& from = own.towards(peer);
  if (!own.reach(peer)) {
    const bool v4 = wire::is_v4_mapped(peer);
    complain("no way from " + to_text(from) + " to " + to_text(peer) + ": this process has no IPv" +
             (v4 ? "4" : "6") + " address; give it one of each (weft run --addr " +
             (v4 ? "10.0.0.1," + to_text(from) : to_text(from) + ",fd00::1") + " -- ...)");
    return false;
  }
  if (is_link_local(peer) && is_loopback(from)) {
    complain(
        "no way from " + to_text(from) + " to " + to_text(peer) +
        ": a link-local address is reached by an interface that has one, too (weft run --addr fe80::... -- "
        "...)");
    return false;
  }
  return true;
}

bool path_of(const Addresses& own, const ibv_ah_attr& a, PathAttr& out) {
  if (a.is_global == 0 || a.grh.sgid_index >= own.count() || a.port_num != 1) return false;
  std::copy_n(a.grh.dgid.raw, out.peer.bytes.size(), out.peer.bytes.begin());
  out.traffic_class = a.grh.traffic_class;
  out.hop_limit = a.grh.hop_limit;
  // What leaves comes from our address of the peer's family, so the program has to name that one.
  return reaches(own, out.peer) && own.index_of(own.towards(out.peer)) == a.grh.sgid_index;
}

namespace {

// The group of a queue pair's attachment. A LID means nothing here, as in every RoCE network.
template <class Step>
int with_group(ibv_qp* qp, const ibv_gid* gid, const Step& step) {
  const QpHandle* const h = find<QpHandle>(qp);
  if (h == nullptr || gid == nullptr) return EINVAL;
  wire::Address group;
  std::copy_n(gid->raw, group.bytes.size(), group.bytes.begin());
  return answer(step(engine_of(qp->context), h->engine, group));
}

int attributes_from(const Context& engine, std::uint8_t port, const ibv_wc& wc, const ibv_grh& grh,
                    ibv_ah_attr& out) {
  if (port != 1 || (wc.wc_flags & IBV_WC_GRH) == 0) return EINVAL;
  std::array<std::uint8_t, wire::kGrhBytes> bytes;
  std::memcpy(bytes.data(), &grh, sizeof grh);
  wire::IpHeader ip;
  if (!wire::read_grh(bytes, ip)) return EPROTONOSUPPORT;
  const Addresses& own = engine.attributes().own;
  if (!own.have(ip.destination)) return EINVAL;  // not to us
  out = {};
  out.is_global = 1;
  out.port_num = port;
  out.sl = 0;  // no packet tells one; what stands there is kind_of_frame's
  std::copy(ip.source.bytes.begin(), ip.source.bytes.end(), out.grh.dgid.raw);
  out.grh.sgid_index = own.index_of(ip.destination);
  out.grh.hop_limit = ip.ttl;
  out.grh.traffic_class = ip.tos;
  return 0;
}

}  // namespace
}  // namespace weft::live::abi

using namespace weft;
using namespace weft::live;
using namespace weft::live::abi;

WEFT_EXPORT ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  return at_edge([&]() -> ibv_ah* {
    PathAttr path;
    const PdHandle* const domain = find<PdHandle>(pd);
    if (domain == nullptr || !path_of(engine_of(pd->context).attributes().own, *attr, path))
      return refuse(EINVAL);
    NewHandle<AhHandle> h(pd->context);
    const auto id = engine_of(pd->context).create_ah(domain->id, path);
    if (!id) return refuse(errno_of(id.error()));
    h->base.context = pd->context;
    h->base.pd = pd;
    h->base.handle = id->v;
    h->id = *id;
    return &h.publish(id->v, {pd})->base;
  });
}

WEFT_EXPORT int ibv_destroy_ah(ibv_ah* ah) {
  return at_edge([&] {
    return destroy<AhHandle>(ah,
                             [](AhHandle& h) { return answer(engine_of(h.base.context).destroy_ah(h.id)); });
  });
}

WEFT_EXPORT int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port, ibv_wc* wc, ibv_grh* grh,
                                    ibv_ah_attr* out) {
  const int failed = attributes_from(engine_of(context), port, *wc, *grh, *out);
  if (failed == 0) return 0;
  errno = failed;
  return -1;
}

WEFT_EXPORT ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port) {
  ibv_ah_attr attr;
  if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr) != 0) return nullptr;
  return ibv_create_ah(pd, &attr);
}

WEFT_EXPORT int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t) {
  return at_edge([&] {
    return with_group(qp, gid, [](Context& engine, const Qp* q, const wire::Address& group) {
      return engine.attach(q, group);
    });
  });
}

WEFT_EXPORT int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t) {
  return at_edge([&] {
    return with_group(qp, gid, [](Context& engine, const Qp* q, const wire::Address& group) {
      return engine.detach(q, group);
    });
  });
}
