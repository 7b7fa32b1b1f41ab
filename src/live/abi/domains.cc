// Protection domains, and what programs with many threads make of them.
//
//   protection domain   what keys are checked against
//   thread domain       a program's promise that one thread at a time uses what is made in it. It chooses the
//                       shard, where there are several, so that threads do not wait for each other. Every
//                       call may come from any thread all the same, so nothing is left out for the promise
//   parent domain       a protection domain and a thread domain under one handle. Whatever is made in it is
//                       in that protection domain, so it works with what is made there directly. It may say
//                       where handles of queues lie (allocators.h)
//
// A domain goes when nothing needs it any more (objects.h), else it is EBUSY.
#include <cerrno>

#include "live/abi/handles.h"

namespace weft::live::abi {

ibv_td* alloc_thread_domain(ibv_context* context, ibv_td_init_attr* init) {
  return at_edge([&]() -> ibv_td* {
    if (init->comp_mask != 0) return refuse(EINVAL);
    NewHandle<TdHandle> h(context);
    h->base.context = context;
    h->shard = engine_of(context).shard_for_thread();
    return &h.publish(number_of(h->base))->base;
  });
}

int dealloc_thread_domain(ibv_td* td) {
  return at_edge([&] {
    return destroy<TdHandle>(td, [](const TdHandle& h) { return objects().needed(&h) ? EBUSY : 0; });
  });
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* init) {
  return at_edge([&]() -> ibv_pd* {
    constexpr std::uint32_t kMasks =
        IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    if ((init->comp_mask & ~kMasks) != 0) return refuse(EOPNOTSUPP);
    const bool allocates = (init->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0;
    if (allocates && (init->alloc == nullptr || init->free == nullptr)) return refuse(EINVAL);
    const PdHandle* const domain = find<PdHandle>(init->pd, context);
    if (domain == nullptr || domain->is_parent) return refuse(EINVAL);
    const TdHandle* const thread = init->td != nullptr ? find<TdHandle>(init->td, context) : nullptr;
    if (init->td != nullptr && thread == nullptr) return refuse(EINVAL);
    NewHandle<PdHandle> h(context);
    h->base.context = context;
    h->base.handle = domain->base.handle;
    h->id = domain->id;
    h->is_parent = true;
    if (thread != nullptr) h->shard = thread->shard;
    if (allocates) {
      h->allocators = {.domain = &h->base, .called = *init};
      if ((init->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) == 0)
        h->allocators->called.pd_context = nullptr;
    }
    return &h.publish(h->base.handle, {init->pd, init->td})->base;
  });
}

}  // namespace weft::live::abi

using namespace weft::live::abi;

WEFT_EXPORT ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return at_edge([&]() -> ibv_pd* {
    NewHandle<PdHandle> h(context);
    const auto id = engine_of(context).alloc_pd();
    if (!id) return refuse(errno_of(id.error()));
    h->base.context = context;
    h->base.handle = id->v;
    h->id = *id;
    return &h.publish(id->v)->base;
  });
}

WEFT_EXPORT int ibv_dealloc_pd(ibv_pd* pd) {
  return at_edge([&] {
    return destroy<PdHandle>(pd, [](const PdHandle& h) {
      if (objects().needed(&h)) return EBUSY;
      return h.is_parent || h.is_import ? 0 : answer(engine_of(h.base.context).dealloc_pd(h.id));
    });
  });
}
