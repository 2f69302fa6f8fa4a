#!/bin/sh
# Packets of a device are handed to a CPU by RPS. The device is one end of a veth pair; the other end, in a network namespace that
# the script makes, sends datagrams.
#
#     docs/examples/cpus/rps.sh [CPU] [SECONDS]
. "$(dirname "$0")/common.sh"

namespace=dptrace-rps
device=dptrace-rps0
trap 'ip link delete "$device" 2> /dev/null; ip netns delete "$namespace" 2> /dev/null' EXIT INT TERM
ip netns add "$namespace" && ip link add "$device" type veth peer name peer0 netns "$namespace" || fail "no veth pair"
ip address add 192.0.2.1/30 dev "$device" && ip link set "$device" up || fail "no address"
ip -n "$namespace" address add 192.0.2.2/30 dev peer0 && ip -n "$namespace" link set peer0 up || fail "no address"
# Nobody need answer for the address.
ip -n "$namespace" neighbour add 192.0.2.1 lladdr "$(cat "/sys/class/net/$device/address")" dev peer0 || fail "no neighbour"

# The mask has groups of 32 bits, the highest first.
mask=$(printf '%x' $((1 << (cpu % 32))))
group=$((cpu / 32))
while [ "$group" -gt 0 ]; do
    mask=$mask,00000000
    group=$((group - 1))
done
echo "$mask" > "/sys/class/net/$device/queues/rx-0/rps_cpus"
echo "packets of $device are handed to CPU $cpu (rps_cpus: $(cat "/sys/class/net/$device/queues/rx-0/rps_cpus")), for $seconds s"
before=$(raised NET_RX)
sent=/sys/class/net/$device/statistics/rx_packets
ip netns exec "$namespace" timeout "$seconds" python3 -c '
import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    try:
        sender.sendto(b"x" * 64, ("192.0.2.1", 9))
    except OSError:
        pass
'
echo "packets: $(cat "$sent"); soft interrupts NET_RX on CPU $cpu: $(($(raised NET_RX) - before))"
