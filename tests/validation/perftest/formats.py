"""perftest's reports as its releases print them, for tests and for the stand-in program.

Layout after linux-rdma/perftest: src/perftest_parameters.h (RESULT_FMT*, REPORT_FMT*),
perftest_parameters.c (ctx_print_test_info, print_report_lat), perftest_communication.c
(ctx_print_pingpong_data). Releases: ``4.5`` (Debian 12, v4.5-0.17, prints 6.06), ``24.01``
(JSON with quotes), ``24.04`` (MiB, two keys a line). No part of the package is needed here:
the stand-in runs this file by itself.
"""

import json

LINE = "-" * 87
BW_COLUMNS = " #bytes     #iterations    BW peak[{u}]    BW average[{u}]   MsgRate[Mpps]"
LAT_COLUMNS = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
    "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] "
)
LAT_COLUMNS_D = " #bytes        #iterations       t_avg[usec]    tps average"
TITLES = {
    "ib_write_bw": "RDMA_Write BW",
    "ib_send_bw": "Send BW",
    "ib_write_lat": "RDMA_Write Latency",
    "ib_send_lat": "Send Latency",
    "ib_read_lat": "RDMA_Read Latency",
}


def head(program, *, release="4.5", device="mlx5_0", qps=1, mtu=4096, gid=3, **other):
    """The title and the block of settings, as the client prints it."""
    title = other.get("title") or TITLES[program]
    link = other.get("link", "Ethernet")
    lines = [
        LINE,
        f"                    {title} Test",
        f" Dual-port       : OFF\t\tDevice         : {device}",
        f" Number of qps   : {qps}\t\tTransport type : IB",
        " Connection type : RC\t\tUsing SRQ      : OFF",
    ]
    if release == "24.04":
        lines += [
            " PCIe relax order: ON\t\tLock-free      : OFF",
            " ibv_wr* API     : ON\t\tUsing DDP      : OFF",
        ]
    else:
        lines += [" PCIe relax order: ON", " ibv_wr* API     : ON"]
    lines.append(" TX depth        : 128")
    if program.endswith("bw"):
        lines.append(" CQ Moderation   : 1")
    lines += [f" Mtu             : {mtu}[B]", f" Link type       : {link}"]
    if gid is not None:
        lines.append(f" GID index       : {gid}")
    read = program == "ib_read_lat"
    lines.append(" Outstand reads  : 16" if read else " Max inline data : 0[B]")
    lines.append(f" rdma_cm QPs\t : {'ON' if other.get('rdma_cm') else 'OFF'}")
    tos = other.get("tos")
    more = f" \tTOS    : {tos}" if other.get("rdma_cm") and tos else ""
    lines += [f" Data ex. method : {'rdma_cm' if other.get('rdma_cm') else 'Ethernet'}{more}", LINE]
    return lines


def gid_line(address):
    """`` GID:`` with sixteen decimal numbers."""
    numbers = ["00"] * 10 + ["255", "255"] + [f"{int(p):02d}" for p in address.split(".")]
    return f" GID: {':'.join(numbers)}"


def ends(local, remote):
    """Addresses of both queue pairs."""
    return [
        " local address: LID 0000 QPN 0x0112 PSN 0xa1b2c3 RKey 0x180be0 VAddr 0x007f5c",
        gid_line(local),
        " remote address: LID 0000 QPN 0x0113 PSN 0xd4e5f6 RKey 0x180be1 VAddr 0x007f5d",
        gid_line(remote),
        LINE,
    ]


def bandwidth(size, iterations, average, *, unit="Gb/sec", peak=None, rate=None, cpu=None):
    """The table of a bandwidth test."""
    bits = {"Gb/sec": 1e9, "MB/sec": 8 * 2**20, "MiB/sec": 8 * 2**20}[unit]
    rate = average * bits / (8 * size) / 1e6 if rate is None else rate
    peak = average if peak is None else peak
    row = f" {size:<7}    {iterations:<10}       {peak:<7.2f}            {average:<7.2f}"
    row += f"\t\t   {rate:<7.6f}"
    columns = BW_COLUMNS.format(u=unit)
    if cpu is not None:
        columns, row = f"{columns}    CPU_Util[%]", f"{row}\t    {cpu:<7.2f}"
    return [columns, row, LINE]


def latency(size, samples, *, sorted_too=False, iterations=None, typical=None):
    """The samples of ``-U`` and the table of a latency test, which leaves out the two worst."""
    ordered = sorted(samples)
    count = max(1, len(samples) - 2)

    def at(share):
        return ordered[min(count - 1, int(count * share))]

    if typical is None:
        typical = (ordered[count // 2] + ordered[(count - 1) // 2]) / 2
    lines = [LAT_COLUMNS, "#, usec"]
    lines += [f"{number}, {value:g}" for number, value in enumerate(samples, 1)]
    if sorted_too:
        lines += ["#, usec", *(f"{n}, {v:g}" for n, v in enumerate(ordered, 1))]
    average = sum(ordered[:count]) / count
    numbers = (ordered[0], ordered[count - 1], typical, average, 0.0, at(0.99), at(0.999))
    row = f" {size:<7} {iterations or len(samples) + 1}          "
    row += "        ".join(f"{number:<7.2f}" for number in numbers)
    return [*lines, LINE, LAT_COLUMNS, row, LINE]


def json_report(program, results, *, release="4.5", device="mlx5_0"):
    """``--out_json``: text that is nearly JSON before 24.01, JSON from then on."""
    info = {
        "test": f"{TITLES[program].replace(' ', '_')}_Test",
        "Dual_port": "OFF",
        "Device": device,
        "TX_depth": 128,
        "Mtu": 4096,
    }
    if release != "4.5":
        return json.dumps({"test_info": info, "results": results}, indent=0)
    lines = ["{", "test_info: {", f"test: {info['test']}", "Dual_port: OFF,"]
    lines += [f'Device: "{device}",', "TX_depth : 128,", "Mtu: 4096,", "},", "results: {"]
    lines += [f"{name}: {value}," for name, value in results.items()]
    return "\n".join([*lines, "}", "}"]) + "\n"
