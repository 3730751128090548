"""A host that was read in part: what can be told of it is mended, and nothing else."""

import dataclasses

import pytest

from fabric.audit import audit
from fabric.devices.linux.module import FILES
from fabric.devices.registry import expected_qos
from tests.fabric.devices.linux.shells import HOST, Shell

BREAK = {
    "mlx5": "mlnx_qos -i ens1f0 --pfc 0,0,0,0,0,0,0,0",
    "irdma": "dcb pfc set dev ens1f0 prio-pfc all:off",
    "bnxt": "dcb pfc set dev ens1f0 prio-pfc all:off",
}
# Outputs that say nothing of PFC.
OTHERS = {
    "mlx5": ("ethtool -a", "ip -j link", "grep -rH . /sys/class/net/ens1f0/ecn", FILES),
    "irdma": ("dcb -j app", "ethtool -a", "ip -j link", FILES),
    "bnxt": ("dcb -j app", "ethtool -i", FILES),
}


@pytest.fixture(params=BREAK)
def shell(request, tmp_path):
    shell = Shell(tmp_path, request.param, nics=1)
    shell.apply(shell.change())
    shell.run(BREAK[request.param])
    shell.run("ip link set dev ens1f0 mtu 1500")
    shell.family = request.param
    yield shell
    shell.namespace.close()


def findings(shell, outputs):
    state = shell.module.read(shell.target, outputs)
    intended = {HOST: expected_qos(shell.site, HOST)}
    report = audit(shell.site, {HOST: state}, intended, outputs={HOST: outputs})
    return {finding.rule: finding for finding in report.findings}


def test_each_missing_output_leaves_the_fixes_of_what_others_show(shell):
    whole = shell.outputs()
    expected = findings(shell, whole)["pfc"].fix
    assert any("pfc" in line for line in expected)
    for start in OTHERS[shell.family]:
        outputs = {c: text for c, text in whole.items() if not c.startswith(start)}
        assert len(outputs) < len(whole), start
        fix = findings(shell, outputs)["pfc"].fix
        # Without its map nobody knows which classes the priorities want: PFC goes alone.
        alone = expected[-1:] if start == "dcb -j app" else expected
        assert fix == alone, start
    least = {c: text for c, text in whole.items() if not c.startswith(OTHERS[shell.family])}
    fix = findings(shell, least)["pfc"].fix
    assert fix
    assert set(fix) <= set(expected)
    shell.run("set -e\n" + "\n".join(fix))
    assert shell.read().port("ens1f0").pfc_priorities == (3,)


def test_no_fix_sets_what_was_not_read(shell):
    outputs = {c: t for c, t in shell.outputs().items() if not c.startswith(("ip -j", FILES))}
    outputs = {c: t for c, t in outputs.items() if "/sys/class/net/ens1f0/address" not in c}
    found = findings(shell, outputs)
    assert "mtu" not in found
    assert not any("mtu" in line for one in found.values() for line in one.fix)
    assert not any("systemctl" in line for one in found.values() for line in one.fix)


def test_what_a_host_is_not_seen_to_hold_is_no_part_of_a_change_by_what_is_known(shell):
    whole = shell.outputs()
    assert shell.module.known_change(shell.target, {}, shell.intended).commands == ()
    known = shell.module.known_change(shell.target, whole, shell.intended)
    assert set(known.commands) <= set(shell.change().commands)
    assert dataclasses.replace(known, commands=()).empty
