"""What a NIC's driver answers to ``dcb``: one class a driver, over a ``NicState``.

A refusal raises :class:`fabric.twin.host.stand_ins.driver.Refused` with the kernel's
errno text. Rules as in Linux net/dcb/dcbnl.c and drivers/net/ethernet/{mellanox/mlx5/
core/en_dcbnl.c, broadcom/bnxt/bnxt_dcb.c, intel/ice/ice_dcb_nl.c}; comments name the
function.
"""

from __future__ import annotations

from . import driver
from .driver import ETS, STRICT, Refused
from .files import DSCPS, PRIORITIES, Nic, NicState

INVALID, EXISTS = "Invalid argument", "File exists"
ABSENT, UNSUPPORTED = "No such file or directory", "Operation not supported"
FULL = 100


class Mlx5:
    """mlx5_core; also what a NIC of family ``generic`` is here."""

    pfc_cap = PRIORITIES

    def __init__(self, nic: Nic) -> None:
        self.nic = nic

    def factory(self, state: NicState) -> None:
        """Settings after power-on: those of ``NicState``."""

    def set_app(self, state: NicState, dscp: int, priority: int) -> None:
        """A new entry replaces the DSCP's old one (mlx5e_dcbnl_ieee_setapp)."""
        if (dscp, priority) in state.app_table():
            raise Refused(EXISTS)
        driver.set_app(state, dscp, priority)

    def delete_app(self, state: NicState, dscp: int, priority: int) -> None:
        """An entry goes."""
        driver.delete_app(state, dscp, priority)

    def set_ets(
        self, state: NicState, prio_tc: list[int], tsa: list[int], tc_bw: list[int]
    ) -> None:
        """Classes, arbiters and shares at once."""
        driver.set_ets(state, prio_tc, tsa, tc_bw)

    def set_pfc(self, state: NicState, enabled: list[int]) -> None:
        """PFC of all priorities."""
        driver.set_pfc(state, enabled, 0, self.nic.mtu, int(self.nic.facts["speed_mbps"]))

    def set_maxrate(self, state: NicState, kbps: list[int]) -> None:
        """Limits of classes (mlx5e_dcbnl_ieee_setmaxrate)."""
        driver.set_maxrate(state, kbps)

    def set_pause(self, state: NicState, *, rx: bool, tx: bool) -> None:
        """Link-level pause."""
        driver.set_pause(state, rx=rx, tx=tx)

    def dcbx(self, state: NicState) -> list[str]:
        """Flags in the order of their bits."""
        return ["host", "cee", "ieee"] if state.dcbx_os[0] else ["cee", "ieee"]

    def set_dcbx(self, state: NicState, flags: list[str]) -> None:
        """Only the host's mode can be asked for (mlx5e_dcbnl_setdcbx)."""
        if "host" not in flags:
            raise Refused(INVALID)
        state.dcbx_os = [1]


class Bnxt(Mlx5):
    """bnxt_en of a BCM57504: eight classes, one of them lossless."""

    pfc_cap = 1

    def factory(self, state: NicState) -> None:
        """All strict in class 0, nothing set by the host yet (bnxt_dcbnl_ieee_getets)."""
        state.prio_tc, state.tsa = [0] * PRIORITIES, [STRICT] * PRIORITIES
        state.dcbx_os = [1]
        state.cable_len = [0]

    def _host_only(self, state: NicState) -> None:
        if not state.dcbx_os[0]:
            raise Refused(INVALID)

    def set_app(self, state: NicState, dscp: int, priority: int) -> None:
        """A second priority of a DSCP is taken as well (bnxt_dcbnl_ieee_setapp)."""
        self._host_only(state)
        if (dscp, priority) in state.app_table():
            raise Refused(EXISTS)
        state.set_app_table([(dscp, priority), *state.app_table()])

    def delete_app(self, state: NicState, dscp: int, priority: int) -> None:
        """The hardware forgets the DSCP, whichever entry goes (bnxt_hwrm_queue_dscp2pri_cfg)."""
        self._host_only(state)
        if (dscp, priority) not in state.app_table():
            raise Refused(ABSENT)
        state.set_app_table([entry for entry in state.app_table() if entry != (dscp, priority)])

    def set_ets(
        self, state: NicState, prio_tc: list[int], tsa: list[int], tc_bw: list[int]
    ) -> None:
        """Strict or ETS only, and no ETS class without a share (bnxt_ets_validate)."""
        self._host_only(state)
        if any(kind not in (STRICT, ETS) for kind in tsa):
            raise Refused(UNSUPPORTED)
        shares = [share for share, kind in zip(tc_bw, tsa, strict=True) if kind == ETS]
        if sum(shares) > FULL or (sum(shares) == FULL and 0 in shares):
            raise Refused(INVALID)
        state.prio_tc, state.tsa, state.tc_bw = list(prio_tc), list(tsa), list(tc_bw)
        state.ets_set = [1]

    def set_pfc(self, state: NicState, enabled: list[int]) -> None:
        """After ETS, and for one class only (bnxt_hwrm_queue_pfc_cfg)."""
        self._host_only(state)
        lossless = {state.prio_tc[p] for p in range(PRIORITIES) if enabled[p]}
        if not state.ets_set[0] or len(lossless) > self.pfc_cap:
            raise Refused(INVALID)
        state.pfc = list(enabled)

    def set_maxrate(self, state: NicState, kbps: list[int]) -> None:  # noqa: ARG002
        """No such operation in bnxt_dcb.c, nor in ice_dcb_nl.c."""
        raise Refused(UNSUPPORTED)

    def dcbx(self, state: NicState) -> list[str]:
        """The host's mode, or the firmware's agent, which an NVRAM option turns on."""
        return ["host", "ieee"] if state.dcbx_os[0] else ["lld-managed", "ieee"]

    def set_dcbx(self, state: NicState, flags: list[str]) -> None:
        """Refused while the firmware manages DCBX (bnxt_dcbnl_setdcbx)."""
        self._host_only(state)
        if "host" in flags and ("ieee" not in flags or "cee" in flags):
            raise Refused(INVALID)


class Ice(Bnxt):
    """ice of an E810: the firmware's LLDP agent decides until it is turned off."""

    pfc_cap = PRIORITIES

    def factory(self, state: NicState) -> None:
        """The agent runs; one class."""
        state.dcbx_os = [0]
        state.cable_len = [0]
        self._software_default(state)

    def _software_default(self, state: NicState) -> None:
        """ice_dcb_sw_dflt_cfg: everything in class 0, which has it all."""
        state.prio_tc = [0] * PRIORITIES
        state.tsa = [ETS, *[STRICT] * (PRIORITIES - 1)]
        state.tc_bw = [FULL, *[0] * (PRIORITIES - 1)]
        state.pfc = [0] * PRIORITIES

    def set_agent(self, state: NicState, *, on: bool) -> None:
        """The private flag fw-lldp-agent; either way DCB starts anew (ice_set_priv_flags)."""
        if state.dcbx_os == [int(not on)]:
            return
        state.dcbx_os = [int(not on)]
        state.set_app_table([])
        self._software_default(state)

    def set_app(self, state: NicState, dscp: int, priority: int) -> None:
        """One entry a DSCP; the first switches to DSCP mode (ice_dcbnl_setapp)."""
        self._host_only(state)
        if (dscp, priority) in state.app_table():
            raise Refused(EXISTS)
        if not 0 <= dscp < DSCPS or any(entry[0] == dscp for entry in state.app_table()):
            raise Refused(INVALID)
        if not state.apps:
            state.prio_tc = list(range(PRIORITIES))
            state.tsa = [ETS] * PRIORITIES
            state.tc_bw = [FULL, *[0] * (PRIORITIES - 1)]
        state.set_app_table([(dscp, priority), *state.app_table()])

    def delete_app(self, state: NicState, dscp: int, priority: int) -> None:
        """With the last entry the port is back in VLAN mode (ice_dcbnl_delapp)."""
        super().delete_app(state, dscp, priority)
        if not state.apps:
            self._software_default(state)

    def set_ets(
        self, state: NicState, prio_tc: list[int], tsa: list[int], tc_bw: list[int]
    ) -> None:
        """The map stays in DSCP mode; shares of the used classes make 100 (ice_dcb_bwchk)."""
        self._host_only(state)
        classes = state.prio_tc if state.apps else prio_tc
        used = set(classes)
        count = len(used) if used == set(range(len(used))) else 1
        shares = list(tc_bw)
        if count == 1 or not sum(shares[:count]):
            shares[0] = FULL
        elif sum(shares[:count]) != FULL:
            raise Refused(INVALID)
        state.prio_tc, state.tsa, state.tc_bw = list(classes), list(tsa), shares

    def set_pfc(self, state: NicState, enabled: list[int]) -> None:
        """Any priority (ice_dcbnl_setpfc)."""
        self._host_only(state)
        state.pfc = list(enabled)

    def set_pause(self, state: NicState, *, rx: bool, tx: bool) -> None:
        """Not beside PFC (ice_set_pauseparam)."""
        if any(state.pfc):
            raise Refused(UNSUPPORTED)
        driver.set_pause(state, rx=rx, tx=tx)

    def set_dcbx(self, state: NicState, flags: list[str]) -> None:
        """No change while the agent runs (ice_dcbnl_setdcbx)."""
        self._host_only(state)
        if "host" not in flags or "lld-managed" in flags or {"cee", "ieee"} <= set(flags):
            raise Refused(INVALID)


def dcbnl_of(nic: Nic) -> Mlx5:
    """The driver of this NIC."""
    return {"bnxt": Bnxt, "irdma": Ice}.get(nic.family, Mlx5)(nic)
