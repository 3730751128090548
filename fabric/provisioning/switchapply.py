"""Changing one switch: checkpoint, lines, read-back, and the way back.

Nothing is saved before what was sent has been read back and found right.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabric.compare import differences
from fabric.devices.base import DeviceModule, ReadError, SafetyNet
from fabric.errors import DeviceError, RejectedError, UnreachableError
from fabric.provisioning.outcome import NOTHING_SENT, Outcome
from fabric.provisioning.plan import DevicePlan, mismatches, order_taken_back, remains_of
from fabric.provisioning.unsaved import others_unsaved, told_unsaved, unsaved_lines
from fabric.qos import DeviceQos, canonical_sha256
from fabric.reach.access import Access
from fabric.reach.switchssh import (
    EXEC_TIMEOUT_S,
    NotEnteredError,
    RefusedLineError,
    SwitchSession,
    switch_session,
)

# A switch whose session broke may be back soon: its own roll-back is worth a wait.
RECONNECT_ATTEMPTS = 3
RECONNECT_WAIT_S = 2.0


@dataclass(frozen=True)
class _Switch:
    plan: DevicePlan
    access: Access
    module: DeviceModule
    net: SafetyNet
    # That of the run which broke off and is taken back, where this is one.
    net_of_broken: SafetyNet | None
    save_unsaved: bool

    @property
    def name(self) -> str:
        return self.plan.device

    def read(self, session: SwitchSession) -> DeviceQos:
        return self.look(session)[0]

    def look(self, session: SwitchSession) -> tuple[DeviceQos, dict[str, str]]:
        """The switch's state, and what it was read from."""
        outputs = self._outputs(session)
        return self._parsed(outputs), outputs

    def wrong(self, session: SwitchSession) -> list[str]:
        """Where the switch is not as it should be after its change."""
        plan, outputs = self.plan, self._outputs(session)
        now = self._parsed(outputs)
        if plan.half_of is None:
            return mismatches(now, plan.intended)
        try:
            return remains_of(self.module, order_taken_back(plan), now, outputs)
        except ReadError as error:
            raise DeviceError(self.name, "understand what it printed", str(error)) from error

    def _outputs(self, session: SwitchSession) -> dict[str, str]:
        outputs = {}
        for command in self.module.read_commands(self.plan.target):
            answer = session.show(command)
            if not self.module.is_error(answer):
                outputs[command] = answer
        return outputs

    def _parsed(self, outputs: Mapping[str, str]) -> DeviceQos:
        try:
            return self.module.read(self.plan.target, outputs)
        except ReadError as error:
            raise DeviceError(self.name, "understand what it printed", str(error)) from error

    def execute_if_taken(self, session: SwitchSession, commands: Sequence[str]) -> None:
        """Each of these commands; one that is refused had nothing to do."""
        for command in commands:
            with contextlib.suppress(RejectedError):
                self.execute(session, (command,))

    def execute(self, session: SwitchSession, commands: Sequence[str]) -> None:
        for command in commands:
            answer = session.show(command, timeout_s=EXEC_TIMEOUT_S)
            if self.module.is_error(answer):
                raise RejectedError(self.name, command, answer.strip())


def apply_to_switch(
    plan: DevicePlan,
    access: Access,
    module: DeviceModule,
    run_id: str,
    *,
    broken_run: str = "",
    check: bool = False,
    save_unsaved: bool = False,
) -> Outcome:
    """Bring one switch to what its plan intends, or leave it as it was.

    ``broken_run`` is the run whose change ``plan.half_of`` is half of. ``check``
    changes nothing and says what would be done. A switch on which somebody else has
    changed something without saving it is left alone, unless ``save_unsaved``: saving
    ours would save that too. Every error of the device ends in an Outcome: none is
    raised.
    """
    net_of_broken = module.safety_net(broken_run) if plan.half_of is not None else None
    net = module.safety_net(run_id)
    switch = _Switch(plan, access, module, net, net_of_broken, save_unsaved)
    try:
        with switch_session(switch.name, access, module.netmiko_type, fresh=True) as session:
            if net_of_broken is not None and not check:
                switch.execute_if_taken(session, net_of_broken.abandon)
            standing = _standing(switch, session)
            if standing is not None:
                return standing
            if check:
                return Outcome("would-change")
            switch.execute(session, switch.net.prepare)
            end = _attempt(switch, session)
            if isinstance(end, NotEnteredError):
                switch.execute_if_taken(session, switch.net.release)
    except UnreachableError as error:
        return Outcome("failed", f"{NOTHING_SENT}: {error.message}", unreachable=True)
    except DeviceError as error:
        return Outcome("failed", f"{NOTHING_SENT}: {error.message}")
    if isinstance(end, NotEnteredError):
        others = "somebody else may be configuring it; once they have committed or discarded, again"
        return Outcome("failed", f"{NOTHING_SENT}: {end.message}; {others}")
    return _undo(switch, end) if isinstance(end, DeviceError) else Outcome("done", end)


def _standing(switch: _Switch, session: SwitchSession) -> Outcome | None:
    """How it ends where nothing is to be sent: it is as it should be, or not as planned."""
    plan = switch.plan
    if switch.net_of_broken is not None:
        # Its lines take away what is ours alone, whatever else is on the switch by now.
        if switch.wrong(session):
            return None
        switch.execute_if_taken(session, switch.net_of_broken.release)
        return Outcome("unchanged", "as it was before the run")
    now, outputs = switch.look(session)
    if canonical_sha256((now,)) == plan.read_sha256:
        if plan.change.empty:
            return Outcome("unchanged")
        found = others_unsaved(plan, switch.module, now, outputs)
        if found and not switch.save_unsaved:
            return Outcome("failed", f"{NOTHING_SENT}: {told_unsaved(found)}")
        return None
    if not mismatches(now, plan.intended):
        return Outcome("unchanged")
    changed = "; ".join(differences(plan.before, now)[:5])
    return Outcome("failed", f"{NOTHING_SENT}: it has changed since it was planned: {changed}")


def _attempt(switch: _Switch, session: SwitchSession) -> DeviceError | str:
    """Send, read back, confirm and save. What went wrong, or what is to be said of it."""
    plan, net = switch.plan, switch.net
    half = plan.half_of is not None
    try:
        # Half a change was not saved: what is not saved once it is gone is somebody else's.
        unsaved = half and not switch.save_unsaved and switch.read(session).saved is False
        session.configure(
            plan.change.commands,
            switch.module.is_error,
            # Of half a change, half of the way back has nothing to remove.
            insist=not half,
            edit=net.edit,
        )
        wrong = switch.wrong(session)
        if wrong:
            return DeviceError(switch.name, "read back what was configured", "; ".join(wrong[:5]))
        switch.execute(session, net.confirm)
        left = unsaved_lines(switch.module, *switch.look(session)) if unsaved else []
        switch.execute(session, () if unsaved else net.save)
    except DeviceError as error:
        return error
    with contextlib.suppress(UnreachableError):
        for used in (net, switch.net_of_broken):
            switch.execute_if_taken(session, used.release if used else ())
    return f"not saved: {told_unsaved(left)}" if left else ""


def _undo(switch: _Switch, cause: DeviceError) -> Outcome:
    """Put back what was there: by the vendor's way first, then line by line."""
    sent = f", after {cause.sent} lines" if isinstance(cause, RefusedLineError) else ""
    why = f"{cause.message}{sent}"
    lost = isinstance(cause, UnreachableError)
    left: DeviceError | None = None
    for attempt in range(RECONNECT_ATTEMPTS):
        if attempt:
            time.sleep(RECONNECT_WAIT_S)
        try:
            with switch_session(
                switch.name, switch.access, switch.module.netmiko_type, fresh=True
            ) as session:
                wrong = _put_back(switch, session)
                if not wrong:
                    switch.execute_if_taken(session, switch.net.release)
        except UnreachableError as error:
            left = error
            continue
        except DeviceError as error:
            left = error
            break
        if not wrong:
            return Outcome("rolled-back", why, unreachable=lost)
        return Outcome(
            "failed", f"{why}; rolling back left: {'; '.join(wrong[:5])}", unreachable=lost
        )
    by_hand = "; ".join(switch.net.undo or switch.plan.change.rollback[:3])
    return Outcome(
        "failed",
        f"{why}; it may hold a part of the change, since rolling back failed too: "
        f"{left.message if left else ''}. By hand: {by_hand}",
        unreachable=lost,
    )


def _put_back(switch: _Switch, session: SwitchSession) -> list[str]:
    """What still differs from before after both ways back; empty where nothing does."""
    # Refused, or none there: the lines below are the other way back.
    with contextlib.suppress(RejectedError):
        switch.execute(session, switch.net.undo)
    if _as_before(switch, session):
        return []
    # After half a change, half of the way back has nothing to remove.
    session.configure(
        switch.plan.change.rollback,
        switch.module.is_error,
        insist=False,
        edit=switch.net.undo_edit,
    )
    if _as_before(switch, session):
        return []
    return mismatches(switch.read(session), switch.plan.before)


def _as_before(switch: _Switch, session: SwitchSession) -> bool:
    """Whether the switch does what it did, and will do so after a reboot."""
    now = switch.read(session)
    if canonical_sha256((now,)) != switch.plan.read_sha256:
        return False
    if now.saved is False and switch.plan.before.saved:
        # What failed was said to fail, and was saved all the same.
        switch.execute(session, switch.net.save)
    return True
