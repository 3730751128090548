"""Changes on a switch that somebody has made and not saved: what saving ours would keep.

A switch saves all that it runs, or nothing. So a change of ours is refused where its
running configuration already differs from the one that it boots with, in more than
what our own change sets or takes away.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fabric.devices.base import DeviceModule
from fabric.devices.hashes import lines_of
from fabric.devices.sections import Section, parse
from fabric.errors import InputError
from fabric.provisioning.plan import DevicePlan
from fabric.qos import DeviceQos

# What shows the configuration to boot with, and what shows the one that runs.
_SHOWN = {
    "show startup-config": "show running-config",
    "show startup-configuration": "show running-configuration",
    "display saved-configuration": "display current-configuration",
    "cat /etc/sonic/config_db.json": "show runningconfiguration all",
    "nv config show -r startup -o json": "nv config show -r applied -o json",
}
_SECRET = re.compile(
    r"\b(password|secret|community|key(?:-string|-chain)?|passphrase|md5|cipher|auth\S*|token)\b.*",
    re.IGNORECASE,
)
PENDING = "its last commit waits to be confirmed by whoever made it"
# So many lines are quoted in a sentence.
_QUOTED = 4
DIFFERENT = "what it runs is not what it would boot with"


def unsaved_lines(module: DeviceModule, now: DeviceQos, outputs: Mapping[str, str]) -> list[str]:
    """What the switch runs and would not boot with (``+``), or the reverse (``-``).

    Empty where all is saved, and for hosts; where it is not known, see ``saved`` of
    ``now``. Each line has those that it stands below before it. What looks like a
    secret is left out of it.
    """
    return [_SECRET.sub(r"\1 ...", line) for line in _differing(module, now, outputs)]


def others_unsaved(
    order: DevicePlan, module: DeviceModule, now: DeviceQos, outputs: Mapping[str, str]
) -> list[str]:
    """Of :func:`unsaved_lines` those that this order's own change does not settle."""
    shown = unsaved_lines(module, now, outputs)
    if not shown or shown[0] in (PENDING, DIFFERENT):
        return shown
    # After the change all of the first are there, and none of the second.
    ours: Counter[str] = Counter()
    # What a switch did before us may be nothing that an intent asks for.
    with contextlib.suppress(InputError):
        ours |= Counter(_flat(module.render(order.intended).replace("nv set ", "")))
    taken = [line[1:] for line in order.change.diff.splitlines() if line[:1] in "- "]
    ours |= Counter(_flat("\n".join(taken)))
    exact = _differing(module, now, outputs)
    return [line for line, full in zip(shown, exact, strict=True) if full[2:] not in ours]


def told_unsaved(lines: Sequence[str]) -> str:
    """These lines in a sentence, as many as one can read."""
    more = f" and {len(lines) - _QUOTED} more" if len(lines) > _QUOTED else ""
    return f"somebody has changed it and not saved that: {'; '.join(lines[:_QUOTED])}{more}"


def _differing(module: DeviceModule, now: DeviceQos, outputs: Mapping[str, str]) -> list[str]:
    if now.kind != "switch" or now.saved is not False:
        return []
    if not module.safety_net("none").save:
        return [PENDING]
    for startup, running in _SHOWN.items():
        if startup in outputs and running in outputs:
            boots, runs = Counter(_flat(outputs[startup])), Counter(_flat(outputs[running]))
            lines = [f"+ {line}" for line in runs - boots] + [f"- {line}" for line in boots - runs]
            return lines or [DIFFERENT]
    return [DIFFERENT]


def _flat(text: str) -> Iterator[str]:
    """Every line of a configuration, with those that it stands below before it."""
    if text.lstrip().startswith(("{", "[")):
        data, _ = json.JSONDecoder().raw_decode(text.lstrip())
        # NVUE's configuration is the member ``set`` of one object among others.
        for part in data if isinstance(data, list) else [data]:
            yield from _leaves(part.get("set", part) if isinstance(data, list) else part, "")
        return
    body = "\n".join(lines_of(text)) if "\n#\n" in text else text
    for section in parse(body):
        yield from _below(section, "")


def _below(section: Section, above: str) -> Iterator[str]:
    path = f"{above} / {section.text}" if above else section.text
    yield path
    for child in section.children:
        yield from _below(child, path)


def _leaves(value: object, above: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for name, below in value.items():
            yield from _leaves(below, f"{above} {name}".strip())
    elif value or not above:
        yield f"{above} {value}".strip()
    else:
        yield above
