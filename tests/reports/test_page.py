"""The report: one page that stands alone, and the same numbers in tables beside it."""

import dataclasses
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pandas as pd

from reports.content.gather import gather
from reports.content.measures import Tile, why
from reports.content.model import GateRefusal
from reports.page.html import write_page
from reports.page.render import render_page
from reports.tables import write_tables
from validation.results import frames
from validation.results.states import STATES_FILE


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
    assert "(<code>paisoar validate bandwidth latency incast</code>)" in page
    assert "(<code>paisoar validate mixed burst collective soak</code>)" in page
    assert "No result in this run: PFC frames; ECN marks; Congestion notifications." in page
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


class _Tables(HTMLParser):
    """The rows of the table beside each figure, by the figure's id."""

    def __init__(self):
        super().__init__()
        self.tables, self._figure, self._row, self._cell = {}, "", None, None

    def handle_starttag(self, tag, attrs):
        if tag == "figure":
            self._figure = dict(attrs)["id"]
            self.tables[self._figure] = []
        elif tag == "tr" and self._figure:
            self._row = []
        elif tag in ("td", "th") and self._row is not None:
            self._cell = ""

    def handle_data(self, data):
        if self._cell is not None:
            self._cell += data

    def handle_endtag(self, tag):
        if tag == "figure":
            self._figure = ""
        elif tag == "tr" and self._row is not None:
            self.tables[self._figure].append(self._row)
            self._row = None
        elif tag in ("td", "th") and self._cell is not None:
            self._row.append(self._cell)
            self._cell = None


def tables(page):
    reader = _Tables()
    reader.feed(page)
    return reader.tables


def test_the_numbers_beside_figures_are_those_that_are_stored(twice, runs):
    sound, _ = runs
    found = tables(render_page(gather(twice, sound)))
    head, *rows = found["bandwidth"]
    stored = frames.bandwidth_frame(sound)
    shown = {(row[0], row[1]): float(row[head.index("goodput_gbps")]) for row in rows}
    wanted = {(r.source, r.target): round(r.goodput_gbps, 3) for r in stored.itertuples()}
    assert shown == wanted
    for name, check, column in (
        ("mixed", "mixed.share", "share"),
        ("burst", "burst.fraction", "fraction"),
        ("collective", "collective.busbw", "busbw"),
    ):
        head, *rows = found[name]
        values = [round(c.value, 3) for c in sound.all_checks if c.id == check]
        assert [float(row[head.index(column)]) for row in rows] == values
    head, *rows = found["soak"]
    means = frames.soak_frame(sound).groupby("host")["goodput_gbps"].mean()
    assert {row[0]: float(row[head.index("mean Gb/s")]) for row in rows} == {
        host: round(mean, 3) for host, mean in means.items()
    }
    head, *rows = found["forecast"]
    assert {row[head.index("model")] for row in rows} == {"resnet50", "vgg16"}


def test_every_figure_and_its_caption_say_what_they_rest_on(twice, runs):
    page = render_page(gather(twice, runs[0]))
    figures = re.findall(r'(?s)<figure class="[^"]*" id="([^"]*)">(.*?)</figure>', page)
    assert len(figures) >= 11
    for name, figure in figures:
        word = "predicted" if name == "forecast" else "simulated"
        assert word in re.search(r"(?s)<svg.*?</svg>", figure)[0]
        caption = re.search(r"(?s)<figcaption>(.*?)</figcaption>", figure)[1]
        assert f"<b>{word.capitalize()}.</b>" in caption


def test_a_measured_run_is_called_measured(content):
    page = render_page(dataclasses.replace(content, evidence_class="soft-roce"))
    assert "measured over software RoCE (soft-roce)" in page
    assert "it never proves losslessness" in page


def test_the_verdict_comes_first_with_why_and_the_numbers_that_carry_it(twice, runs):
    sound, slow = runs
    page = render_page(gather(twice, slow))
    top = page[page.index('id="top"') : page.index('id="wrong"')]
    failed = len([c for c in slow.all_checks if c.verdict == "FAIL"])
    assert f"Of {len(slow.all_checks)} checks {failed} failed, in bandwidth" in top
    assert '<div class="tile fail"><dt>Slowest pair, of the wire</dt><dd class="value">48 %' in top
    assert "FAIL, at least 90 %; host1:ens1f0 -&gt; host2:ens1f0" in top
    assert "No certificate holds" in top
    assert "Slowest collective" in top
    page = render_page(gather(twice, sound))
    assert re.search(r"[\d,]+ checks of 8 suites passed", page)


def test_a_run_that_did_not_end_is_said_to_be_unfinished(runs):
    lines = why(dataclasses.replace(runs[0], status="running", unread={"leaf1": "timed out"}))
    assert lines[0].startswith("The run is running, not complete")
    assert "leaf1 did not answer: timed out" in lines


def test_an_empty_run_has_a_page(twice, runs):
    bare = dataclasses.replace(runs[0], suites=(), checks=(), before=None, status="partial")
    content = gather(twice, bare)
    page = render_page(content)
    assert "Nothing was checked." in page
    assert "No suite was run." in page
    assert 'class="tile' not in page
    assert list(tables(page)) == ["forecast"]
    (bare.folder / STATES_FILE).unlink()
    page = render_page(gather(twice, bare))
    assert "what the devices held was not kept with this run" in page
    assert "<svg" not in page


def test_no_name_from_a_device_becomes_markup(content):
    evil = "<script>alert(1)</script>&\"'"
    frame = content.bandwidth.assign(source=evil)
    page = render_page(
        dataclasses.replace(
            content,
            site=evil,
            why=(evil,),
            tiles=(Tile(evil, evil, evil, "FAIL", evil),),
            bandwidth=frame,
            latency=content.latency.assign(source=evil, target="b"),
            pauses=content.pauses.assign(device=evil),
            ecn=pd.DataFrame({"device": [evil], "port": ["1"], "ecn_marked": [3]}),
            counters=content.counters.assign(device=evil),
            lacking=(evil,),
            run_id=evil,
            audited_at=evil,
            certificate=dataclasses.replace(content.certificate, valid=False, reason=evil, id=evil),
            training=dataclasses.replace(content.training, model=evil, data=evil, transport=evil),
            versions={evil: evil},
        )
    )
    assert "<script" not in page
    assert "alert(1)" in page
    figures = re.findall(r"(?s)<svg.*?</svg>", page)
    assert all(ET.fromstring(figure) is not None for figure in figures)
