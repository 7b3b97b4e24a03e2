"""Nodes on one machine, as far apart as asked: namespaces joined by links of ours.

    with nodes(3, delay=0.002, bytes_per_second=50e6) as enter:
        subprocess.run([*enter(0), "ping", "-c1", address(1)])

Each node is a network namespace with a TUN device; a process of ours carries the
packets between them. Packets leave a node at this many bytes a second, one after the
other, and arrive so much later; nothing is lost. The kernel's own netem would do, but
is not everywhere. Needs root, `ip` and /dev/net/tun.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import os
import select
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

DEVICE = "leat0"
MTU = 60_000  # Large, so that Python keeps up.
_TUNSETIFF = 0x400454CA
_TUN_WITHOUT_HEADER = 0x1001
_CLONE_NEWNET = 0x40000000


def address(node: int) -> str:
    return f"10.79.0.{node + 1}"


def open_device(namespace: str) -> int:
    """A TUN device in that namespace, which this process reads and writes."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        if libc.setns(there, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"entering {namespace}")
        try:
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), _TUN_WITHOUT_HEADER))
        finally:
            libc.setns(home, _CLONE_NEWNET)
    finally:
        os.close(home)
        os.close(there)
    return device


def carry(devices: list[int], delay: float, bytes_per_second: float) -> None:
    """Until it is ended. Packets are IPv4, for an `address` of the nodes."""
    line_is_free = [0.0] * len(devices)
    due: list[tuple[float, int, int, bytes]] = []  # When, in which order, for whom.
    count = 0
    while True:
        wait = max(due[0][0] - time.monotonic(), 0) if due else None
        readable, _, _ = select.select(devices, [], [], wait)
        for device in readable:
            sender = devices.index(device)
            with contextlib.suppress(BlockingIOError):
                for _ in range(16):
                    packet = os.read(device, MTU + 64)
                    receiver = packet[19] - 1
                    if packet[0] >> 4 != 4 or not 0 <= receiver < len(devices):
                        continue
                    sent = max(line_is_free[sender], time.monotonic()) + len(packet) / bytes_per_second
                    line_is_free[sender] = sent
                    count += 1
                    heapq.heappush(due, (sent + delay, count, receiver, packet))
        while due and due[0][0] <= time.monotonic():
            _, _, receiver, packet = heapq.heappop(due)
            with contextlib.suppress(BlockingIOError):
                os.write(devices[receiver], packet)


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


@contextlib.contextmanager
def nodes(count: int, delay: float, bytes_per_second: float) -> Iterator[Callable[[int], list[str]]]:
    """Gives what stands in front of a command to run it on node i."""
    names = [f"leat{os.getpid()}n{node}" for node in range(count)]
    carrier = None
    try:
        for name in names:
            run("ip", "netns", "add", name)
        carrier = subprocess.Popen(
            [sys.executable, __file__, str(delay), str(bytes_per_second), *names], stdout=subprocess.PIPE, text=True
        )
        if carrier.stdout is None or carrier.stdout.readline() != "up\n":
            raise RuntimeError("the links between nodes did not come up: root and /dev/net/tun are needed")
        for node, name in enumerate(names):
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "addr", "add", f"{address(node)}/24", "dev", DEVICE)
            run("ip", "-n", name, "link", "set", DEVICE, "mtu", str(MTU), "txqueuelen", "20000", "up")
        yield lambda node: ["ip", "netns", "exec", names[node]]
    finally:
        if carrier is not None:
            carrier.kill()
            carrier.wait()
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


if __name__ == "__main__":
    opened = [open_device(name) for name in sys.argv[3:]]
    print("up", flush=True)
    carry(opened, float(sys.argv[1]), float(sys.argv[2]))
