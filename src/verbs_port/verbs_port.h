// The port (core/verbs/port.h) over libibverbs and librdmacm as any program links them, so over hardware and
// over our soft NIC alike.
//
// Connections by address are made through librdmacm (meetings.h), on the address that the device's GID names.
// Nothing here waits: channels are looked at when poll_event() is called. The first numbers of packets and
// the codes that both ends must share are the connection manager's choice. The mode of a connection is the
// device's affair: libibverbs has no word for it (`weft run --mode`).
//
// One thread. A kernel that has no room left shows as kNoMemory.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/verbs/port.h"

namespace weft {

class IbverbsPort : public VerbsPort {
 public:
  // Readable when poll_event() has something to tell: for select, poll and epoll. It is the port's own.
  virtual int event_fd() const = 0;
  // From now on it is readable when `fd` is, too. False: the kernel refuses.
  virtual bool watch(int fd) = 0;
};

// The first device with an IPv4 GID, or the named one.
// For a process that forks: memory registered from here on is not a child's. False: the kernel or the library
// cannot, or memory was registered before.
bool keep_memory_from_children();

Result<std::unique_ptr<IbverbsPort>> open_ibverbs(const std::string& device = "");

}  // namespace weft
