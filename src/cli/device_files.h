// Programs that look for a NIC's files before they ask libibverbs, as UCX does, find them where
// `weft run --device-files` shows them: in a mount namespace of its own, whose /dev is this host's and has
// /dev/infiniband/uverbs0 and rdma_cm besides. They are the null device: there to be found, with nothing
// behind.
#pragma once
#include "core/base/result.h"

namespace weft::cli {

// For this process and what it becomes; nobody else sees it. Without root it takes a user namespace. Nothing
// is done where the files are there already.
Result<void> show_device_files();

}  // namespace weft::cli
