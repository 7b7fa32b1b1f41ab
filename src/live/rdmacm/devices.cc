// The devices that a program may use without an identifier: the one there is.
#include <memory>

#include "live/rdmacm/edge.h"
#include "live/rdmacm/host.h"

using namespace weft::live::rdmacm;

WEFT_EXPORT ibv_context** rdma_get_devices(int* count) {
  if (count != nullptr) *count = 0;
  return pointer_at_edge([&]() -> ibv_context** {
    Host* const h = host();
    if (h == nullptr) return nullptr;
    auto list = std::make_unique<ibv_context*[]>(2);
    list[0] = h->verbs;
    if (count != nullptr) *count = 1;
    return list.release();
  });
}

WEFT_EXPORT void rdma_free_devices(ibv_context** list) { delete[] list; }
