"""``rdma link``: verbs devices and their network interfaces (iproute2)."""

from __future__ import annotations

import sys

from .files import Host


def main(host: Host, arguments: list[str]) -> int:
    """Run the program; its exit status."""
    words = [word for word in arguments if not word.startswith("-")]
    as_json = any(word in ("-j", "--json", "-jp", "-pj") for word in arguments)
    if any(word in ("-V", "-Version") for word in arguments):
        print("rdma utility, iproute2-6.1.0")
        return 0
    if not words or words[0] not in ("link", "dev"):
        sys.stderr.write(
            f'Unknown object "{words[0]}", try "rdma help".\n' if words else "Usage: rdma OBJECT\n"
        )
        return 1
    kind, rest = words[0], [word for word in words[1:] if word not in ("show", "list")]
    nics = host.nics()
    if rest:
        nics = [nic for nic in nics if rest[0] in (nic.facts["rdma"], f"{nic.facts['rdma']}/1")]
        if not nics:
            sys.stderr.write(f"Wrong device name\n{rest[0]}: No such device\n")
            return 1
    entries = []
    for index, nic in enumerate(nics):
        up = nic.state().admin_up[0]
        state, physical = ("ACTIVE", "LINK_UP") if up else ("DOWN", "DISABLED")
        entry: dict[str, object] = {"ifindex": index, "ifname": nic.facts["rdma"]}
        if kind == "link":
            entry.update(port=1, state=state, physical_state=physical, netdev=nic.name)
            entry["netdev_index"] = int(nic.facts["index"])
        else:
            entry.update(node_type="ca", fw=nic.facts["firmware"].split()[0])
        entries.append(entry)
    if as_json:
        import json

        print(json.dumps(entries, separators=(",", ":")))
        return 0
    for entry in entries:
        if kind == "link":
            print(
                f"link {entry['ifname']}/1 state {entry['state']} "
                f"physical_state {entry['physical_state']} netdev {entry['netdev']} "
            )
        else:
            print(f"{entry['ifindex']}: {entry['ifname']}: node_type ca fw {entry['fw']} ")
    return 0
