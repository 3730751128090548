"""The report: one page that stands alone, and the same numbers in tables beside it."""

import dataclasses
import re
from xml.etree import ElementTree as ET

import pandas as pd

from reports.content.model import GateRefusal
from reports.page.html import write_page
from reports.page.render import render_page
from reports.tables import write_tables


def test_the_page_names_verdict_class_certificate_and_accuracy(content):
    page = render_page(content)
    for words in ("FAILED", "simulated", "cert-1", "98.10 %", "says nothing about hardware"):
        assert words in page


def test_the_page_loads_nothing_from_elsewhere(content):
    page = render_page(content)
    assert "<script" not in page
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#|data:)""", page)
    assert "@import" not in page


def test_every_figure_carries_its_evidence_class(content):
    page = render_page(content)
    figures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(figures) == 7
    assert all("simulated" in figure for figure in figures)


def test_training_is_called_real_and_only_its_admission_simulated(content, tmp_path):
    page = render_page(content)
    assert "real training (2 ranks, shm); admitted on simulated evidence" in page
    assert "no packet crossed the fabric" in page
    write_tables(content, tmp_path)
    frame = pd.read_csv(tmp_path / "training.csv")
    assert set(frame["gate_evidence_class"]) == {"simulated"}
    assert "evidence_class" not in frame


def test_accuracy_on_training_images_is_not_called_test_accuracy(content):
    assert content.training is not None
    untested = dataclasses.replace(content.training, tested=False)
    page = render_page(dataclasses.replace(content, training=untested))
    assert "Training accuracy" in page
    assert "accuracy on training images (right)" in page
    assert "Test accuracy" not in page


def test_a_refusal_beside_an_older_training_is_told(content):
    refusal = GateRefusal("2026-12-01 12:00 UTC", "expired", "it expired.", "Run `x <y>`.")
    page = render_page(dataclasses.replace(content, refusal=refusal))
    assert "(expired): it expired. Run <code>x &lt;y&gt;</code>." in page
    assert "98.10 %" in page


def test_counters_are_told_by_meaning_and_volumes_are_folded(content):
    page = render_page(content)
    loss, pause = page.index("rx_discards"), page.index("tx_pause_frames")
    folded, volume = page.index('class="volumes"'), page.index("rx_bytes")
    assert loss < pause < folded < volume < page.index("</details>", folded)
    assert "Storms: none moved" in page


def test_words_of_tables_are_not_broken_and_numbers_stand_to_the_right(content):
    page = render_page(content)
    assert re.search(r"th, td \{[^}]*white-space: nowrap", page)
    assert "<td class='number' data-label='value'>1,234</td>" in page
    assert "<td class='sentence' data-label='reason'>" in page
    assert re.search(r"\.sentence \{[^}]*overflow-wrap: break-word", page)


def test_failures_come_before_what_was_skipped(content):
    checks = content.checks.iloc[::-1].reset_index(drop=True)
    page = render_page(dataclasses.replace(content, checks=checks))
    assert page.index("PFC is off") < page.index("not shown")


def test_a_long_table_says_that_its_box_scrolls_and_takes_the_keyboard(content):
    checks = pd.concat([content.checks] * 100, ignore_index=True)
    page = render_page(dataclasses.replace(content, checks=checks))
    assert "300 rows, the first 200 of them here and all in the tables" in page
    boxes = re.findall(r'<div class="scroll[^>]*>', page)
    assert all('tabindex="0"' in box and "aria-label" in box for box in boxes)
    assert any("tall" in box for box in boxes)


def test_thin_coverage_is_marked(content):
    coverage = pd.DataFrame({"suite": ["bandwidth"], "expected": [6], "run": [5]})
    assert "<tr class='not_run'>" in render_page(dataclasses.replace(content, coverage=coverage))


def test_links_of_the_page_lead_somewhere(content):
    page = render_page(content)
    targets = set(re.findall(r'<a href="#([^"]*)"', page))
    assert targets
    assert targets <= set(re.findall(r'\bid="([^"]*)"', page))


def test_text_of_devices_cannot_become_markup(content):
    page = render_page(content)
    assert "PFC is off &lt;there&gt;" in page
    assert "<there>" not in page


def test_what_was_not_measured_is_said_and_not_drawn(content):
    empty = pd.DataFrame()
    bare = dataclasses.replace(
        content, checks=empty, coverage=empty, bandwidth=empty, latency=empty, incast=empty,
        senders=empty, queues=empty, pauses=empty, counters=empty, certificate=None, training=None,
    )  # fmt: skip
    page = render_page(bare)
    assert "<svg" not in page
    assert page.count("not measured in this run (<code>paisoar validate ") == 9
    assert "None was issued" in page
    assert "No training has run" in page


def test_tables_repeat_the_numbers_with_their_class(content, tmp_path):
    write_page(render_page(content), tmp_path / "index.html")
    write_tables(content, tmp_path / "tables")
    frame = pd.read_parquet(tmp_path / "tables" / "bandwidth.parquet")
    assert set(frame["evidence_class"]) == {"simulated"}
    assert pd.read_csv(tmp_path / "tables" / "checks.csv").shape[0] == 3
    assert not (tmp_path / "tables" / "findings.csv").exists()
    suites = ET.parse(tmp_path / "tables" / "junit.xml").getroot()
    assert {s.get("name"): (s.get("failures"), s.get("skipped")) for s in suites} == {
        "bandwidth": ("0", "0"),
        "incast": ("1", "1"),
    }
