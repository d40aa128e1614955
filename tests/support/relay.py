"""A cable between two devices on which each frame takes a while: `relay.py DELAY_S DEVICE DEVICE`.

The kernel delays frames by `tc qdisc add ... netem`, which is not part of every kernel.
"""

from __future__ import annotations

import collections
import select
import socket
import sys
import time

_PACKET, _HEADERS, _SENT_BY_US = 263, 15, 4
"""SOL_PACKET; PACKET_VNET_HDR, with which large segments and open checksums pass unchanged; PACKET_OUTGOING."""
_LONGEST = 70_000

delay_s, devices = float(sys.argv[1]), sys.argv[2:]
ends = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW) for _ in devices]
for end, device in zip(ends, devices, strict=True):
    end.setsockopt(_PACKET, _HEADERS, 1)
    end.bind((device, 3))  # ETH_P_ALL
waiting: collections.deque[tuple[float, socket.socket, bytes]] = collections.deque()
sys.stdout.write("ready\n")
sys.stdout.flush()
while True:
    until = waiting[0][0] - time.monotonic() if waiting else None
    readable, _, _ = select.select(ends, [], [], None if until is None else max(0.0, until))
    for end in readable:
        frame, (_, _, kind, _, _) = end.recvfrom(_LONGEST)
        if kind != _SENT_BY_US:
            waiting.append((time.monotonic() + delay_s, ends[1 - ends.index(end)], frame))
    while waiting and waiting[0][0] <= time.monotonic():
        _, other, frame = waiting.popleft()
        other.send(frame)
