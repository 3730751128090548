"""What the network must do, as people write it in ``fabric.yaml``.

Strict pydantic models: an unknown key, a bad unit or a contradiction is an
error. Sizes, speeds and times are written with units (``150KB``, ``25G``); the
models hold bytes and bits a second.

Only statements that hold on their own are checked here; what concerns devices
and cables is checked in ``fabric.site``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from fabric.qos import DSCP_COUNT, PRIORITY_COUNT, Dcqcn
from fabric.units import format_speed, parse_size_bytes, parse_speed_bps

Place = tuple[tuple[str | int, ...], str]


def placed(places: Sequence[Place]) -> PydanticCustomError:
    """Errors of a model, each with the key below it and its reason, so that lines are exact."""
    reasons = "; ".join(reason for _, reason in places)
    return PydanticCustomError("placed", "{reasons}", {"reasons": reasons, "places": list(places)})


def _size(value: object) -> object:
    return parse_size_bytes(value) if isinstance(value, str) else _unitless(value, "150KB")


def _speed(value: object) -> object:
    return parse_speed_bps(value) if isinstance(value, str) else _unitless(value, "25G")


def _unitless(value: object, example: str) -> object:
    raise ValueError(f"{value!r} has no unit; write it like {example}")


SizeBytes = Annotated[int, BeforeValidator(_size), Field(gt=0)]
SpeedBps = Annotated[int, BeforeValidator(_speed), Field(gt=0)]
Dscp = Annotated[int, Field(ge=0, lt=DSCP_COUNT)]
Priority = Annotated[int, Field(ge=0, lt=PRIORITY_COUNT)]
Percent = Annotated[int, Field(ge=0, le=100)]


class StrictModel(BaseModel):
    """Base of all models here: frozen, no unknown keys, no silent conversion."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Mtu(StrictModel):
    """MTUs in bytes: ``switch_port`` and ``host`` are IP packets, ``roce`` payload."""

    switch_port: Annotated[int, Field(ge=1500, le=9216)] = 9216
    host: Annotated[int, Field(ge=1500, le=9216)] = 9000
    roce: Literal[1024, 2048, 4096] = 4096

    @model_validator(mode="after")
    def _fits(self) -> Self:
        faults = []
        if self.host > self.switch_port:
            faults.append(
                f"hosts send packets of {self.host} bytes, switches pass {self.switch_port}"
            )
        if self.roce + ROCE_HEADER_BYTES > self.host:
            faults.append(
                f"a RoCE MTU of {self.roce} needs a host MTU of "
                f"{self.roce + ROCE_HEADER_BYTES} or more, not {self.host}"
            )
        if faults:
            raise placed([((), fault) for fault in faults])
        return self


# IPv6 40 + UDP 8 + BTH 12 + RETH 16 + immediate 4 + ICRC 4 (InfiniBand
# Architecture Specification, annex A17).
ROCE_HEADER_BYTES = 84


class ClassScheduler(StrictModel):
    """``strict`` is served first; ``ets`` shares what strict leaves, in percent."""

    mode: Literal["strict", "ets"]
    percent: Percent = 0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.mode == "strict" and self.percent:
            raise ValueError("a strict class has no ETS percent")
        if self.mode == "ets" and not self.percent:
            raise ValueError("an ets class needs a percent above 0")
        return self


class TrafficClass(StrictModel):
    """One class of traffic: who belongs to it and how it is treated.

    The priority is also the switch's queue and qos-group and the NIC's traffic
    class, so that there is one number for one class everywhere.
    """

    role: Literal["roce", "cnp", "default"]
    dscp: tuple[Dscp, ...] = ()
    priority: Priority
    lossless: bool = False
    scheduler: ClassScheduler

    @model_validator(mode="before")
    @classmethod
    def _sequence(cls, value: object) -> object:
        if isinstance(value, dict) and isinstance(value.get("dscp"), list):
            return {**value, "dscp": tuple(value["dscp"])}
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.role == "default" and self.dscp:
            raise ValueError("the default class takes every DSCP that no other class has")
        if self.role != "default" and not self.dscp:
            raise ValueError(f"a {self.role} class needs at least one DSCP")
        if self.role == "cnp" and self.lossless:
            raise ValueError("CNPs must not be paused: the cnp class is lossy")
        if self.role == "default" and self.lossless:
            raise ValueError("the default class must be lossy: TCP would pause RDMA")
        return self


class PortProfile(StrictModel):
    """Thresholds of one port speed.

    ``kmin``, ``kmax``: ECN, egress queue of the RoCE class. ``xoff``, ``xon``:
    PFC, receive buffer of each lossless priority; the headroom above ``xoff`` is
    computed from speed, cable length and MTU (``fabric.headroom``). With ``alpha``
    a switch that shares its buffer dynamically sends XOFF at ``alpha`` times what is
    free of it instead, and XON ``xoff - xon`` below that; others keep to ``xoff``.
    """

    kmin: SizeBytes
    kmax: SizeBytes
    pmax_percent: Annotated[int, Field(ge=1, le=100)]
    xoff: SizeBytes
    xon: SizeBytes
    alpha: Annotated[float, Field(ge=2**-8, le=2**7)] | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        faults = []
        if self.kmin >= self.kmax:
            faults.append(f"kmin ({self.kmin} B) must be below kmax ({self.kmax} B)")
        if self.xon >= self.xoff:
            faults.append(f"xon ({self.xon} B) must be below xoff ({self.xoff} B)")
        if self.kmin >= self.xoff:
            faults.append(
                f"kmin ({self.kmin} B) must be below xoff ({self.xoff} B): "
                "ECN has to act before PFC does"
            )
        if faults:
            raise placed([((), fault) for fault in faults])
        return self


class WatchdogIntent(StrictModel):
    """PFC watchdog: a queue paused for ``detect_ms`` is acted on, then restored."""

    action: Literal["drop", "forward", "shutdown"] = "drop"
    detect_ms: Annotated[int, Field(ge=100, le=5000)] = 200
    restore_ms: Annotated[int, Field(ge=100, le=60000)] = 400


class DcqcnIntent(StrictModel):
    """DCQCN parameters for every NIC; names and units as in ``fabric.qos.Dcqcn``.

    Defaults are the set of the DCQCN paper (Zhu et al., SIGCOMM 2015) where it
    names a value: CNP interval 50 us, timers 55 us, five fast-recovery stages,
    g = 1/256, 40 Mb/s. Its byte counter of 10 MB is more than NICs can hold and
    hardly ever acts beside the timer, so the counter is off; hyper increase then
    follows the timer alone and is set to 50 Mb/s, for at 200 Mb/s sixty queue
    pairs into one 25G port overshoot (measured with ``fabric.sim``).
    """

    min_time_between_cnps_us: Annotated[int, Field(ge=0, le=4095)] = 50
    rate_to_set_on_first_cnp_mbps: Annotated[int, Field(ge=0)] = 0
    alpha_update_interval_us: Annotated[int, Field(ge=1)] = 55
    g_of_1024: Annotated[int, Field(ge=1, le=1023)] = 1020
    initial_alpha_of_1024: Annotated[int, Field(ge=1, le=1023)] = 1023
    rate_reduce_interval_us: Annotated[int, Field(ge=1)] = 50
    time_reset_us: Annotated[int, Field(ge=1)] = 55
    # 15 bits in the NIC's own configuration (mlxconfig RPG_BYTE_RESET); 0 turns it off.
    byte_reset: Annotated[int, Field(ge=0, le=32767)] = 0
    fast_recovery_stages: Annotated[int, Field(ge=1, le=31)] = 5
    ai_rate_mbps: Annotated[int, Field(ge=1)] = 40
    hai_rate_mbps: Annotated[int, Field(ge=1)] = 50
    min_rate_mbps: Annotated[int, Field(ge=1)] = 100

    def for_priority(self, roce: int, cnp_dscp: int, cnp_priority: int) -> Dcqcn:
        """These parameters for one RoCE priority, notification and reaction alike."""
        return Dcqcn(
            np_priorities=(roce,),
            rp_priorities=(roce,),
            cnp_dscp=cnp_dscp,
            cnp_priority=cnp_priority,
            **self.model_dump(),
        )


class HostIntent(StrictModel):
    """What hosts do beside the classes.

    ``receive_buffer`` is the NIC's lossless receive buffer, headroom included.
    """

    receive_buffer: SizeBytes = 156096
    mark_ect: bool = True


class Intent(StrictModel):
    """What the network must do, on every device alike."""

    mtu: Mtu = Mtu()
    classes: Annotated[dict[str, TrafficClass], Field(min_length=3)]
    profiles: Annotated[dict[str, PortProfile], Field(min_length=1)]
    watchdog: WatchdogIntent = WatchdogIntent()
    dcqcn: DcqcnIntent = DcqcnIntent()
    host: HostIntent = HostIntent()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if faults := list(self._faults()):
            raise placed(faults)
        return self

    def _faults(self) -> Iterator[Place]:
        """What is wrong about classes and profiles together."""
        for role in ("roce", "cnp", "default"):
            names = [name for name, cls in self.classes.items() if cls.role == role]
            if len(names) != 1:
                reason = f"exactly one class must have the role {role!r}, not {len(names)}"
                yield ("classes", *names[1:2]), reason
        seen_dscp: dict[int, str] = {}
        seen_priority: dict[int, str] = {}
        for name, cls in self.classes.items():
            for dscp in cls.dscp:
                if dscp in seen_dscp:
                    other = seen_dscp[dscp]
                    twice = f"class {name!r}" if other == name else f"{other!r} and {name!r}"
                    yield ("classes", name, "dscp"), f"DSCP {dscp} is listed twice: {twice}"
                seen_dscp[dscp] = name
            if cls.priority in seen_priority:
                reason = f"{seen_priority[cls.priority]!r} and {name!r}"
                yield (
                    ("classes", name, "priority"),
                    f"priority {cls.priority} is used by both {reason}",
                )
            seen_priority[cls.priority] = name
        shares = sum(cls.scheduler.percent for cls in self.classes.values())
        if shares != 100:
            yield ("classes",), f"the ETS percents of the classes add up to {shares}, not 100"
        for name, cls in self.classes.items():
            if cls.role == "cnp" and cls.scheduler.mode != "strict":
                yield (
                    ("classes", name, "scheduler"),
                    "the cnp class must be strict, or CNPs wait behind data",
                )
        speeds: dict[int, str] = {}
        for text in self.profiles:
            try:
                speed = parse_speed_bps(text)
            except ValueError as error:
                yield ("profiles", text), str(error)
                continue
            if speed in speeds:
                yield ("profiles", text), f"{text} is the same speed as {speeds[speed]}"
            speeds[speed] = text

    @property
    def roce(self) -> TrafficClass:
        """The class that RDMA traffic travels in."""
        return self._role("roce")

    @property
    def cnp(self) -> TrafficClass:
        """The class of congestion notification packets."""
        return self._role("cnp")

    @property
    def default(self) -> TrafficClass:
        """The class of everything else."""
        return self._role("default")

    def _role(self, role: str) -> TrafficClass:
        return next(cls for cls in self.classes.values() if cls.role == role)

    def profile(self, speed_bps: int) -> PortProfile:
        """Thresholds of this port speed; ValueError where the intent has none."""
        for text, profile in self.profiles.items():
            if parse_speed_bps(text) == speed_bps:
                return profile
        raise ValueError(f"intent.profiles has no entry for {format_speed(speed_bps)} ports")


ExtraSuite = Literal["mixed", "burst", "collective", "soak"]


class Certify(StrictModel):
    """What must hold for a certificate, and for how long it holds.

    ``extra_suites`` names what a certificate asks for beside preflight, latency,
    bandwidth and incast. ``soak_cycles`` is how many short runs a soak chains.

    Sources: 0.9 of line rate, ngc_multinode_perf and the IETF draft
    calabria-bmwg-ai-fabric-training-bench (bus bandwidth of collectives too);
    fairness and a coefficient of variation below 5 %, the same draft. Shares of
    classes: sonic-net/sonic-mgmt judges DWRR within 5 % of its weight, to which come
    headers and start of TCP. Bursts: that no more than a tenth is lost to pauses and cuts of
    rate. Least over mean of a soak: as much as a synchronous job may wait.
    """

    profile: Literal["lossless-dcqcn", "lossless-pfc-only", "lossy-tolerant"] = "lossless-dcqcn"
    valid_hours: Annotated[int, Field(ge=1, le=24 * 90)] = 168
    min_bandwidth_fraction: Annotated[float, Field(gt=0, le=1)] = 0.9
    max_latency_p99_us: Annotated[float, Field(gt=0)] = 9.0
    min_incast_fraction: Annotated[float, Field(gt=0, le=1)] = 0.9
    min_incast_jain: Annotated[float, Field(gt=0, le=1)] = 0.9
    max_pause_ratio: Annotated[float, Field(ge=0, le=1)] = 0.05
    max_drops: Annotated[int, Field(ge=0)] = 0
    min_class_share: Annotated[float, Field(gt=0, le=1)] = 0.9
    min_burst_fraction: Annotated[float, Field(gt=0, le=1)] = 0.9
    min_collective_fraction: Annotated[float, Field(gt=0, le=1)] = 0.9
    max_soak_cov: Annotated[float, Field(gt=0, le=1)] = 0.05
    min_soak_ratio: Annotated[float, Field(gt=0, le=1)] = 0.9
    soak_cycles: Annotated[int, Field(ge=4, le=100_000)] = 60
    extra_suites: tuple[ExtraSuite, ...] = ()

    @field_validator("extra_suites", mode="before")
    @classmethod
    def _sequence(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value
