"""A stand-in for the kernel of a switch: takes the commands, answers in the tools' formats.

It knows no more than what the modules say and ask. The formats are those of the
recorded output of iproute2 6.1 beside this module; DCB's and devlink's are those of
iproute2's sources. ``test_on_linux`` puts the same changes to the real tools.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict


class Kernel:
    """Ports of a switch. Commands that it does not know are errors of the test."""

    def __init__(self, *ports: str, shaped: bool = False) -> None:
        self.mtu = dict.fromkeys(ports, 1500)
        root = {"kind": "noqueue", "handle": "0:", "root": True, "options": {}}
        if shaped:
            shaper = {"rate": 2500000, "burst": "20000b/1", "lat": 392000}
            root = {"kind": "tbf", "handle": "9:", "root": True, "options": shaper}
        self.qdiscs: dict[str, list[dict]] = {port: [dict(root)] for port in ports}
        self.filters: dict[str, dict[int, dict]] = {port: {} for port in ports}
        self.app: dict[str, set[tuple[int, int]]] = {port: set() for port in ports}
        self.pfc = {port: [False] * 8 for port in ports}
        self.prio_buffer = {port: [0] * 8 for port in ports}
        self.sizes = {port: [0] * 8 for port in ports}
        self.bind = {port: dict.fromkeys(range(8), (0, 8)) for port in ports}
        self.pause = dict.fromkeys(ports, "off")

    def state(self) -> dict:
        """Everything that can be set, for comparing."""
        kept = {k: v for k, v in vars(self).items() if k != "qdiscs"}
        qdiscs = {p: sorted(rows, key=repr) for p, rows in self.qdiscs.items()}
        return json.loads(json.dumps({**kept, "qdiscs": qdiscs}, default=sorted))

    def run(self, commands) -> None:
        """Each of these lines, as the shell would be given it."""
        for command in commands:
            assert len(command) < 400, command
            words = command.split()
            getattr(self, f"_{words[0]}_{words[1].strip('-').lower()}")(words)

    def answers(self, commands) -> dict[str, str]:
        """The outputs of these show commands."""
        return {command: self._show(command.split()) for command in commands}

    def _ip_link(self, words):
        assert words[2:4] == ["set", "dev"]
        self.mtu[words[4]] = int(words[6])

    def _ethtool_a(self, words):
        self.pause[words[2]] = words[-1]

    def _tc_qdisc(self, words):
        verb, port = words[2], words[4]
        rows = self.qdiscs[port]
        if words[-1] == "clsact":
            if verb == "add":
                rows.append({"kind": "clsact", "handle": "ffff:", "parent": "ffff:fff1"})
            else:
                rows[:] = [row for row in rows if row["kind"] != "clsact"]
                self.filters[port].clear()
            return
        place = {"root": True} if words[5] == "root" else {"parent": words[6]}
        rest = words[6:] if words[5] == "root" else words[7:]
        gone = next((r for r in rows if place.items() <= r.items()), None)
        if verb == "change":
            assert gone is not None
        if gone is not None:
            self._forget(rows, gone, keep=verb == "change" or "handle" in rest)
        if verb == "del":
            assert gone is not None
            assert gone["handle"] != "0:"
            if "root" in place:
                rows.append({"kind": "noqueue", "handle": "0:", "root": True, "options": {}})
            return
        handle, rest = (rest[1], rest[2:]) if rest[0] == "handle" else ("8001:", rest)
        options = getattr(self, f"_{rest[0]}")(rest[1:])
        rows.append({"kind": rest[0], "handle": handle, **place, "options": options})

    def _forget(self, rows, gone, *, keep):
        rows.remove(gone)
        if not keep:
            rows[:] = [r for r in rows if not r.get("parent", "").startswith(gone["handle"])]

    def _bfifo(self, words):
        return {"limit": int(words[1])}

    def _ets(self, words):
        text = " ".join(words)
        match = re.fullmatch(
            r"bands (\d+) strict (\d+)(?: quanta ([\d ]+))? priomap ([\d ]+)", text
        )
        quanta = [max(int(q), 256) for q in (match[3] or "").split()]
        priomap = [int(band) for band in match[4].split()]
        assert int(match[1]) == int(match[2]) + len(quanta) <= 16
        assert len(priomap) == 16
        shares = {"quanta": quanta} if quanta else {}
        strict = {"strict": int(match[2])} if int(match[2]) else {}
        return {"bands": int(match[1]), **strict, **shares, "priomap": priomap}

    def _red(self, words):
        flags = {f: f in words for f in ("ecn", "harddrop", "adaptive", "nodrop")}
        value = dict(zip(words[::2], words[1::2], strict=False))
        low, packet, burst = (int(value[k]) for k in ("min", "avpkt", "burst"))
        assert burst + 1 - low / packet >= 1, "tc: failed to calculate EWMA constant"
        probability = float(f"{round(float(value['probability']) * 2**32) / 2**32:g}")
        sizes = {k: int(value[k]) for k in ("limit", "min", "max")}
        return {**sizes, **flags, "ewma": 1, "probability": probability}

    def _tc_filter(self, words):
        verb, port, pref = words[2], words[4], int(words[7])
        if verb == "del":
            del self.filters[port][pref]
            return
        assert any(r["kind"] == "clsact" for r in self.qdiscs[port])
        match = re.fullmatch(
            r"protocol (ip|ipv6) handle 1 flower ip_tos (0x[0-9a-f]+)/0xfc "
            r"action skbedit priority ([0-7])",
            " ".join(words[8:]),
        )
        keys = {"ip_tos": int(match[2], 16), "ip_tos_mask": "fc", "eth_type": f"{match[1]}v4"[:4]}
        action = {"order": 1, "kind": "skbedit", "priority": f":{match[3]}"}
        head = {"protocol": match[1], "pref": pref, "kind": "flower", "chain": 0}
        self.filters[port][pref] = {**head, "options": {"keys": keys, "actions": [action]}}

    def _dcb_app(self, words):
        entries = {tuple(map(int, word.split(":"))) for word in words[6:]}
        assert words[5] == "dscp-prio"
        if words[2] == "add":
            self.app[words[4]] |= entries
        else:
            assert entries <= self.app[words[4]]
            self.app[words[4]] -= entries

    def _dcb_pfc(self, words):
        assert words[6] == "all:off"
        on = {int(word[0]) for word in words[7:]}
        assert not on or self.pause[words[4]] == "off", "mlxsw: pause frames already enabled"
        self.pfc[words[4]] = [priority in on for priority in range(8)]

    def _dcb_buffer(self, words):
        table = self.prio_buffer if words[5] == "prio-buffer" else self.sizes
        port = words[4]
        if table is self.sizes:
            assert any(r["kind"] == "ets" for r in self.qdiscs[port]), "mlxsw: not in TC mode"
        for word in words[6:]:
            index, value = word.split(":")
            table[port][int(index)] = int(value)

    def _devlink_sb(self, words):
        assert words[2:5] == ["tc", "bind", "set"]
        self.bind[words[5]][int(words[7])] = (int(words[11]), int(words[13]))

    def _show(self, words):
        command = " ".join(words)
        if command == "ip -j -d link show":
            return json.dumps(
                [{"ifname": p, "mtu": m, "operstate": "UP"} for p, m in self.mtu.items()]
            )
        if command == "tc -j -d qdisc show":
            rows = [{**row, "dev": p} for p, several in self.qdiscs.items() for row in several]
            return json.dumps(rows)
        if command.startswith("tc -j filter"):
            found = sorted(self.filters[words[5]].items())
            return json.dumps(
                [row for _, f in found for row in ({k: f[k] for k in f if k != "options"}, f)]
            )
        if words[0] == "dcb":
            return json.dumps(self._dcb_show(words[3], words[6]))
        if words[:2] == ["ethtool", "-a"]:
            state = self.pause[words[2]]
            return f"Pause parameters for {words[2]}:\nRX:\t{state}\nTX:\t{state}\n"
        if "bind" in words:
            return json.dumps({"tc_bind": {p: _bound(rows) for p, rows in self.bind.items()}})
        return ""

    def _dcb_show(self, kind, port):
        if kind == "app":
            entries = [list(entry) for entry in sorted(self.app[port])]
            return {"dscp_prio": entries} if entries else {}
        if kind == "pfc":
            return {"pfc_cap": 8, "macsec_bypass": False, "delay": 0, "prio_pfc": self.pfc[port]}
        if kind == "buffer":
            total = sum(self.sizes[port])
            sizes = {"prio_buffer": self.prio_buffer[port], "buffer_size": self.sizes[port]}
            return {**sizes, "total_size": total}
        return {"willing": False, "ets_cap": 8, "tc_bw": [0] * 8, "tc_tsa": ["strict"] * 8} | {
            "prio_tc": [0] * 8
        }


def _bound(rows):
    found = defaultdict(list)
    for tc, (pool, threshold) in rows.items():
        entry = {"sb": 0, "tc": tc, "type": "ingress", "pool": pool, "threshold": threshold}
        found["all"].append(entry)
        found["all"].append(entry | {"type": "egress", "pool": 4})
    return found["all"]
