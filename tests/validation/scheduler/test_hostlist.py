"""Slurm's host lists: what `scontrol show hostnames` would print, and nothing that it refuses."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.errors import InputError
from validation.scheduler.hostlist import MAX_HOSTS, expand, hosts_of


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("host1", ["host1"]),
        ("host1,host2", ["host1", "host2"]),
        ("host[1-3]", ["host1", "host2", "host3"]),
        ("host[1-2,7]", ["host1", "host2", "host7"]),
        ("gpu[008-011]", ["gpu008", "gpu009", "gpu010", "gpu011"]),
        ("node[1-2],gpu[08-09]", ["gpu08", "gpu09", "node1", "node2"]),
        ("rack[0-1]node[00-01]", ["rack0node00", "rack0node01", "rack1node00", "rack1node01"]),
        ("tux[1-2]-ib", ["tux1-ib", "tux2-ib"]),
        ("n1.example.org", ["n1.example.org"]),
        ("host1,host1,host[1-2]", ["host1", "host2"]),
        ("", []),
    ],
)
def test_lists(text, hosts):
    assert sorted(expand(text)) == hosts


@pytest.mark.parametrize(
    "text",
    [
        "host[1-3",
        "host[3-1]",
        "@all",
        "host[1-9]!host3",
        "host*",
        "host[0-8/2]",
        "a b",
        "h[1]x[",
        "$(x)",
    ],
)
def test_what_slurm_would_not_write_is_refused(text):
    with pytest.raises(InputError, match="no host list"):
        expand(text)


@pytest.mark.parametrize("text", ["n[0-99999999999]", "a[0-999]b[0-999]", "n[0-60000],m[0-60000]"])
def test_lists_that_would_fill_the_memory_are_refused(text):
    with pytest.raises(InputError, match=f"more than {MAX_HOSTS:,}"):
        expand(text)


@settings(deadline=None)
@given(st.lists(st.integers(0, 9999), min_size=1, max_size=40), st.integers(1, 5))
def test_every_number_comes_back_with_its_padding(numbers, width):
    text = "n[" + ",".join(f"{number:0{width}d}" for number in numbers) + "]"
    assert sorted(expand(text)) == sorted({f"n{number:0{width}d}" for number in numbers})


def test_whole_names_are_the_sites_hosts_where_it_has_them(site):
    lists = ["host[1-2].example.org,host3", "login1.example.org"]
    assert set(hosts_of(site, lists)) == {"host1", "host2", "host3", "login1.example.org"}
