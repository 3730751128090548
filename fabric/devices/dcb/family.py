"""A NIC family that is set with ``dcb``; drivers add their congestion control to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from fabric.counters import Counter
from fabric.devices.base import Capabilities, Outputs, ReadError, TargetPort
from fabric.devices.dcb import counters
from fabric.devices.dcb.counters import CounterNames
from fabric.devices.dcb.facts import Facts, commands, facts_of
from fabric.devices.dcb.fit import fit
from fabric.devices.dcb.reading import Reader
from fabric.devices.dcb.settings import (
    CLASSES,
    DSCP_MAP,
    PFC,
    RATES,
    TOGETHER,
    Dcb,
    Item,
    classes_text,
    common_items,
    dcb_commands,
    dcb_of,
    ets_command,
    ets_of,
    map_lines,
    map_text,
    pfc_command,
    pfc_text,
    rates_command,
    rates_lines,
    rates_of,
    rates_text,
    rdma_cm_items,
)
from fabric.devices.dcb.traits import Traits
from fabric.devices.nic import NicReading, Setting, SettingChange
from fabric.qos import PortQos, Remark


class DcbFamily:
    """Implements :class:`fabric.devices.nic.NicFamily` over ``dcb``.

    A driver's own family overrides the methods whose names begin with ``own_``.
    """

    def __init__(self, traits: Traits, names: CounterNames) -> None:
        self.traits = traits
        self._names = names

    @property
    def name(self) -> str:
        """The name used in ``fabric.yaml``."""
        return self.traits.name

    def capabilities(self, port: TargetPort) -> Capabilities:  # noqa: ARG002
        """What the driver is known to hold."""
        return Capabilities(max_lossless_classes=self.traits.max_lossless, notes=self.traits.notes)

    def read_commands(self, port: TargetPort) -> tuple[str, ...]:
        """Eight commands, and those that the driver adds."""
        return (*commands(port, self.own_paths(port)), *self.own_commands(port))

    def counter_commands(self, port: TargetPort) -> tuple[str, ...]:
        """``ethtool -S``, PFC frames, and the RDMA device's counters."""
        return counters.commands(port)

    def read(self, port: TargetPort, outputs: Outputs) -> NicReading:
        """What the port does. Raises ReadError where an output makes no sense."""
        facts = self._facts(port, outputs)
        reader = Reader(port, facts, self.traits)
        state = reader.port()
        remarks = tuple(reader.remarks)
        if state is not None:
            state, unread, more = self.own_read(port, facts, outputs, state)
            reader.unread += [f"{port.name}: {fact}" for fact in unread]
            remarks += more
        known = self._known(facts, outputs, port)
        settings = self.settings(state) if state else ()
        return NicReading(
            port=state,
            unread=tuple(reader.unread),
            settings=tuple(setting for setting in settings if setting.name in known),
            shown=frozenset(known),
            model=reader.model,
            driver=reader.driver,
            remarks=remarks,
        )

    def read_counters(
        self, device: str, port: TargetPort, outputs: Outputs
    ) -> tuple[tuple[Counter, ...], tuple[str, ...]]:
        """Counters in the schema of ``fabric.counters``, and what is missing and why."""
        return counters.read(device, port, outputs, self._names)

    def normalise(self, port: PortQos) -> PortQos:
        """What the driver can express: see :mod:`fabric.devices.dcb.fit`."""
        return self.own_fit(fit(port, self.traits))

    def settings(self, port: PortQos) -> tuple[Setting, ...]:
        """Everything that the intent owns on this port, in the order of setting it."""
        dcb = dcb_of(port, self.traits)
        ets = ets_of(port)
        before, after = self.own_items(port)
        return (
            *map(_setting, before),
            *map(_setting, common_items(port)),
            Setting(
                DSCP_MAP,
                map_text(dcb.entries, self.traits.unmapped),
                tuple(map_lines(port.name, dcb.entries or ())),
            ),
            _setting(Item(CLASSES, classes_text(ets), (ets_command(port.name, ets),))),
            _setting(
                Item(
                    PFC,
                    pfc_text(port.pfc_priorities),
                    (pfc_command(port.name, port.pfc_priorities),),
                )
            ),
            Setting(
                RATES, rates_text(rates_of(port)), tuple(rates_lines(port.name, rates_of(port)))
            ),
            *map(_setting, after),
            *map(_setting, _cm_items(port)),
        )

    def changes(
        self, port: TargetPort, outputs: Outputs, intended: PortQos
    ) -> tuple[SettingChange, ...]:
        """From what the outputs show to what is intended, in the order of doing it.

        Raises ReadError where an output is missing without which nothing can be planned.
        """
        facts = self._facts(port, outputs)
        needed = [c for c in facts.missing if " dcbx " not in c]
        if needed:
            lacking = ", ".join(f"`{command}`" for command in needed)
            raise ReadError(f"{port.name}: nothing can be planned without the output of {lacking}")
        live = self.read(port, outputs).port
        if live is None:
            raise ReadError(f"{port.name}: `dcb` shows nothing of it")
        return self._changes(port, outputs, facts, live, intended)

    def known_changes(
        self, port: TargetPort, outputs: Outputs, intended: PortQos
    ) -> tuple[SettingChange, ...]:
        """The same of the settings whose values the outputs show, whatever is missing."""
        facts = self._facts(port, outputs)
        live = self.read(port, outputs).port
        if live is None:
            return ()
        known = self._known(facts, outputs, port)
        changes = self._changes(port, outputs, facts, live, intended)
        if facts.apps is None:
            # Which classes the priorities want follows from the map: PFC goes alone.
            lines = (pfc_command(port.name, intended.pfc_priorities),)
            changes = tuple(
                dataclasses.replace(c, commands=lines if c.name == PFC else ())
                if c.name in TOGETHER
                else c
                for c in changes
            )
        return tuple(change for change in changes if change.name in known)

    def _changes(
        self,
        port: TargetPort,
        outputs: Outputs,
        facts: Facts,
        live: PortQos,
        intended: PortQos,
    ) -> tuple[SettingChange, ...]:
        known = self._known(facts, outputs, port)
        held = {item.name: item for item in self._items(live) if item.name in known}
        before, after = self.own_items(intended)
        found = [_change(held, item) for item in (*before, *common_items(intended))]
        found += self._dcb_changes(facts, intended)
        found.append(_rates_change(facts, intended))
        found += [_change(held, item) for item in (*after, *_cm_items(intended))]
        unknown = self.own_lacking(facts)
        return tuple(c for c in found if c is not None and c.name not in unknown)

    def _facts(self, port: TargetPort, outputs: Outputs) -> Facts:
        facts = facts_of(port, outputs, self.own_paths(port))
        driver = facts.driver.get("driver", "")
        if self.traits.driver and driver and driver != self.traits.driver:
            raise ReadError(
                f"{port.name}: its driver is {driver}; a NIC of family {self.name} has "
                f"{self.traits.driver}. Name the right family in fabric.yaml"
            )
        return facts

    def _items(self, port: PortQos) -> tuple[Item, ...]:
        """Every setting but the three of ``dcb`` that go together."""
        before, after = self.own_items(port)
        return (*before, *common_items(port), *after, *_cm_items(port))

    def _dcb_changes(self, facts: Facts, intended: PortQos) -> list[SettingChange | None]:
        """The three of ``TOGETHER``; the first that changes carries all commands."""
        now, then = Dcb(facts.apps, facts.ets, facts.pfc), dcb_of(intended, self.traits)
        unmapped = self.traits.unmapped
        values = {
            DSCP_MAP: (map_text(now.entries, unmapped), map_text(then.entries, unmapped)),
            CLASSES: (
                classes_text(now.ets) if now.ets else None,
                classes_text(then.ets) if then.ets else "",
            ),
            PFC: (pfc_text(now.pfc or ()), pfc_text(then.pfc or ())),
        }
        differ = [name for name in TOGETHER if values[name][0] != values[name][1]]
        changes: list[SettingChange | None] = []
        for name in differ:
            forth: tuple[str, ...] = ()
            back: tuple[str, ...] = ()
            if name == differ[0]:
                forth = dcb_commands(facts.interface, now, then)
                back = dcb_commands(facts.interface, then, now, back=True)
            changes.append(SettingChange(name, *values[name], forth, back))
        return changes

    def _known(self, facts: Facts, outputs: Outputs, port: TargetPort) -> frozenset[str]:
        """Names of the settings whose live value the outputs show."""
        shown = {
            "link pause": facts.pause is not None,
            "mtu": facts.mtu is not None,
            DSCP_MAP: facts.apps is not None,
            CLASSES: facts.ets is not None,
            PFC: facts.pfc is not None,
            RATES: facts.max_rates_bps is not None,
            "rdma_cm TOS": facts.rdma_cm_tos is not None,
        }
        own = self.own_known(port, facts, outputs)
        return own.union(name for name, is_shown in shown.items() if is_shown)

    def own_paths(self, port: TargetPort) -> tuple[str, ...]:  # noqa: ARG002
        """Files and folders that the driver has of its own."""
        return ()

    def own_commands(self, port: TargetPort) -> tuple[str, ...]:  # noqa: ARG002
        """Commands that only this driver needs."""
        return ()

    def own_known(self, port: TargetPort, facts: Facts, outputs: Outputs) -> frozenset[str]:  # noqa: ARG002
        """Names of the driver's own settings whose live value is shown."""
        return frozenset(("dcbx",)) if facts.dcbx is not None else frozenset()

    def own_read(
        self,
        port: TargetPort,  # noqa: ARG002
        facts: Facts,  # noqa: ARG002
        outputs: Outputs,  # noqa: ARG002
        state: PortQos,
    ) -> tuple[PortQos, tuple[str, ...], tuple[Remark, ...]]:
        """The port completed, what is not shown, and what only the driver can find fault with."""
        return state, (), ()

    def own_fit(self, port: PortQos) -> PortQos:
        """What the driver can express of DCQCN and traffic classes: nothing."""
        nic = port.nic
        if nic is not None:
            nic = dataclasses.replace(nic, dcqcn=None, verbs_traffic_class=None)
        return dataclasses.replace(port, nic=nic)

    def own_items(self, port: PortQos) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
        """The driver's own settings, before and after those of ``dcb``."""
        return dcbx_items(port), ()

    def own_lacking(self, facts: Facts) -> frozenset[str]:  # noqa: ARG002
        """Names of settings that this host's driver does not offer."""
        return frozenset()


def _rates_change(facts: Facts, intended: PortQos) -> SettingChange | None:
    """Limits of classes; None where the driver knows none, or they are as intended."""
    now, then = facts.max_rates_bps, rates_of(intended)
    if now is None or now == then:
        return None
    forth, back = (
        (rates_command(facts.interface, rates_bps, facts.version),) for rates_bps in (then, now)
    )
    return SettingChange(RATES, rates_text(now), rates_text(then), forth, back)


def dcbx_items(port: PortQos) -> tuple[Item, ...]:
    """DCBX left to the operating system; nothing gives it back to the firmware that way."""
    if port.nic is None or port.nic.dcbx == "off":
        return ()
    set_host = (f"dcb dcbx set dev {port.name} host ieee",)
    return (Item("dcbx", port.nic.dcbx, set_host if port.nic.dcbx == "os" else ()),)


def _cm_items(port: PortQos) -> tuple[Item, ...]:
    return rdma_cm_items(port.nic.rdma_device, port.nic.rdma_cm_tos) if port.nic else ()


def _setting(item: Item) -> Setting:
    lines = []
    for command in item.commands:
        plain = not any(mark in command for mark in ("&&", "||", ">", "{"))
        failed = f'fail "{item.name} cannot be set"'
        lines.append(f"run {command}" if plain else f"{{ {command}; }} || {failed}")
    if item.needs:
        said = f'say "left as it is, this driver does not offer it: {item.name}"'
        inner = (f"    {line}" for line in lines)
        lines = [f"if [ -e {item.needs} ]; then", *inner, "else", f"    {said}", "fi"]
    return Setting(item.name, item.value, tuple(lines))


def _change(held: Mapping[str, Item], then: Item) -> SettingChange | None:
    """None where the port holds this already."""
    now = held.get(then.name)
    if now is None:
        return SettingChange(then.name, None, then.value, then.commands, ())
    if now.value == then.value:
        return None
    return SettingChange(then.name, now.value, then.value, then.commands, now.commands)
