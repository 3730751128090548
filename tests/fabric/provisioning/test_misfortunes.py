"""Whatever befalls a switch at whatever moment of its change: how it ended is true.

A change is carried out once undisturbed, and what was sent counted. Then one
misfortune strikes at one of these steps, over a real SSH session on an emulated
switch, and what the outcome says is compared with what is on the switch.
"""

from __future__ import annotations

import pytest

from fabric.devices.registry import module_of
from fabric.errors import UnreachableError
from fabric.provisioning.plan import mismatches, order_back
from fabric.provisioning.switchapply import apply_to_switch
from fabric.reach.access import access_to
from fabric.reach.switchssh import SwitchSession, close_switches
from fabric.twin.eos import EmulatedSwitch as EosSwitch
from fabric.twin.junos import EmulatedSwitch as JunosSwitch
from fabric.twin.nvue import EmulatedSwitch as NvueSwitch
from fabric.twin.nxos import EmulatedSwitch as NxosSwitch
from fabric.twin.sonic import EmulatedSwitch as SonicSwitch
from tests.fabric.twin.shell.over_ssh import RUN, shell_site

SWITCHES = {
    "nxos": NxosSwitch,
    "eos": EosSwitch,
    "junos": JunosSwitch,
    "sonic": SonicSwitch,
    "nvue": NvueSwitch,
}
NAME = "leaf1"
# What a failed outcome may say is left, and nothing else.
LEFT = ("may hold a part of the change", "rolling back left")
AS_IT_WAS = ("nothing was sent", "changed since it was planned")


class Bench:
    """One switch, its order, and the steps of its change."""

    def __init__(self, net, monkeypatch):
        self.net, self.monkeypatch = net, monkeypatch
        self.order = net.order(NAME)
        self.before = self.text()
        self.strike_at, self.strike, self.sent = None, None, []
        show = SwitchSession.show

        def counted(session, text, **options):
            step = len(self.sent)
            self.sent.append(text)
            if step == self.strike_at:
                return self.strike(lambda text: show(session, text, **options), text)
            return show(session, text, **options)

        monkeypatch.setattr(SwitchSession, "show", counted)
        monkeypatch.setattr("fabric.provisioning.switchapply.RECONNECT_WAIT_S", 0.01)

    @property
    def switch(self):
        return self.net.switches[NAME]

    def text(self):
        return self.switch.running_text()

    def call(self, work):
        async def done():
            return work()

        return self.net.servers.call(done())

    def reset(self):
        """The switch as it was delivered, with nothing pending."""
        close_switches()
        self.strike_at, self.sent = None, []

        def renew():
            self.switch._stored.running = self.switch._stored.startup = self.before
            self.switch.checkpoints.clear()
            self.power_cycle()

        self.call(renew)

    def power_cycle(self):
        """Boot from the startup configuration; what was pending is forgotten."""
        switch = self.switch
        switch.replace_config(switch.startup)
        switch.save()
        type(switch).__init__(switch, NAME, switch.folder, switch.site, switch.peers)

    def apply(self, strike_at=None, strike=None):
        self.strike_at, self.strike, self.sent = strike_at, strike, []
        outcome = self.net.apply(self.order)
        self.strike_at = None
        if strike == self.dies:
            servers = self.net.servers
            servers.add(NAME, self.switch.serve, port=servers.ports[NAME])
        return outcome

    # --- Misfortunes.

    def dies(self, send, text):
        """And comes back once the run has given it up."""
        self.net.servers.kill(NAME)
        return send(text)

    def drops(self, send, text):
        self.net.servers.drop(NAME)
        return send(text)

    def answers_too_late(self, send, text):
        send(text)
        raise UnreachableError(NAME, text, "no prompt came back within 30 s")

    def rejects(self, send, _text):
        return send("nonsense")

    def reboots(self, send, text):
        self.call(self.power_cycle)
        self.net.servers.drop(NAME)
        return send(text)

    def is_edited(self, send, text):
        self.call(lambda: self.switch.break_("pfc-off", self.port))
        return send(text)

    @property
    def port(self):
        return self.order.target.ports[0].name


@pytest.fixture(params=SWITCHES)
def bench(request, tmp_path, monkeypatch):
    with shell_site(tmp_path, monkeypatch, request.param, SWITCHES[request.param]) as net:
        yield Bench(net, monkeypatch)


def _steps(sent, lines, reads):
    """The ends of every stretch of lines and of readings, and all between them."""
    kinds = ["line" if s.strip() in lines else "read" if s in reads else s for s in sent]
    ends = {
        number
        for number, kind in enumerate(kinds)
        if number in (0, len(sent) - 1) or kinds[number - 1] != kind or kinds[number + 1] != kind
    }
    among = [number for number, kind in enumerate(kinds) if kind == "line"]
    return sorted({*ends, *among[:: max(1, len(among) // 3)]})


def _judge(bench, outcome, what):
    now = bench.text()
    state = str(outcome)
    if outcome.state == "done":
        read = bench.net.read().states[NAME]
        assert mismatches(read, bench.order.intended) == [], (what, state)
        assert read.saved is not False, (what, state)
        return
    if outcome.state in ("unchanged", "untouched", "rolled-back"):
        assert now == bench.before, (what, state)
        return
    assert outcome.state == "failed", (what, state)
    if any(text in outcome.detail for text in AS_IT_WAS):
        assert now == bench.before or "is_edited" in what, (what, state)
        return
    assert any(text in outcome.detail for text in LEFT), (what, state)
    _taken_back(bench, what)


def _taken_back(bench, what):
    """What is left of the change goes, and the switch is as it was."""
    states = bench.net.read().states
    back = apply_to_switch(
        order_back(bench.order, states[NAME], broke_off=True),
        access_to(bench.net.site, NAME),
        module_of(bench.net.site, NAME),
        "20261201-0500-cd34",
        broken_run=RUN,
    )
    assert back.state in ("done", "unchanged"), (what, str(back))
    assert bench.text() == bench.before, (what, str(back))


@pytest.mark.slow
@pytest.mark.parametrize(
    "misfortune", ["dies", "drops", "answers_too_late", "rejects", "reboots", "is_edited"]
)
def test_the_outcome_is_true(bench, misfortune):
    assert bench.apply().state == "done"
    sent = list(bench.sent)
    lines = {line.strip() for line in bench.order.change.commands}
    reads = module_of(bench.net.site, NAME).read_commands(bench.order.target)
    for step in _steps(sent, lines, reads):
        bench.reset()
        outcome = bench.apply(step, getattr(bench, misfortune))
        bench_text = f"{misfortune} at step {step} of {len(sent)}: {sent[step]!r}"
        if misfortune == "is_edited" and outcome.state != "done":
            _edited(bench, outcome, bench_text)
        elif misfortune != "is_edited":
            _judge(bench, outcome, bench_text)


def _edited(bench, outcome, what):
    """Somebody else's edit is never lost, or is named."""
    assert outcome.state in ("failed", "rolled-back"), (what, str(outcome))
    assert outcome.detail, what
