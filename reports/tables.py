"""The report's frames beside the page: CSV for people, Parquet for programs, JUnit for CI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd

from reports.content.article import Article
from reports.content.model import ReportContent


def write_tables(content: ReportContent, folder: Path) -> tuple[Path, ...]:
    """Write every frame that is not empty, as NAME.csv and NAME.parquet, and junit.xml."""
    frames = {
        name: frame.assign(**_rests_on(name, content)) for name, frame in _frames(content).items()
    }
    written = write_frames(frames, folder)
    junit = folder / "junit.xml"
    junit.write_bytes(ET.tostring(_junit(content), xml_declaration=True, encoding="utf-8"))
    return (*written, junit)


def write_article_tables(article: Article, folder: Path) -> tuple[Path, ...]:
    """The frames of the article's figures, each with its evidence in a column."""
    frames = {"speedup": article.speedup, "images": article.images, "ratios": article.ratios}
    if article.soak is not None:
        frames["soak"] = article.soak.frame
    return write_frames(frames, folder)


def write_frames(frames: Mapping[str, pd.DataFrame], folder: Path) -> tuple[Path, ...]:
    """Write every frame that is not empty, as NAME.csv and NAME.parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, frame in frames.items():
        if frame.empty:
            continue
        csv, parquet = folder / f"{name}.csv", folder / f"{name}.parquet"
        frame.to_csv(csv, index=False)
        frame.to_parquet(parquet, index=False)
        written += [csv, parquet]
    return tuple(written)


def _frames(content: ReportContent) -> dict[str, pd.DataFrame]:
    frames = {
        "checks": content.checks,
        "coverage": content.coverage,
        "bandwidth": content.bandwidth,
        "latency": content.latency,
        "incast": content.incast,
        "senders": content.senders,
        "queues": content.queues,
        "pauses": content.pauses,
        "counters": content.counters,
        "findings": content.findings,
        "suites": content.suites,
        "tcp_latency": content.tcp_latency,
        "mixed": content.mixed,
        "burst": content.burst,
        "collective": content.collective,
        "soak": content.soak,
        "ecn": content.ecn,
        "cnps": content.cnps,
    }
    if content.training is not None:
        frames["training"] = content.training.epochs
    if content.trace is not None:
        frames["timeline"] = content.trace.frame
    if content.forecast is not None:
        frames["forecast"] = content.forecast.frame
    if content.comparison is not None:
        frames |= {
            "compared_measures": content.comparison.measures,
            "compared_verdicts": content.comparison.verdicts,
            "compared_volumes": content.comparison.volumes,
        }
    return frames


def _rests_on(name: str, content: ReportContent) -> dict[str, str]:
    """A training is real; what has a class is the evidence that admitted it."""
    if name == "training" and content.training is not None:
        return {"gate_evidence_class": content.training.gate_class}
    if name in ("forecast", "timeline"):
        return {"evidence": "predicted" if name == "forecast" else "measured"}
    return {"evidence_class": content.evidence_class}


def _junit(content: ReportContent) -> ET.Element:
    root = ET.Element("testsuites", name=f"{content.site} ({content.evidence_class})")
    if content.checks.empty:
        return root
    for suite, checks in content.checks.groupby("suite", sort=False):
        bad = checks["verdict"].isin(["FAIL", "NOT_RUN"])
        skipped = checks["verdict"] == "SKIP"
        node = ET.SubElement(
            root,
            "testsuite",
            name=str(suite),
            tests=str(len(checks)),
            failures=str(int(bad.sum())),
            skipped=str(int(skipped.sum())),
        )
        for check in checks.itertuples(index=False):
            case = ET.SubElement(
                node, "testcase", classname=str(suite), name=f"{check.check} {check.subject}"
            )
            if check.verdict in ("FAIL", "NOT_RUN"):
                ET.SubElement(case, "failure", message=str(check.reason), type=str(check.verdict))
            elif check.verdict == "SKIP":
                ET.SubElement(case, "skipped", message=str(check.reason))
    return root
