"""``mlnx_qos`` of an emulated ConnectX; shapes and texts of Mellanox/mlnx-tools, version 1.2.

The printed state after `--trust dscp --pfc 0,0,0,1,0,0,0,0` is checked against
AT&T's recorded sample (att/netarbiter, nvmf/OUTPUTSAMPLE.setup-nic-lossless-
layer3.sh.md), line by line for what both releases print.
"""

import pytest

TRUSTED_MAP = [
    f"\tprio:{p} dscp:" + "".join(f"{d:02d}," for d in range(8 * p + 7, 8 * p - 1, -1))
    for p in range(8)
]
FACTORY_CLASSES = [
    line
    for tc, priority in enumerate((1, 0, 2, 3, 4, 5, 6, 7))
    for line in (f"tc: {tc} ratelimit: unlimited, tsa: vendor", f"\t priority:  {priority}")
]
ETS = "-p 0,1,2,3,4,5,6,7 -s ets,ets,ets,ets,ets,ets,strict,ets -t 50,0,0,50,0,0,0,0"


def test_a_fresh_nic_trusts_pcp_with_pfc_off_and_dcbx_in_firmware(out):
    lines = out("mlnx_qos -i ens1f0").splitlines()

    assert lines == [
        "DCBX mode: Firmware controlled",
        "Priority trust state: pcp",
        "default priority:",
        "Receive buffer size (bytes): 156096,0,0,0,0,0,0,0,max_buffer_size=1027728",
        "Cable len: 7",
        "PFC configuration:",
        "\tpriority    0   1   2   3   4   5   6   7",
        "\tenabled     0   0   0   0   0   0   0   0   ",
        "\tbuffer      0   0   0   0   0   0   0   0   ",
        *FACTORY_CLASSES,
    ]


def test_trust_dscp_and_pfc_print_as_the_recorded_sample_does(out):
    out("mlnx_qos -i ens1f0 --dcbx os --trust dscp --pfc 0,0,0,1,0,0,0,0")
    lines = out("mlnx_qos -i ens1f0").splitlines()

    assert lines[:3] == [
        "DCBX mode: OS controlled",
        "Priority trust state: dscp",
        "dscp2prio mapping:",
    ]
    assert lines[3:11] == TRUSTED_MAP
    assert "\tenabled     0   0   0   1   0   0   0   0   " in lines
    assert lines[-16:] == FACTORY_CLASSES


def test_what_was_set_survives_the_session_and_the_namespace(out, host):
    out("mlnx_qos -i ens1f0 --trust dscp")
    out("mlnx_qos -i ens1f0 --dscp2prio set,48,0 --dscp2prio set,26,6")

    printed = out("mlnx_qos -i ens1f0")

    assert "\tprio:6 dscp:26,55,54,53,52,51,50,49," in printed.splitlines()
    assert "\tprio:0 dscp:48,07,06,05,04,03,02,01," in printed.splitlines()
    assert "\tprio:0 dscp:00," in printed.splitlines()


def test_deleting_the_last_dscp_goes_back_to_pcp(out):
    out("mlnx_qos -i ens1f0 --dscp2prio set,26,3")
    assert "\tprio:3 dscp:26,\n" in out("mlnx_qos -i ens1f0")

    out("mlnx_qos -i ens1f0 --dscp2prio del,26,3")

    assert "Priority trust state: pcp" in out("mlnx_qos -i ens1f0")


def test_ets_classes_are_set_and_printed(out):
    printed = out(f"mlnx_qos -i ens1f0 {ETS}")

    assert "tc: 3 ratelimit: unlimited, tsa: ets, bw: 50%\n\t priority:  3\n" in printed
    assert "tc: 6 ratelimit: unlimited, tsa: strict\n\t priority:  6\n" in printed


def test_buffers_map_and_cable_length_are_set(out):
    out("ethtool -A ens1f0 autoneg off rx off tx off")
    out("mlnx_qos -i ens1f0 --prio2buffer 0,0,0,1,0,0,0,0 --buffer_size 20016,156096,0,0,0,0,0,0")
    printed = out("mlnx_qos -i ens1f0 --pfc 0,0,0,1,0,0,0,0 --cable_len 3")

    assert "Receive buffer size (bytes): 20016,156096,0,0,0,0,0,0,max_buffer_size=" in printed
    assert "\tbuffer      0   0   0   1   0   0   0   0   \n" in printed
    assert "Cable len: 3\n" in printed


def test_pfc_turns_link_pause_off_and_the_firmware_splits_the_buffer(out):
    printed = out("mlnx_qos -i ens1f0 --pfc 0,0,0,1,0,0,0,0")

    assert "Receive buffer size (bytes): 20016,156096,0,0,0,0,0,0," in printed
    assert "RX:\t\toff\nTX:\t\toff\n" in out("ethtool -a ens1f0")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--pfc 0,0,0,1", "pfc list must have 8 items"),
        ("--pfc 0,0,0,1,0,0,0,0,0", "Too many items for PFC"),
        ("--pfc 0,0,0,2,0,0,0,0", "Bad value for PFC: 2 is not in the range 0..1"),
        ("--trust both", "Invalid trust state command. Refer to the help."),
        ("--dscp2prio set,64,3", "Invalid dscp2prio command. Refer to the help."),
        ("--dscp2prio set,26", "Invalid dscp2prio command. Refer to the help."),
        ("--dscp2prio del,26,3", "dscp2prio command failed"),
        (
            "--trust dscp --dscp2prio set,26,3",
            "trust and dscp2prio commands cannot be used at the same time.",
        ),
        ("-t 50,0,0,50,0,0,0,0", "ETS BW for a strict/vendor TC must be 0"),
        ("-s ets,ets,ets,ets,ets,ets,ets,ets -t 50,0,0,40,0,0,0,0", "Netlink error: Bad value."),
        ("-s ets,ets,ets", "tsa list must have 8 items"),
        ("-s ets,ets,wrr,ets,ets,ets,ets,ets", "('Bad TSA value: ', 'wrr')"),
        ("-p 0,1,2,3,4,5,6,8", "Bad value for UP => TC mapping: 8 is not in the range 0..7"),
        ("--buffer_size 900000,900000,0,0,0,0,0,0", "Buffers commands error"),
        ("--buffer_size lots", "Buffers commands error"),
        ("--dcbx both", "Invalid dcbx mode command. Refer to the help."),
        ("--cable_len 70000", "Bad value for cable_len: 70000 is not in the range 0..65535"),
    ],
)
def test_what_the_real_one_refuses_is_refused_and_changes_nothing(shell, options, text):
    before = shell("mlnx_qos -i ens1f0").stdout

    done = shell(f"mlnx_qos -i ens1f0 {options}")

    assert done.returncode == 1
    assert text in done.stdout
    assert shell("mlnx_qos -i ens1f0").stdout == before


def test_a_lossless_buffer_too_small_for_its_headroom_is_refused(shell, out):
    out("mlnx_qos -i ens1f0 --pfc 0,0,0,1,0,0,0,0")

    done = shell("mlnx_qos -i ens1f0 --buffer_size 20016,20016,0,0,0,0,0,0")

    assert (done.returncode, done.stdout) == (1, "Buffers commands error\n")
    assert "20016,156096,0," in out("mlnx_qos -i ens1f0")


def test_unknown_interfaces_and_options_get_the_programs_own_words(shell):
    unknown = shell("mlnx_qos -i nope")
    assert unknown.returncode == 1
    assert unknown.stdout.splitlines()[-1] == "ETS features are not supported on your system"

    none = shell("mlnx_qos --trust dscp")
    assert (none.returncode, none.stdout.splitlines()[0]) == (1, "Interface name is required")

    option = shell("mlnx_qos -i ens1f0 --wfq 1")
    assert option.returncode == 2
    assert "mlnx_qos: error: no such option: --wfq" in option.stderr


def test_two_sessions_at_once_lose_nothing(out):
    sets = " ".join(f"mlnx_qos -i ens1f0 --dscp2prio set,{d},3 >/dev/null &" for d in range(1, 9))

    out(f"{sets} wait")

    assert "prio:3 dscp:" in out("mlnx_qos -i ens1f0")
    assert len(out("dcb -N app show dev ens1f0").split()) == 1 + 8


def test_rate_limits_are_whole_gbps_and_dcb_shows_them_in_its_own_way(out):
    printed = out("mlnx_qos -i ens1f0 -r 0,0,0,10,0,100,0,0").splitlines()
    assert "tc: 3 ratelimit: 10.0 Gbps, tsa: vendor" in printed
    assert "tc: 5 ratelimit: 100.0 Gbps, tsa: vendor" in printed
    assert "tc: 0 ratelimit: unlimited, tsa: vendor" in printed
    # iproute2 6.1 takes the driver's kbit/s for bytes a second.
    assert "3:80Mbit 4:0bit 5:800Mbit" in out("dcb maxrate show dev ens1f0")
    assert '"tc_maxrate":[0,0,0,10000000,0,100000000,0,0]' in out("dcb -j maxrate show dev ens1f0")
    out("dcb maxrate set dev ens1f0 tc-maxrate all:0")
    assert "Gbps" not in out("mlnx_qos -i ens1f0")
