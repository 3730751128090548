"""The stand-in against the distribution's pyverbs, where that is to be had. Needs no device."""

import inspect
from pathlib import Path

import numpy as np
import pytest

from fabric.errors import ToolError
from tests import fake_verbs
from tests.fake_verbs import CONSTANTS
from trainer.collective.engine import address_of
from trainer.collective.settings import NetworkSettings
from trainer.collective.transports.verbs_device import Device, load_verbs

pytest.importorskip(
    "pyverbs.device",
    reason="no pyverbs here: apt-get install python3-pyverbs, .venv/bin/python "
    "scripts/link_pyverbs.py",
)


@pytest.fixture(scope="module")
def verbs():
    return load_verbs()


def test_constants_are_those_of_the_stand_in(verbs):
    assert {name: int(verbs.names[name]) for name in CONSTANTS} == CONSTANTS


def test_requests_take_what_we_give_them_and_are_linked(verbs):
    memory = np.zeros(64, np.uint8)
    piece = verbs.SGE(address_of(memory), 64, 7)
    chain = [
        verbs.SendWR(
            wr_id=3,
            opcode=verbs.IBV_WR_RDMA_WRITE_WITH_IMM,
            num_sge=1,
            sg=[piece],
            imm_data=5,
            send_flags=verbs.IBV_SEND_SIGNALED | verbs.IBV_SEND_INLINE,
        )
        for _ in range(2)
    ]
    chain[0].set_wr_rdma(11, address_of(memory))
    chain[0].next_wr = chain[1]
    assert (chain[0].wr_id, chain[0].imm_data) == (3, 5)
    assert verbs.RecvWR(num_sge=1, sg=[piece]).num_sge == 1
    for refused in (lambda: chain[0].next_wr, lambda: verbs.RecvWR(num_sge=0)):
        with pytest.raises(verbs.PyverbsUserError):
            refused()
    with pytest.raises(TypeError):
        chain[0].next_wr = None


def test_a_way_to_a_peer_is_described_as_we_describe_it(verbs):
    attributes = verbs.QPAttr(port_num=1)
    route = verbs.GlobalRoute(
        dgid=verbs.GID("0000:0000:0000:0000:0000:ffff:0a00:0001"),
        sgid_index=2,
        hop_limit=64,
        traffic_class=106,
    )
    attributes.ah_attr = verbs.AHAttr(gr=route, is_global=1, port_num=1)
    for number, name in enumerate((*fake_verbs._FOR_RTR[1:], *fake_verbs._FOR_RTS), 1):
        setattr(attributes, name, number)
        assert getattr(attributes, name) == number
    capacity = verbs.QPCap(
        max_send_wr=9, max_recv_wr=8, max_send_sge=2, max_recv_sge=1, max_inline_data=16
    )
    assert capacity.max_inline_data == 16


def test_errors_have_the_stand_ins_shape(verbs):
    error = verbs.PyverbsRDMAError("Failed", 12)
    assert error.error_code == fake_verbs.PyverbsRDMAError("Failed", 12).error_code == 12
    assert isinstance(error, verbs.PyverbsError)
    assert issubclass(verbs.PyverbsUserError, verbs.PyverbsError)


def test_classes_have_every_method_of_the_stand_in(verbs):
    for kind in ("CQ", "QP", "MR", "PD", "SendWR", "RecvWR", "QPAttr"):
        stand_in = getattr(fake_verbs, kind)
        used = [
            name
            for name, value in vars(stand_in).items()
            if not name.startswith("_")
            and (inspect.isfunction(value) or isinstance(value, property))
            and name not in ("push", "holds", "following")
        ]
        assert [name for name in used if not hasattr(verbs.names[kind], name)] == []


@pytest.mark.skipif(Path("/sys/class/infiniband").exists(), reason="this machine has RDMA")
def test_a_machine_without_rdma_is_told_so(verbs):
    with pytest.raises(ToolError, match="no RDMA device"):
        Device(verbs, NetworkSettings())
