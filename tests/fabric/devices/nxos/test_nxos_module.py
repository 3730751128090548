from dataclasses import replace

import pytest

from fabric.devices.nxos import MODULE
from fabric.devices.registry import SWITCHES, load
from tests.fabric.devices.nxos.listings import listing, target


def test_the_entry_point_finds_the_module():
    module = load(SWITCHES, "nxos")
    assert module is MODULE
    assert (module.os, module.netmiko_type) == ("nxos", "cisco_nxos")


@pytest.mark.parametrize(
    "answer",
    [
        "                      ^\n% Invalid command at '^' marker.\n",
        "% Incomplete command at '^' marker.",
        "% Ambiguous command at '^' marker.",
        "% Invalid number, range is (1:7) at '^' marker.",
        "              ^\nInvalid range at '^' marker.\n",
        "% Permission denied for the role",
        "ERROR: policy-map type queuing X does not exist\n",
        "\nError: something\n",
        "Unable to perform the action due to incompatibility:  Module 1 returned status "
        '"ACLQOS_ERROR: Invalid Class id : Max class reached"\n',
        "Syntax error while parsing 'feature qos'\n",
        "Rollback failed.\n",
    ],
)
def test_refusals_are_seen(answer):
    assert MODULE.is_error(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Enter configuration commands, one per line. End with CNTL/Z.\n",
        "[########################################] 100%\nCopy complete.\n",
        "Warning: Edge port type (portfast) should only be enabled on ports connected to a host\n",
        "2025 Mar  4 10:00:00 leaf-1 %$ VDC-1 %$ %ETHPORT-5-IF_UP: Interface Ethernet1/1 is up\n",
        "Rollback completed successfully.\n",
    ],
)
def test_other_answers_are_no_refusals(answer):
    assert not MODULE.is_error(answer)


@pytest.mark.parametrize("name", ["interface", "pfc", "queuing-new", "lldp", "running-config"])
def test_listings_are_no_refusals(name):
    assert not MODULE.is_error(listing(name))


def test_the_safety_net_is_a_checkpoint_of_the_run():
    net = MODULE.safety_net("20250304T101112/a b")
    name = "paisoar-20250304T101112-a-b"
    assert net.prepare == (f"checkpoint {name}",)
    assert net.undo == (f"rollback running-config checkpoint {name}",)
    assert net.save == ("copy running-config startup-config",)
    assert net.release == (f"no checkpoint {name}",)
    assert len(MODULE.safety_net("x" * 200).prepare[0].split()[-1]) <= 75


def test_limits_are_known_for_one_model_and_open_for_the_others():
    assert MODULE.capabilities(replace(target(), model="N9K-C93180YC-EX")).min_xoff_bytes == 12480
    for model in ("N9K-C93180YC-FX", "N9K-C9336C-FX2", "N9K-UNHEARD-OF"):
        found = MODULE.capabilities(replace(target(), model=model))
        assert (found.min_xoff_bytes, found.max_lossless_classes) == (None, None)
