// Objects that contexts share. ibv_open_device opens the device; ibv_import_device makes another context of
// what is open already, found by the file that stands for it (ibv_context::cmd_fd, or a duplicate). In
// contexts of one opening the numbers of domains, regions and device memory mean the same, and an import is
// another handle of what has the number.
//
//   ContextHandle  --\                                      PdHandle
//   ContextHandle  ---- Opened -- live::Context -- PdId -- /
//                                                       \ -- PdHandle (imported)
//
// As over the kernel, what was made lasts until it is destroyed by any of its handles or the last context is
// closed. So the handles of a context that closes before the others stay in memory, for events may name them.
//
// Only contexts of one process share: what another process opened is not to be had (EOPNOTSUPP).
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <vector>

#include "live/abi/device_memory.h"
#include "live/abi/handles.h"

namespace weft::live::abi {
namespace {

std::mutex opening;  // guards who is in an Opened

// The object of a type with this number in any context of an opening, if it `fits`; else nullptr.
template <class Handle, class Fits>
Handle* find_number(ibv_context* context, std::uint32_t number, const Fits& fits) {
  const Opened* const opened = handle_of_context(context).opened.get();
  return static_cast<Handle*>(objects().search(free_handle<Handle>, [&](void* object, const auto& entry) {
    return entry.number == number && handle_of_context(entry.context).opened.get() == opened &&
           fits(*static_cast<Handle*>(object));
  }));
}

template <class Handle, class Base>
void forget(Base* base) {
  if (find<Handle>(base) != nullptr && !objects().take(base).empty()) delete reinterpret_cast<Handle*>(base);
}

bool stands_for(int file, const struct stat& named) {
  struct stat own {};
  return fstat(file, &own) == 0 && own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

}  // namespace

int new_command_file() { return memfd_create("weft0", MFD_CLOEXEC); }

void begin_opened(ContextHandle& h, std::unique_ptr<Context> engine) {
  h.opened = std::make_shared<Opened>();
  h.opened->engine = std::move(engine);
  h.opened->contexts.push_back(&h);
  h.opened->open = 1;
  h.engine = h.opened->engine.get();
}

void close_opened(ContextHandle& h) {
  const std::shared_ptr<Opened> opened = h.opened;
  {
    const std::lock_guard lock(opening);
    close(h.command_fd);
    h.command_fd = -1;
    if (--opened->open != 0) return;
  }
  opened->engine.reset();  // and everything it made
  for (ContextHandle* const c : opened->contexts) {
    objects().free_all_of(&c->vctx.context);
    delete c;
  }
}

namespace {

ibv_context* import_device(int file) {
  struct stat named {};
  if (fstat(file, &named) != 0) return refuse(EBADF);
  const std::lock_guard lock(opening);
  auto* const from =
      static_cast<ibv_context*>(objects().search(free_context, [&](void* context, const auto&) {
        return stands_for(handle_of_context(static_cast<ibv_context*>(context)).command_fd, named);
      }));
  if (from == nullptr) return refuse(EOPNOTSUPP);
  const auto& opened = handle_of_context(from).opened;
  auto fresh = std::make_unique<ContextHandle>();
  fresh->opened = opened;
  fresh->engine = opened->engine.get();
  opened->contexts.reserve(opened->contexts.size() + 1);
  publish_context(*fresh, from->device);
  fresh->use_command_file(file);  // it is the caller's until nothing can fail any more
  ++opened->open;
  opened->contexts.push_back(fresh.get());
  return &fresh.release()->vctx.context;
}

ibv_pd* import_domain(ibv_context* context, std::uint32_t number) {
  PdHandle* const from =
      find_number<PdHandle>(context, number, [](const PdHandle& h) { return !h.is_parent && !h.is_import; });
  if (from == nullptr) return refuse(ENOENT);
  NewHandle<PdHandle> h(context);
  h->base.context = context;
  h->base.handle = number;
  h->id = from->id;
  h->is_import = true;
  return &h.publish(number, {from})->base;
}

ibv_mr* import_region(ibv_pd* pd, std::uint32_t number) {
  if (find<PdHandle>(pd) == nullptr) return refuse(EINVAL);
  const MrHandle* const from =
      find_number<MrHandle>(pd->context, number, [](const MrHandle&) { return true; });
  if (from == nullptr) return refuse(ENOENT);
  NewHandle<MrHandle> h(pd->context);
  h->base = from->base;
  h->base.context = pd->context;
  h->base.pd = pd;
  h->base.addr = nullptr;  // where it lies is the business of whoever registered it
  h->lkey = from->lkey;
  return &h.publish(number, {pd})->base;
}

}  // namespace
}  // namespace weft::live::abi

using namespace weft::live::abi;

WEFT_EXPORT ibv_context* ibv_import_device(int file) {
  return at_edge([&] { return import_device(file); });
}

WEFT_EXPORT ibv_pd* ibv_import_pd(ibv_context* context, std::uint32_t number) {
  return at_edge([&] { return import_domain(context, number); });
}

// What was made in it may go later. Until then its handle is kept, and holds the domain itself no longer.
WEFT_EXPORT void ibv_unimport_pd(ibv_pd* pd) {
  const PdHandle* const h = find<PdHandle>(pd);
  if (h == nullptr || !h->is_import) return;
  objects().set_first_need(pd, nullptr);
  if (!objects().needed(pd)) forget<PdHandle>(pd);
}

WEFT_EXPORT ibv_mr* ibv_import_mr(ibv_pd* pd, std::uint32_t number) {
  return at_edge([&] { return import_region(pd, number); });
}

WEFT_EXPORT void ibv_unimport_mr(ibv_mr* mr) { forget<MrHandle>(mr); }

WEFT_EXPORT ibv_dm* ibv_import_dm(ibv_context* context, std::uint32_t number) {
  return at_edge([&]() -> ibv_dm* {
    const DmHandle* const from = find_number<DmHandle>(context, number, [](const DmHandle&) { return true; });
    return from != nullptr ? import_block(context, *from) : refuse(ENOENT);
  });
}

WEFT_EXPORT void ibv_unimport_dm(ibv_dm* dm) {
  if (!objects().needed(dm)) forget<DmHandle>(dm);
}
