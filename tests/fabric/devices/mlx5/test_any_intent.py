"""Generated intents on an emulated ConnectX: set, read back as the same, taken back."""

import dataclasses

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fabric.devices.dcb.test_on_emulated_hosts import intents
from tests.fabric.devices.linux.shells import Quick, Shell


@st.composite
def connectx(draw, raw):
    """As other NICs are asked for, with thresholds and MTU of one cable, and DCQCN always."""
    port = draw(intents("mlx5", raw))
    (lossless,) = port.pfc_priorities or (3,)
    dcqcn = dataclasses.replace(raw.nic.dcqcn, np_priorities=(lossless,), rp_priorities=(lossless,))
    # An intent always says which traffic class verbs are to use.
    tclass = port.nic.verbs_traffic_class or raw.nic.verbs_traffic_class
    return dataclasses.replace(
        port,
        mtu_bytes=raw.mtu_bytes,
        ingress_buffers=tuple(
            dataclasses.replace(raw.ingress_buffers[0], priority=priority)
            for priority in port.pfc_priorities
        ),
        nic=dataclasses.replace(port.nic, dcqcn=dcqcn, verbs_traffic_class=tclass),
    )


def test_any_intent_is_reached_from_any_state(tmp_path):
    shell = Shell(tmp_path, "mlx5", nics=1)
    quick, raw = Quick(shell), shell.intended.ports[0]

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(connectx(raw))
    def reached(port):
        wanted = quick.family.normalise(port)
        assert quick.family.normalise(wanted) == wanted
        before, changes = quick.read(), quick.changes(wanted)
        quick.apply(changes)
        quick.undo(changes)
        assert quick.read() == before
        quick.apply(changes)
        live = quick.read()
        nic = dataclasses.replace(live.port.nic, persistent=True)
        assert dataclasses.replace(live.port, nic=nic) == wanted
        assert quick.changes(wanted) == ()

    try:
        reached()
    finally:
        shell.namespace.close()
