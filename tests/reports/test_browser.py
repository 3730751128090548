"""The pages in a real browser: Debian's chromium, driven by Playwright; skipped without it."""

import dataclasses
import os
import shutil

import pandas as pd
import pytest

from reports.content.article import article
from reports.content.compare import compare
from reports.content.gather import gather
from reports.content.trace import read_trace
from reports.page.article import render_article
from reports.page.html import write_page
from reports.page.render import render_page
from tests.reports.test_trace import spans
from trainer.timeline import write_trace

CHROMIUM = shutil.which("chromium")
WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium"),
]

# What a keyboard has to reach: in the order of the page, by what it is called.
_INTERACTIVE = """() => [...document.querySelectorAll('a[href], summary, [tabindex="0"]')]
    .filter(node => node.getClientRects().length)
    .map(node => node.outerHTML.slice(0, 120))"""
_FOCUSED = "() => document.activeElement.outerHTML.slice(0, 120)"
# The text in a figure must be told from what is behind it.
_INK = """() => [...document.querySelectorAll('svg text')].map(node => {
    const ink = getComputedStyle(node).fill.match(/[0-9.]+/g).slice(0, 3).map(Number);
    return 0.3 * ink[0] + 0.59 * ink[1] + 0.11 * ink[2]; })"""
_PAPER = """() => { const paper = getComputedStyle(document.querySelector('section'))
    .backgroundColor.match(/[0-9.]+/g).slice(0, 3).map(Number);
    return 0.3 * paper[0] + 0.59 * paper[1] + 0.11 * paper[2]; }"""


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    # A sandbox of its own is not to be had as root.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield started
        started.close()


@pytest.fixture(scope="module")
def pages(twice_once, tmp_path_factory):
    """The fullest page of a run, an empty one, and the article's."""
    from validation.results.store import list_runs

    folder = tmp_path_factory.mktemp("pages")
    earlier, now = list_runs(twice_once)
    write_trace(folder / "trace.json", {0: spans(20), 1: spans(20, 300)})
    full = gather(twice_once, earlier)
    full = dataclasses.replace(
        full,
        tcp_latency=full.latency.assign(p50_us=12.0, p99_us=15.0),
        trace=read_trace(folder / "trace.json"),
        comparison=compare(earlier, now),
    )
    nothing = {
        field.name: pd.DataFrame()
        for field in dataclasses.fields(full)
        if isinstance(getattr(full, field.name), pd.DataFrame)
    }
    empty = dataclasses.replace(
        full, **nothing, tiles=(), why=(), trace=None, comparison=None, certificate=None
    )
    texts = {
        "full": render_page(full),
        "empty": render_page(empty),
        "article": render_article(article(twice_once, earlier)),
    }
    return {name: write_page(text, folder / f"{name}.html") for name, text in texts.items()}


@pytest.fixture(params=["full", "empty", "article"])
def page_file(request, pages):
    return pages[request.param]


def opened(browser, path, width=1280, scheme="light"):
    """A page, the complaints of its console, and what it asked for."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_load_state("networkidle")
    return page, said, asked


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wrong_asked_for_or_too_wide(browser, page_file, width, scheme):
    page, said, asked = opened(browser, page_file, width, scheme)
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [page_file.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    # Not even where the numbers of every figure are open.
    page.evaluate("document.querySelectorAll('details').forEach(node => node.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.context.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_keyboard_reaches_everything_in_order_and_sees_where_it_is(browser, page_file, width):
    page, _, _ = opened(browser, page_file, width)
    page.evaluate("document.querySelectorAll('details').forEach(node => node.open = true)")
    wanted = page.evaluate(_INTERACTIVE)
    reached = []
    for _ in wanted:
        page.keyboard.press("Tab")
        reached.append(page.evaluate(_FOCUSED))
    assert reached == wanted
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.context.close()


def test_the_keyboard_opens_the_numbers_of_a_figure(browser, pages):
    page, _, _ = opened(browser, pages["full"])
    summary = page.locator("#bandwidth summary")
    cell = page.locator("#bandwidth td").first
    assert not cell.is_visible()
    summary.focus()
    page.keyboard.press("Enter")
    assert cell.is_visible()
    page.context.close()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_figures_can_be_read_in_light_and_dark(browser, pages, scheme):
    page, _, _ = opened(browser, pages["full"], scheme=scheme)
    paper = page.evaluate(_PAPER)
    assert (paper < 60) == (scheme == "dark")
    # Numbers in the heat map stand on its cells, not on the page.
    inks = page.evaluate(_INK.replace("'svg text'", "'figure:not(#bandwidth) svg text'"))
    assert len(inks) > 100
    assert min(abs(ink - paper) for ink in inks) > 60
    page.context.close()


def test_it_prints_whole_and_light(browser, pages):
    page, _, _ = opened(browser, pages["full"], scheme="dark")
    tall = page.locator("#checks .scroll.tall")
    assert tall.evaluate("node => node.scrollHeight > node.clientHeight")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(_PAPER) > 250
    assert tall.evaluate("node => node.scrollHeight <= node.clientHeight + 1")
    assert not page.locator("nav").is_visible()
    assert page.locator(".verdict").first.is_visible()
    assert page.locator("svg").first.is_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.context.close()


def test_links_of_the_page_jump_to_their_section(browser, pages):
    page, _, _ = opened(browser, pages["full"])
    for link in page.locator("nav a").all():
        link.click()
        target = page.locator(link.get_attribute("href"))
        top = target.evaluate("node => node.getBoundingClientRect().top")
        assert -5 <= top < 900
    page.context.close()
