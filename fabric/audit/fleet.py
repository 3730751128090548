"""What most devices of a kind are, and which ones are not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from fabric.qos import DeviceQos

MIN_DEVICES = 3


def odd_ones(states: Mapping[str, DeviceQos]) -> dict[str, tuple[str, ...]]:
    """For each device that is unlike most of its model, in words, what is unlike.

    Three devices or more of one system and model, and more than half of them
    alike: otherwise there is no saying which is the odd one. A host's kernel does
    not count.
    """
    groups: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for name, state in states.items():
        if state.model and (firmware := _firmware(state)):
            groups[state.kind, state.os, state.model][name] = firmware
    odd: dict[str, tuple[str, ...]] = {}
    for (_, _, model), members in groups.items():
        usual, count = Counter(members.values()).most_common(1)[0]
        if len(members) < MIN_DEVICES or 2 * count <= len(members):
            continue
        for name, firmware in members.items():
            if firmware != usual:
                odd[name] = (f"{model} runs {firmware}; {count} of {len(members)} run {usual}",)
    return odd


def _firmware(state: DeviceQos) -> str:
    parts = state.firmware.split(", ")
    return ", ".join(part for part in parts if not part.startswith("Linux "))
