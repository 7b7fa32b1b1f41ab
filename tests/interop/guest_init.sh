#!/bin/busybox sh
# The first process of the guest (run_guest.py). Two network namespaces with a virtual Ethernet between: the kernel's
# soft NIC (rxe) is in the first one, because it works in no other; weft's programs run in the second. Then /cases, which
# calls `pair`. Results go to the second serial line, so that the kernel's own words are never between them:
#
#     @case NAME                              a case begins
#     @ended NAME CLIENT SERVER SECONDS       exit codes; 137 if it outlived its time
#     @client, @server                        what it printed, up to the next @; @early: a client that came too early
#     @mode MODE                              what `weft stat` says of a queue pair between both
#     @done                                   the last line of all
/bin/busybox --install -s /bin
# This shell takes its own ip before any other.
ip() { /usr/bin/ip "$@"; }
mkdir -p /proc /sys /dev /tmp /run /var
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir /dev/shm
mount -t tmpfs tmpfs /run
ln -s /run /var/run
exec </dev/null
stty -F /dev/ttyS1 raw 2>/dev/null
say() { printf '%s\n' "$*" >/dev/ttyS1; }

while read -r module; do insmod "$module" || say "@trouble insmod $module"; done </modules
# The programs pin memory.
ulimit -l unlimited
ip link set lo up
ip netns add weft
ip link add kernel0 type veth peer name weft0
ip link set weft0 netns weft
# A device makes one checksum of a whole train otherwise, and the wire of raw frames does not know of trains.
mtu=$(cat /mtu)
ip link set kernel0 mtu "$mtu"
ip addr add 10.0.0.1/24 dev kernel0
ip link set kernel0 up
ip -n weft link set lo up
ip -n weft link set weft0 mtu "$mtu"
ip -n weft addr add 10.0.0.2/24 dev weft0
ip -n weft link set weft0 up
rdma link add rxe0 type rxe netdev kernel0 || say "@trouble rdma link add"

show() { # TITLE FILE
  say "@$1"
  head -c 20000 "$2" >/dev/ttyS1
}

# Programs that come before their server listens say one of these, and come again.
early() { grep -qE "onnection refused|Couldn't connect|Unable to init the socket|REJECTED.*(error|status)[ :]*8|UNREACHABLE; error: 1\." "$1"; }

pair() { # NAME SECONDS SERVER-COMMAND CLIENT-COMMAND [WHAT THE SERVER PRINTS WHEN IT IS READY]
  say "@case $1"
  local began server client_code server_code
  began=$(date +%s)
  timeout -s KILL "$2" sh -c "$3" >/tmp/server 2>&1 &
  server=$!
  while [ -n "$5" ] && kill -0 $server 2>/dev/null && ! grep -q "$5" /tmp/server; do sleep 0.1; done
  while :; do
    timeout -s KILL "$2" sh -c "$4" >/tmp/client 2>&1
    client_code=$?
    [ $client_code != 0 ] && early /tmp/client && kill -0 $server 2>/dev/null && [ $(($(date +%s) - began)) -lt "$2" ] || break
    show early /tmp/client
    sleep 0.2
  done
  # A server whose client failed may wait for ever; it gets five seconds.
  [ $client_code = 0 ] || { sleep 5; kill -TERM $server 2>/dev/null; }
  wait $server
  server_code=$?
  show client /tmp/client
  show server /tmp/server
  say "@ended $1 $client_code $server_code $(($(date +%s) - began))"
}

# What `weft stat` says of a queue pair in use.
mode() { # WEFT-RUN
  local asks mode=''
  ibv_rc_pingpong -d rxe0 -g 1 -n 100000 >/tmp/server 2>&1 &
  local serves=$!
  while [ -z "$mode" ] && kill -0 $serves 2>/dev/null; do
    [ -n "$asks" ] && kill -0 "$asks" 2>/dev/null || { $1 ibv_rc_pingpong -g 0 -n 100000 10.0.0.1 >/tmp/client 2>&1 & asks=$!; }
    mode=$(/weft/weft stat -q -i -H | grep -owE 'roce|irn|srnic')
  done
  kill -KILL $serves "$asks"
  wait
  say "@mode $mode"
}

. /cases
say @kernel
dmesg | tail -n 60 >/dev/ttyS1
say @done
# The line is written before the power goes.
sleep 1
poweroff -f
