"""What perftest says when it fails, and what to do about it.

Messages as in perftest 4.5-0.17 and later (src/*.c). Causes come before their
consequences: the end that lost its peer says so too, and is not to blame.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from validation.probes.hosts.instrument import Complaint
from validation.probes.hosts.ports import FIRST_PORT, LAST_PORT

_LINK = "check `rdma link` and the driver of this NIC there"
_FABRIC = (
    "nothing answers on the RDMA path: look at MTU, routes and neighbours of both NICs, and at "
    "drops between them"
)
_KNOWN: tuple[tuple[str, str], ...] = (
    (
        r"^sh: .*not found$|command not found|failed to run command",
        "install the package perftest there",
    ),
    (r"error while loading shared libraries", "install rdma-core and ibverbs-providers there"),
    (r"Unable to find the Infiniband/RoCE device|Did not detect devices|IB device .*not", _LINK),
    (r"Couldn't get device attributes|Couldn't get context|Couldn't allocate context", _LINK),
    (
        r"[Cc]ouldn't allocate MR|[Ff]ailed to create MR|Cannot allocate memory|"
        r"Couldn't allocate memory",
        "raise the limit of locked memory there (`ulimit -l unlimited`, LimitMEMLOCK of sshd)",
    ),
    (
        r"Couldn't listen to port|Failed to bind socket|Address already in use|"
        r"rdma_bind_addr failed|rdma_listen failed",
        "another program took the port meanwhile: run validate again",
    ),
    (r"Requested mtu is higher than active mtu", "raise the MTU of the interface there"),
    (
        r"Incompatibility issue with GID types|[Cc]an't [Rr]ead GID|Failed to get GID",
        "make both NICs use a RoCE v2 GID (`rdma link`, gid_attrs/types)",
    ),
    (r"Failed to modify QP.*INIT", "the port of this NIC is down or its P_Key is wrong"),
    (
        r"Failed to modify QP|Unable to Connect the HCA",
        "the peer's GID is not reachable from there: check addresses, routes and `ip neigh`",
    ),
    (r"Failed status 12\b", f"retransmissions ran out: {_FABRIC}"),
    (r"Failed status 13\b", "the receiver was not ready for too long: look at its load"),
    (r"Failed status \d+|Completion with error", _FABRIC),
    (r"ADDR_ERROR|rdma_resolve_addr failed|rdma_resolve_route failed", _FABRIC),
    (
        r"margin is not long enough",
        "measure for longer: `paisoar validate --seconds`",
    ),
    (r"Can't produce a report", "its clock cannot be read: fix the CPU's frequency governor"),
    (r"older than 5\.70|[Vv]ersion mismatch", "install the same release of perftest on all hosts"),
    (
        r"Couldn't connect to|Connection refused|No route to host|Connection timed out|"
        r"unable to connect",
        f"let TCP ports {FIRST_PORT} to {LAST_PORT} through between the NICs' addresses",
    ),
    (r"Did not get Message for 120 Seconds", _FABRIC),
    (
        r"(?:read|write) (?:to|from|remote)|exchange data|Couldn't send local address|"
        r"init the socket connection|set up socket connection|"
        r"close connection|Failed to sync",
        "the other end broke off: see what it said",
    ),
)
_TABLE = tuple((re.compile(pattern), advice) for pattern, advice in _KNOWN)

# Said of a test that works all the same.
_NOISE = re.compile(
    r"Conflicting CPU frequency|CPU Frequency is not max|relaxed ordering|disable_pcie_relaxed|"
    r"BW peak won't be measured|Large message requested|inaccurate results|"
    r"run with the port active mtu|Changing to active mtu"
)


def complaints(text: str) -> Iterator[Complaint]:
    """Every line that says why a test failed, with what to do."""
    for line in text.splitlines():
        said = line.strip()
        if not said or _NOISE.search(said):
            continue
        for rank, (pattern, advice) in enumerate(_TABLE):
            if pattern.search(said):
                yield Complaint(rank, said, advice)
                break


def noise(text: str) -> tuple[str, ...]:
    """Warnings that do not spoil a test, each once."""
    return tuple(dict.fromkeys(s for line in text.splitlines() if _NOISE.search(s := line.strip())))
