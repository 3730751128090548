"""``systemctl`` of an emulated host; texts and statuses of systemd 252 (Debian 12)."""

import pytest

UNIT = """\
[Unit]
Description=RoCE settings of %i

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/etc/paisoar/roce-%i.sh

[Install]
WantedBy=multi-user.target
"""
SCRIPT = "#!/bin/sh\nmlnx_qos -i ens1f0 --pfc 0,0,0,1,0,0,0,0\nip link set ens1f0 mtu 9000\n"


@pytest.fixture
def unit(out):
    out(
        f"mkdir -p /etc/paisoar; cat > /etc/systemd/system/paisoar-roce@.service <<'E'\n{UNIT}E\n"
        f"cat > /etc/paisoar/roce-ens1f0.sh <<'E'\n{SCRIPT}E\n"
        "chmod 755 /etc/paisoar/roce-ens1f0.sh; systemctl daemon-reload"
    )
    return "paisoar-roce@ens1f0.service"


def test_a_missing_unit_is_named_as_systemd_does(shell):
    done = shell("systemctl is-enabled paisoar-roce@ens1f0.service")
    assert done.returncode == 1
    assert done.stderr == (
        "Failed to get unit file state for paisoar-roce@ens1f0.service: No such file or directory\n"
    )
    assert shell("systemctl start nothing").returncode == 5
    assert "LoadState=not-found\n" in shell("systemctl show nothing").stdout


def test_an_instance_is_enabled_disabled_and_asked_about(shell, unit):
    assert shell(f"systemctl is-enabled {unit}").stdout == "disabled\n"

    enabled = shell(f"systemctl enable {unit}")
    link = f"/etc/systemd/system/multi-user.target.wants/{unit}"
    assert enabled.stderr == (
        f"Created symlink {link} \u2192 /etc/systemd/system/paisoar-roce@.service.\n"
    )
    assert shell(f"systemctl is-enabled {unit} other.service").stdout == "enabled\n"

    disabled = shell(f"systemctl disable {unit}")
    assert disabled.stderr == f'Removed "{link}".\n'
    assert shell(f"systemctl is-enabled {unit}").returncode == 1


def test_starting_a_oneshot_runs_its_command(out, unit):
    out(f"systemctl start {unit}")

    assert "\tenabled     0   0   0   1 " in out("mlnx_qos -i ens1f0")
    assert out("cat /sys/class/net/ens1f0/mtu") == "9000\n"
    shown = out(f"systemctl show {unit}")
    assert "ActiveState=active\nSubState=exited\n" in shown
    assert "Description=RoCE settings of ens1f0\n" in shown


def test_a_command_that_fails_fails_the_unit(shell, unit):
    shell("echo '#!/bin/sh\nexit 3' > /etc/paisoar/roce-ens1f0.sh")

    done = shell(f"systemctl start {unit}")

    assert done.returncode == 1
    assert done.stderr.startswith(
        f"Job for {unit} failed because the control process exited with error code.\n"
    )
    assert shell(f"systemctl is-failed {unit}").stdout == "failed\n"


def test_a_service_runs_in_the_background_until_stopped(shell, out):
    out("printf '[Service]\nExecStart=/bin/sleep 300\n' > /etc/systemd/system/nap.service")
    out("systemctl start nap")
    assert out("systemctl is-active nap") == "active\n"

    out("systemctl stop nap")
    assert shell("systemctl is-active nap").stdout == "inactive\n"


def test_after_a_reboot_only_what_is_enabled_is_set_again(out, unit):
    out("mlnx_qos -i ens1f0 --trust dscp; ip link set ens1f0 mtu 4000")
    out("systemctl reboot")
    assert "trust state: pcp" in out("mlnx_qos -i ens1f0")
    assert out("cat /sys/class/net/ens1f0/mtu") == "1500\n"

    out(f"systemctl enable {unit}; systemctl reboot")
    assert out("cat /sys/class/net/ens1f0/mtu") == "9000\n"
    assert "\tenabled     0   0   0   1 " in out("mlnx_qos -i ens1f0")


def test_a_unit_wanted_by_its_nic_starts_at_boot(out, unit):
    device = "sys-subsystem-net-devices-ens1f0.device"
    out(f"sed -i s/multi-user.target/{device}/ /etc/systemd/system/paisoar-roce@.service")

    out(f"systemctl enable {unit}; systemctl reboot")

    assert out("cat /sys/class/net/ens1f0/mtu") == "9000\n"


def test_a_masked_unit_does_not_start(shell):
    shell("systemctl mask lldpad")

    done = shell("systemctl start lldpad")

    assert done.stderr == "Failed to start lldpad.service: Unit lldpad.service is masked.\n"
    assert shell("systemctl is-enabled lldpad").stdout == "masked\n"
    shell("systemctl unmask lldpad")
    assert "masked" not in shell("systemctl is-enabled lldpad").stdout
