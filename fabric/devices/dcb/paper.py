"""DCQCN as published, for NICs that do not show their rate parameters.

Zhu et al., SIGCOMM 2015, section 5: timer 55 us, five stages of fast recovery, 40 Mb/s
additive increase, g = 1/256, CNPs at most every 50 us. A family that shows none of
these names them in ``unread``; a simulation then reckons with the published ones, not
with another vendor's factory settings.
"""

from __future__ import annotations

from fabric.qos import Dcqcn


def published(priorities: tuple[int, ...], cnp_dscp: int, cnp_priority: int) -> Dcqcn:
    """DCQCN on these priorities, with the paper's parameters."""
    return Dcqcn(
        np_priorities=priorities,
        rp_priorities=priorities,
        cnp_dscp=cnp_dscp,
        cnp_priority=cnp_priority,
        min_time_between_cnps_us=50,
        alpha_update_interval_us=55,
        g_of_1024=1020,
        rate_reduce_interval_us=50,
        time_reset_us=55,
        byte_reset=0,
        fast_recovery_stages=5,
        ai_rate_mbps=40,
        hai_rate_mbps=50,
        min_rate_mbps=100,
    )
