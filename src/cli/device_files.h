// Programs that look for a NIC's files before they ask libibverbs find them where `weft run --device-files`
// shows them, in a mount namespace of its own:
//
//   /dev/infiniband/          uverbs0 and rdma_cm, beside what this host's /dev has (UCX). They are the null
//                             device: there to be found, with nothing behind
//   /sys/class/infiniband/    weft0, beside what this host has: the files of live/engine/sysfs_files.h, and
//                             device/net/INTERFACE (pyverbs' tests, tools that look for a NIC's interface)
#pragma once
#include "core/base/result.h"
#include "live/wires/addresses.h"

namespace weft::cli {

// For this process and what it becomes; nobody else sees it. Without root it takes a user namespace. Nothing
// is done where the files are there already.
Result<void> show_device_files(const live::Addresses& own);

}  // namespace weft::cli
