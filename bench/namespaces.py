"""Nodes on one machine, joined at once: network namespaces around a hub.

    with network(2, "job-") as at:
        subprocess.run([*at(0), "ping", "-c1", address(1)])

delayed_link.py has nodes that are far apart. Needs root and `ip` (apt install iproute2).
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator

HUB = "10.79.0.254"
DEVICE = "net"  # The device of each node.


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def address(node: int) -> str:
    return f"10.79.0.{node + 1}"


@contextlib.contextmanager
def network(nodes: int, prefix: str) -> Iterator[Callable[[int], list[str]]]:
    """Gives what runs a command in node i; node `nodes` is the hub."""
    names = [f"{prefix}{i}" for i in range(nodes)] + [f"{prefix}h"]
    hub = names[-1]
    try:
        for name in names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", hub, "link", "add", "hub", "type", "bridge")
        run("ip", "-n", hub, "addr", "add", f"{HUB}/24", "dev", "hub")
        run("ip", "-n", hub, "link", "set", "hub", "up")
        for i, name in enumerate(names[:-1]):
            run("ip", "-n", name, "link", "add", DEVICE, "type", "veth", "peer", "name", f"to{i}",
                "netns", hub)
            run("ip", "-n", name, "addr", "add", f"{address(i)}/24", "dev", DEVICE)
            run("ip", "-n", name, "link", "set", DEVICE, "up")
            run("ip", "-n", hub, "link", "set", f"to{i}", "master", "hub", "up")
        yield lambda i: ["ip", "netns", "exec", names[i]]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
