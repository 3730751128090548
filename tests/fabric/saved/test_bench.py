"""The bench measures what it says, on a pod and at full size; time is the command's to tell."""

import pytest

from fabric.errors import InputError
from fabric.saved.bench import MAX_MIB, measure


def test_a_pod_is_rendered_read_and_found_to_be_right():
    row = measure(1)
    assert (row.switches, row.nics, row.findings) == (8 + 4 + 4, 256, 0)
    assert row.ports == row.switches * 64
    assert row.files == 256 * 13 + row.switches * 6
    assert row.host_pairs == 256 * 255
    assert row.to_json()["verdict"] == "PASS"


@pytest.mark.parametrize("pods", [0, 33])
def test_other_sizes_are_refused(pods):
    with pytest.raises(InputError):
        measure(pods)


@pytest.mark.slow
def test_512_switches_and_8192_nics_are_read_without_a_finding_in_less_than_two_gigabytes():
    row = measure()
    assert (row.switches, row.ports, row.nics) == (512, 512 * 64, 8192)
    assert row.findings == 0
    assert row.peak_mib < MAX_MIB
