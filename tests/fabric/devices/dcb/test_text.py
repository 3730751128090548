"""What ``dcb`` prints: JSON, text, several releases, and what is none of it.

Shapes: iproute2 6.1 dcb/dcb_{pfc,ets,app,dcbx}.c; the text of PFC and APP as printed in
Enizaksoy/lab-baremetal-gpu-cluster, SETUP_GUIDE_STEP_BY_STEP.md.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.devices.base import ReadError
from fabric.devices.dcb import text

PFC_TEXT = """\
pfc-cap 8 macsec-bypass off delay 0
prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off
"""
PFC_JSON = (
    '{"pfc_cap":8,"macsec_bypass":false,"delay":0,'
    '"prio_pfc":[false,false,false,true,false,false,false,false]}\n'
)
ETS_TEXT = """\
willing on ets-cap 8 cbs off
tc-bw 0:50 1:0 2:0 3:50 4:0 5:0 6:0 7:0
pg-bw 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0
tc-tsa 0:ets 1:ets 2:ets 3:ets 4:ets 5:ets 6:strict 7:vendor
prio-tc 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7
reco-tc-bw 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0
"""


@pytest.mark.parametrize("shown", [PFC_TEXT, PFC_JSON, f"[{PFC_JSON}]"])
def test_pfc_reads_the_same_from_text_and_json(shown):
    assert text.pfc("dcb pfc", shown) == (3,)


def test_ets_of_text_is_that_of_json():
    ets = text.ets("dcb ets", ETS_TEXT)
    assert ets.willing
    assert ets.tsa == ("ets",) * 6 + ("strict", "vendor")
    assert ets.percent == (50, 0, 0, 50, 0, 0, 0, 0)
    shown = {
        "willing": True, "ets_cap": 8, "cbs": False, "tc_bw": list(ets.percent),
        "tc_tsa": list(ets.tsa), "prio_tc": list(range(8)), "reco_prio_tc": [0] * 8,
    }  # fmt: skip
    assert text.ets("dcb ets", json.dumps(shown)) == ets


@pytest.mark.parametrize(
    "shown",
    [
        "dscp-prio AF31:3 CS6:6 1:0 \ndgram-port-prio 4791:3 \n",
        "dscp-prio 26:3 48:6 1:0 \n",
        '{"dscp_prio":[[26,3],[48,6],[1,0]],"dgram_port_prio":[[4791,3]]}',
    ],
)
def test_the_app_table_knows_symbolic_dscps_and_leaves_ports_out(shown):
    assert text.dscps("dcb app", shown) == ((26, 3), (48, 6), (1, 0))


def test_an_empty_app_table_has_no_entries():
    assert text.dscps("dcb app", "") == text.dscps("dcb app", "{}\n") == ()


@pytest.mark.parametrize("shown", ["host ieee \n", '{"host":true,"ieee":true}'])
def test_dcbx_flags(shown):
    assert text.dcbx("dcb dcbx", shown) == {"host", "ieee"}
    assert text.dcbx("dcb dcbx", '{"lld_managed":true}') == {"lld-managed"}


def test_frames_of_pfc_by_priority():
    shown = PFC_JSON.replace("}", ',"requests":[0,0,0,7,0,0,0,0],"indications":[0,0,0,9,0,0,0,0]}')
    assert text.pfc_frames("dcb", shown) == ((0, 0, 0, 7, 0, 0, 0, 0), (0, 0, 0, 9, 0, 0, 0, 0))
    assert text.pfc_frames("dcb", PFC_JSON) is None


@pytest.mark.parametrize(
    ("read", "shown"),
    [
        (text.pfc, "Error: Operation not supported"),
        (text.pfc, '{"prio_pfc":[true]}'),
        (text.ets, PFC_TEXT),
        (text.dscps, '{"dscp_prio":[[64,3]]}'),
        (text.dscps, "dscp-prio CS9:1"),
        (text.pfc, "{nonsense"),
    ],
)
def test_anything_else_is_refused_with_its_command(read, shown):
    with pytest.raises(ReadError, match="dcb x"):
        read("dcb x", shown)


@given(st.text(alphabet='{}[]":,prio-tc_0123onf \n', max_size=200))
def test_no_text_breaks_a_parser_otherwise_than_by_readerror(shown):
    for read in (text.pfc, text.ets, text.dscps, text.dcbx, text.pfc_frames):
        try:
            read("dcb", shown)
        except ReadError:
            continue
