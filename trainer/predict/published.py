"""Figures that others have published, and how each is predicted.

What a source does not say is an assumption, and stands in ``assumed``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from trainer.predict.clos import clos_network, shape_of
from trainer.predict.constants import Constants
from trainer.predict.gpus import compute, default_batch
from trainer.predict.rates import Fabric, fabric_of
from trainer.predict.setup import Prediction, Setup
from trainer.predict.step import predict

HOROVOD_16 = "Horovod README at ce2a348e, 4 servers x 4 Pascal GPUs, 25 Gbit/s RoCE"
HOROVOD_64 = "Horovod README at ce2a348e, 64 GPUs, 40 Gbit/s TCP"
HOROVOD_128 = "Horovod docs/benchmarks.md at 059867db, 32 servers x 4 Pascal GPUs, 25 Gbit/s RoCE"
HOROVOD_512 = "Horovod docs/benchmarks, 128 servers x 4 Pascal GPUs, 25 Gbit/s RoCE"
DGX1 = "TensorFlow benchmarks, May 2017, DGX-1 (P100), synthetic data"
EC2 = "TensorFlow benchmarks, May 2017, 8 x p2.8xlarge (K80), distributed_replicated"
BYTEPS = "BytePS docs/performance.md, V100, over Horovod with NCCL"
ARTICLE = "the PAISoar article, 64 GPUs, 25G RoCE, 2 GPUs a host"
ARTICLE_128 = "the PAISoar article, GreenNet on 128 GPUs, 25G RoCE"

G = 10**9


@dataclass
class Bench:
    """Fabrics that were built once, and the constants to predict with."""

    constants: Constants
    fabrics: dict[tuple[int, int], Fabric] = field(default_factory=dict)

    def fabric(self, hosts: int, nic_bps: int) -> Fabric:
        """A non-blocking Clos."""
        key = (hosts, nic_bps)
        if key not in self.fabrics:
            network, intent = clos_network(shape_of(hosts, nic_bps, 1.0))
            self.fabrics[key] = fabric_of("clos", network, intent.roce.dscp[0], hosts=hosts)
        return self.fabrics[key]

    def one(self, setup: Setup, gpus: int, nic_bps: int) -> Prediction:
        """One prediction on such a Clos."""
        hosts, _ = setup.hosts(gpus)
        return predict(setup, [gpus], self.fabric(hosts, nic_bps), self.constants)[0]


@dataclass(frozen=True)
class Figure:
    """One published figure. ``unit`` is images/s, speed-up, efficiency or ratio."""

    key: str
    source: str
    what: str
    unit: str
    published: float
    predict: Callable[[Bench], float]
    assumed: str = ""


def figures() -> tuple[Figure, ...]:
    """All of them."""
    parts = (_horovod_16, _horovod_64, _horovod_large, _dgx1, _ec2, _byteps, _article)
    return tuple(figure for part in parts for figure in part())


def _setup(model: str, gpu: str, per_host: int, batch: int = 0) -> Setup:
    images = batch or default_batch(model)
    return Setup(model, compute(gpu, model, images).step_s, images, per_host)


def _images(setup: Setup, gpus: int, nic_bps: int) -> Callable[[Bench], float]:
    return lambda bench: bench.one(setup, gpus, nic_bps).images_per_s


def _efficiency(setup: Setup, gpus: int, nic_bps: int) -> Callable[[Bench], float]:
    return lambda bench: bench.one(setup, gpus, nic_bps).efficiency


def _ratio(faster: Setup, slower: Setup, gpus: int, nic_bps: int) -> Callable[[Bench], float]:
    return lambda bench: (
        bench.one(slower, gpus, nic_bps).step_s / bench.one(faster, gpus, nic_bps).step_s
    )


def _horovod_16() -> Iterator[Figure]:
    published = {
        "inception_v3": (1576.4, 2073.3, 2073.1, 1990.7, 2022.6),
        "resnet101": (1168.8, 1338.3, 1446.3, 1685.1, 1746.2),
        "vgg16": (79.5, 616.8, 618.0, 1308.7, 1787.4),
    }
    for model, values in published.items():
        base = _setup(model, "pascal", 4)
        ways = {
            "ps": replace(
                base,
                sync="ps",
                software="tensorflow",
                transport="tcp",
                placement="whole",
                newer_grpc=False,
            ),
            "mpi-tcp": replace(base, software="horovod-mpi", transport="tcp"),
            "mpi-rdma": replace(base, software="horovod-mpi"),
            "nccl-tcp": replace(base, software="horovod", transport="tcp"),
            "nccl-rdma": replace(base, software="horovod"),
        }
        for (way, setup), value in zip(ways.items(), values, strict=True):
            yield Figure(
                f"horovod-16/{way}/{model}",
                HOROVOD_16,
                f"{model}, {way}, 16 GPUs",
                "images/s",
                value,
                _images(setup, 16, 25 * G),
                "variables are balanced by bytes, whole; every GPU fetches its own"
                if way == "ps"
                else "",
            )


def _horovod_64() -> Iterator[Figure]:
    published = {"inception_v3": 7932.1, "resnet101": 7741.6, "vgg16": 6084.2}
    for model, value in published.items():
        setup = replace(_setup(model, "pascal-40g", 4), software="horovod", transport="tcp")
        yield Figure(
            f"horovod-64/nccl-tcp/{model}",
            HOROVOD_64,
            f"{model}, nccl-tcp, 64 GPUs",
            "images/s",
            value,
            _images(setup, 64, 40 * G),
            "4 GPUs a server",
        )


def _horovod_large() -> Iterator[Figure]:
    for gpus, source, vgg16 in ((128, HOROVOD_128, 0.79), (512, HOROVOD_512, 0.68)):
        for model, value in {"inception_v3": 0.9, "resnet101": 0.9, "vgg16": vgg16}.items():
            setup = replace(_setup(model, "pascal", 4), software="horovod")
            yield Figure(
                f"horovod-{gpus}/nccl-rdma/{model}",
                source,
                f"{model}, nccl-rdma, {gpus} GPUs",
                "efficiency",
                value,
                _efficiency(setup, gpus, 25 * G),
            )


def _dgx1() -> Iterator[Figure]:
    published = {
        "inception_v3": 1131.0,
        "resnet50": 1734.0,
        "resnet152": 716.0,
        "vgg16": 1081.0,
        "alexnet": 17822.0,
    }
    for model, value in published.items():
        base = _setup(model, "p100", 8)
        ring = model in ("vgg16", "alexnet")
        setup = (
            replace(base, software="horovod", host_link="nvlink", overlap="none")
            if ring
            else replace(base, sync="ps", software="tensorflow", placement="whole")
        )
        yield Figure(
            f"dgx1-8/{'replicated' if ring else 'parameter-server'}/{model}",
            DGX1,
            f"{model}, 8 GPUs",
            "images/s",
            value,
            _images(setup, 8, 25 * G),
            "not overlapped" if ring else "variables in the host's memory",
        )


def _ec2() -> Iterator[Figure]:
    published = {"inception_v3": (1783.0, 6), "resnet50": (2744.0, 8), "resnet152": (981.0, 4)}
    for model, (value, servers) in published.items():
        setup = replace(
            _setup(model, "k80", 8, 32 if model == "resnet152" else 64),
            sync="ps",
            software="tensorflow",
            transport="tcp",
            placement="whole",
            newer_grpc=False,
            copies=1,
            servers=servers,
        )
        yield Figure(
            f"ec2-64/distributed-replicated/{model}",
            EC2,
            f"{model}, 64 GPUs, {servers} parameter servers",
            "images/s",
            value,
            _images(setup, 64, 10 * G),
            "10 Gbit/s, as AWS lists p2.8xlarge",
        )


def _byteps() -> Iterator[Figure]:
    published = {
        ("20g-tcp", "resnet50"): 1.44,
        ("20g-tcp", "vgg16"): 2.0,
        ("100g-rdma", "resnet50"): 1.07,
        ("100g-rdma", "vgg16"): 1.17,
    }
    for (network, model), value in published.items():
        slow = network == "20g-tcp"
        base = replace(
            _setup(model, "v100", 8),
            transport="tcp" if slow else "verbs",
            host_link="nvlink" if slow else "pcie",
        )
        faster, slower = replace(base, software="byteps"), replace(base, software="horovod")
        yield Figure(
            f"byteps/{network}/{model}",
            BYTEPS,
            f"{model}, BytePS over Horovod, {network}",
            "ratio",
            value,
            _ratio(faster, slower, 64, (20 if slow else 100) * G),
            "64 GPUs, 8 a host; as many server hosts",
        )


def _article() -> Iterator[Figure]:
    published = {
        "rdma-ps-over-grpc-ps": (1.2494, 1.4483, 1.3880, 1.2338),
        "ring-over-grpc-ps": (1.8477, 2.2543, 1.5640, 1.4004),
        "ring-over-horovod": (0.936, 1.02, 1.21, 1.36),
    }
    models = ("inception_v3", "resnet50", "resnet152", "vgg16")
    for name, values in published.items():
        for model, value in zip(models, values, strict=True):
            faster, slower = article_ways(model)[name]
            yield Figure(
                f"article/{name}/{model}",
                ARTICLE,
                f"{model}, {name}",
                "ratio",
                value,
                _ratio(faster, slower, 64, 25 * G),
                "GPUs of P100's speed; Horovod over TCP"
                if "horovod" in name
                else "GPUs of P100's speed; a server on every host, variables cut to fit, "
                "fetched once a host",
            )
    setup = article_setup("greennet", "ring")
    yield Figure(
        "article/greennet/128",
        ARTICLE_128,
        "greennet, speed-up on 128 GPUs",
        "speed-up",
        101.0,
        lambda bench: bench.one(setup, 128, 25 * G).speedup,
        "our GreenNet, since the article does not describe its own",
    )


def article_setup(model: str, mode: str) -> Setup:
    """One of the article's modes: ps-grpc, ps-rdma, ring (over RDMA), ring-tcp or horovod."""
    base = _setup(model, "p100", 2)
    ps = replace(base, sync="ps", software="tensorflow", copies=1)
    return {
        "ps-grpc": replace(ps, transport="tcp"),
        "ps-rdma": ps,
        "ring": replace(base, pipelined=True),
        "ring-tcp": replace(base, pipelined=True, transport="tcp"),
        "horovod": replace(base, software="horovod", transport="tcp"),
    }[mode]


def article_ways(model: str) -> dict[str, tuple[Setup, Setup]]:
    """The two ways that each of the article's ratios compares, the faster one first."""
    ring, grpc = article_setup(model, "ring"), article_setup(model, "ps-grpc")
    return {
        "rdma-ps-over-grpc-ps": (article_setup(model, "ps-rdma"), grpc),
        "ring-over-grpc-ps": (ring, grpc),
        "ring-over-horovod": (ring, article_setup(model, "horovod")),
    }
