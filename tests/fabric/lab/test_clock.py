"""Emulated processors are told how fast the clock runs that they share with the machine."""

import platform

import pytest

from fabric.lab import qemu
from fabric.lab.clock import tsc_khz

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="a lab needs x86-64")


def test_the_frequency_is_measured_alike_every_time():
    first, second = tsc_khz(), tsc_khz()
    assert 100_000 < first < 20_000_000
    assert abs(first - second) < first / 1000


def test_only_an_emulated_kernel_is_told_the_frequency():
    words = qemu._append("tcg").split()
    (told,) = [word for word in words if word.startswith("tsc_early_khz=")]
    assert abs(int(told.partition("=")[2]) - tsc_khz()) < tsc_khz() / 100
    assert "tsc=reliable" in words
    assert "tsc" not in qemu._append("kvm")
