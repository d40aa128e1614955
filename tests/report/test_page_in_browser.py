"""The page in Debian's chromium: every control, light and dark, on a phone, on paper, without a network."""

import math
import os
import shutil

import pytest
from lived import BATCH, BEGINNING, CALLED, CLEARED, COMPUTED, ENDED, PATH, SIZES, STEPPED, lived
from runs import RUNS

from truestep import events as ev
from truestep.report.page.write_page import write
from truestep.supervision.judge import Judge
from truestep.supervision.record import Recorder, read
from truestep.supervision.stream import EventStream

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra dev")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt-get install chromium)")
PAGES = {
    "mixed": lambda: [lived(40, clears=False, losses=[(0, 2.3), (3, 2.0), (20, 1.5)])],
    "clean": lambda: [lived(40, losses=[(0, 2.3), (3, 2.0), (20, 1.5)], read=SIZES)],
    "died": lambda: [RUNS["died"]],
    "many": lambda: [RUNS["many"]],
    "nothing": lambda: [RUNS["nothing"]],
    "two": lambda: [
        lived(40, losses=[(0, 2.3), (20, 1.5)], record="runs/a"),
        lived(12, clears=False, losses=[(0, 2.2), (9, 2.1)], record="runs/b"),
    ],
}


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Return a function that opens a page; afterwards no error and no request may have been seen."""
    seen, contexts = [], []

    def open_page(summaries, *, width=1280, **options):
        file = tmp_path / f"page-{len(contexts)}.html"
        write(summaries, file)
        context = browser.new_context(viewport={"width": width, "height": 900}, reduced_motion="reduce", **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: seen.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: seen.append(f"error: {error}"))
        page.on("request", lambda request: seen.append(request.url) if request.url != file.as_uri() else None)
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert seen == []


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [375, 1280])
def test_no_page_is_wider_than_the_screen(opened, name, width):
    page = opened(PAGES[name](), width=width)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_every_text_has_contrast(opened, name, scheme):
    page = opened(PAGES[name](), color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    weak = page.evaluate(CONTRAST)
    assert weak == []


CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255).map((s) => s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (place) => {
    for (; place; place = place.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(place).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const weak = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const place = node.parentElement;
    if (!node.textContent.trim() || place.closest('.hidden, script, .share') || !place.checkVisibility()) continue;
    const [one, two] = [light(parse(getComputedStyle(place).color).slice(0, 3)), light(behind(place))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (ratio < 4.5) weak.add(`${place.tagName}.${place.className} ${ratio.toFixed(2)}`);
  }
  return [...weak];
}"""


def test_colours_follow_the_system_and_the_control(opened):
    page = opened(PAGES["clean"](), color_scheme="dark")
    dark = background(page)
    page.get_by_role("button", name="light", exact=True).click()
    light = background(page)
    assert light != dark
    assert page.get_by_role("button", name="light", exact=True).get_attribute("aria-pressed") == "true"
    page.reload()
    assert background(page) == light
    page.get_by_role("button", name="dark", exact=True).click()
    assert background(page) == dark
    page.get_by_role("button", name="auto", exact=True).click()
    page.emulate_media(color_scheme="light")
    assert background(page) == light


def test_rules_are_searched_and_filtered(opened):
    page = opened(PAGES["mixed"]())
    rows = page.locator("#r0-rules tbody tr:visible")
    total = rows.count()
    page.get_by_role("searchbox").fill("zero grad".replace(" ", "-"))
    assert 1 <= rows.count() < 10
    assert page.locator(".filter .count").inner_text() == str(rows.count())
    page.get_by_role("searchbox").fill("")
    page.get_by_role("button", name="found", exact=True).click()
    assert rows.locator("th").all_inner_texts() == ["missing-zero-grad"]
    page.get_by_role("button", name="clear", exact=True).click()
    clear = rows.count()
    page.get_by_role("button", name="found", exact=True).click()
    assert rows.count() == clear - 1
    page.get_by_role("button", name="clear", exact=True).click()
    assert rows.count() == total
    page.get_by_role("searchbox").fill("no such rule")
    assert rows.count() == 0


def test_steps_of_charts_are_linear_or_logarithmic(opened):
    page = opened(PAGES["clean"]())
    assert page.locator("path.line.linear").first.is_visible()
    assert not page.locator("path.line.log").first.is_visible()
    page.get_by_role("button", name="logarithmic").click()
    assert page.locator("path.line.log").first.is_visible()
    assert not page.locator("path.line.linear").first.is_visible()
    page.get_by_role("button", name="linear", exact=True).click()
    assert page.locator("path.line.linear").first.is_visible()


@pytest.mark.parametrize("scale", ["linear", "logarithmic"])
def test_values_under_the_pointer_and_the_keys(opened, scale):
    page = opened(PAGES["clean"]())
    page.get_by_role("button", name=scale, exact=True).click()
    chart = page.locator(".chart").first
    tip = chart.locator(".tip")
    box = chart.locator(".area").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 20)
    assert tip.inner_text() == "step 20\ntrain.py:38: 1.5"
    page.mouse.move(5, 5)
    assert not tip.is_visible()
    chart.locator(".plot").focus()
    for key, shown in (("ArrowRight", "2.3"), ("ArrowRight", "2"), ("End", "1.5"), ("ArrowLeft", "2"), ("Home", "2.3")):
        page.keyboard.press(key)
        assert tip.inner_text().endswith(f": {shown}")
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_a_page_of_a_run_that_goes_on_loads_again_with_the_same_parts_open(browser, tmp_path):
    file, context = tmp_path / "page.html", browser.new_context()
    page = context.new_page()
    write([lived(20, how="unfinished", losses=[(0, 2.3), (3, 2.0)])], file, reload_s=0.5)
    page.goto(file.as_uri())
    opened = page.locator("#ledger details").first
    opened.locator("summary").click()
    write([lived(40, losses=[(0, 2.3), (3, 2.0)])], file)
    page.locator("b", has_text="40").first.wait_for()
    assert opened.get_attribute("open") is not None
    assert page.locator("#ledger details[open]").count() == 1
    assert page.evaluate("document.documentElement.dataset.reload") is None
    context.close()


def test_cells_of_layers_are_darker_for_larger_values(opened):
    page = opened(PAGES["clean"](), color_scheme="light")
    gradients, updates = page.locator("#layers table").all()
    rows = gradients.locator("tbody tr").all()
    light = "(one) => parseFloat(getComputedStyle(one).backgroundColor.match(/[0-9.]+/g)[0])"
    shades = [cell.evaluate(light) for cell in rows[0].locator("td").all()]
    assert shades == sorted(shades)
    assert len(set(shades)) == 3
    assert rows[1].locator("td").nth(1).text_content() == "00"  # the hidden value, and the sign
    assert rows[1].locator("td").nth(2).get_attribute("title") == "parameter 2, step 20: nan"
    assert updates.locator("td.zero").count() == 3
    page.locator("nav a", has_text="Layers").click()
    assert page.locator("#layers:target").count() == 1


def test_lines_are_explained_one_by_one_and_all_together(opened):
    page = opened(PAGES["clean"]())
    duties = page.locator("details.duty")
    duties.first.locator("summary").click()
    assert duties.first.locator("p").first.is_visible()
    button = page.get_by_role("button", name="explain every line")
    button.click()
    assert page.locator("details.duty[open]").count() == duties.count() > 5
    button.click()
    assert page.locator("details.duty[open]").count() == 0


def test_links_lead_to_lines_and_manual_pages_and_open_them(opened):
    page = opened(PAGES["mixed"]())
    manual = page.locator("#manual-missing-zero-grad")
    assert manual.get_attribute("open") is None
    page.locator(".card a.rule").first.click()
    assert manual.get_attribute("open") == ""
    page.locator("#score a.beat.wrong").first.click()
    assert page.evaluate("document.querySelector(':target').textContent").strip().startswith("41")
    page.locator("details.file summary").first.click()
    page.locator("#score a.beat").last.click()
    assert page.locator("#r0-f0-L41").is_visible()


def test_all_sections_are_reached_by_links_and_every_part_opens_by_keyboard(opened):
    page = opened(PAGES["mixed"]())
    for link in page.locator("nav a").all():
        link.click()
        assert page.locator(":target").count() == 1
    closed = page.locator("main details:not([open]) > summary:visible")
    closed.first.focus()
    before = closed.count()
    page.keyboard.press("Enter")
    assert page.locator("main details:not([open]) > summary:visible").count() != before


def test_the_arrow_joins_the_two_lines(opened):
    page = opened(PAGES["mixed"]())
    arrow = page.locator(".arrow").first.bounding_box()
    rows = [page.locator(f".excerpt .num.{kind}").first.bounding_box() for kind in ("warm", "hot")]
    assert all(row["x"] + row["width"] > arrow["x"] for row in rows)
    top, bottom = (row["y"] + row["height"] / 2 for row in rows)
    assert abs(arrow["y"] - top) < 8
    assert abs(arrow["y"] + arrow["height"] - bottom) < 8


def test_on_paper_facts_are_open_and_controls_are_gone(opened):
    page = opened(PAGES["mixed"]())
    page.get_by_role("button", name="dark", exact=True).click()
    page.emulate_media(media="print")
    assert background(page) == "rgb(255, 255, 255)"
    code, label, below = (
        page.locator(f".excerpt {selector}").first.bounding_box()
        for selector in ("code.warm", ".labels", "code.warm ~ code")
    )
    assert code["y"] + code["height"] <= label["y"] + 1
    assert label["y"] + label["height"] <= below["y"] + 1
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".ledger details:not([open])").count() == 0
    assert not page.locator("header").is_visible()
    assert not page.locator("#manual").is_visible()  # all of its pages are closed
    page.set_viewport_size({"width": 718, "height": 900})  # a sheet of A4 between its margins
    wide = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.className)"
    assert page.locator(".patch, .scroll").evaluate_all(wide) == []
    assert page.locator(".score").first.evaluate("(one) => one.scrollWidth <= one.parentElement.clientWidth")
    assert not page.get_by_role("searchbox").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".ledger details[open]").count() == 0
    assert len(page.pdf()) > 10_000


def test_a_file_that_is_not_here_has_its_facts(opened, programs):
    summary = lived(40)
    (programs / PATH).write_text("", encoding="utf-8")
    assert "The file cannot be read" in opened([summary]).locator("#loop").inner_text()


@pytest.mark.slow
def test_a_run_of_a_million_steps_opens(opened, tmp_path, capsys):
    recorder = Recorder(tmp_path / "long", ev.RunStarted(script=PATH))
    stream = EventStream(Judge([]), recorder)
    for event in BEGINNING:
        stream.take(event)
    for step in range(1_000_000):
        for event in (BATCH, CLEARED, CALLED, COMPUTED):
            stream.take(event)
        if step < 4 or step % 1009 == 0:
            stream.take(
                ev.LossRead(value=round(2.3 * math.exp(-step / 3e5) + 0.1 * math.sin(step), 4), site=ENDED.site)
            )
            stream.take(ev.LearningRateRead(optimizer=1, rates=(round(1e-3 * math.cos(step / 1e6), 8),)))
        stream.take(ENDED)
        stream.step(STEPPED)
    stream.close()
    stream.settle()
    recorder.close("finished", [])
    summary = read(tmp_path / "long")
    assert summary.steps == 1_000_000
    page = opened([summary])
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
    drawn_s = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
    complete_s = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000
    size = (tmp_path / "page-0.html").stat().st_size
    with capsys.disabled():
        print(f"\na page of 10^6 steps ({size / 1000:.0f} kB): drawn after {drawn_s:.2f} s, all {complete_s:.2f} s")
    if os.getloadavg()[0] < (os.cpu_count() or 1):  # else the clock measures other programs
        assert max(drawn_s, complete_s) < 2.0
    assert page.locator("h1").inner_text() == "No failure found"
    assert page.locator("path.line.linear").count() == 2
