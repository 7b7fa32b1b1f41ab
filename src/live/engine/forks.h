// A process that forks leaves its child a copy of each Nic: same sockets, same queue pairs, but no background
// thread, and perhaps a lock that it held. The network sees one host, so only the parent may go on. In the
// child every Nic is still: nothing leaves, nothing arrives, and closing it ends.
//
// fork() waits until nobody is inside a Nic, so that the child's copy is whole.
//
// A process that ends by exit() with a device open still owes the packets that --delay out or --rate holds
// back, and its packet trace: they leave then, and the file is finished.
#pragma once

namespace weft::live {

class Nic;

void mind_forks(Nic& nic);
void forget_forks(Nic& nic);

}  // namespace weft::live
