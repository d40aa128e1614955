"""Results of experiments as pages: their contents, and the pages in chromium, wide and narrow, light and dark."""

import math
import shutil
from dataclasses import replace

import pytest

from truestep.debugging.timings import ModuleTime, PhaseTime
from truestep.errors import UnwritableFolder
from truestep.experiments.compare.compare import Comparison, Measured
from truestep.experiments.figures.figure import Figure
from truestep.experiments.figures.speedup_statistics import Judged, SpeedVerdict
from truestep.experiments.overfit.overfit import LearningVerdict, Overfit
from truestep.experiments.profile.profile import Holder, LineTime, MemoryProfile, Operation, Profiled
from truestep.experiments.prove.prove import LOSS, RemedyProof
from truestep.experiments.reports import pages
from truestep.experiments.running.outcome import RunOutcome, Variant
from truestep.experiments.tune.tune import CONTROL
from truestep.experiments.tune.tuned import SpeedupRow, Tuned
from truestep.report.page.experiment_page import render_experiment, write_experiment

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OUTCOME = RunOutcome(Variant("as it is"), "stopped")
APART = Figure("accuracy", (76.3, 76.4, 76.5), (92.1, 92.4, 92.2))
CURVES = (
    tuple((2.0, 1.5 + seed / 10, 1.4) for seed in range(3)),
    tuple((2.0, 1.0 + seed / 10, 0.2) for seed in range(3)),
)


def proof():
    return RemedyProof(
        "clip-after-step", "clip-first", (APART,), (Figure(LOSS, (1.4,) * 3, (0.2,) * 3),), CURVES, CURVES, 3
    )


def comparison():
    measured = (Measured(APART, "higher", True), Measured(Figure(LOSS, (1.4,) * 3, (0.2,) * 3), "lower", False))
    return Comparison((("--lr", "0.1"), ("--lr", "<0.01>")), measured, CURVES, (1.5, 2.0), 0.005, 3)


def tuned():
    rows = [
        SpeedupRow(("fused-optimizer",), "gain", Judged(1.6, 1.5, 1.7, SpeedVerdict.GAIN), 1.1, 0.2),
        SpeedupRow(("workers",), "slower", Judged(0.7, 0.6, 0.8, SpeedVerdict.SLOWER)),
        SpeedupRow(("compile",), "failed", note="no compiler"),
    ]
    return Tuned("cpu", 0.01, {"data": 0.002, "forward": 0.008}, 2**28, rows, best=("fused-optimizer",))


def profiled(path):
    memory = MemoryProfile(
        "cpu", 1000, 1000, 2000, 2**28, 5000, "forward", "aten::mm", (path, 2), 0.4, (1000, 5000, 2000),
        ((0.0, 0.5, "forward"), (0.5, 1.0, "backward")), (1000, 1000), (Holder(3000, "forward", "model.0", (path, 2)),),
        9000.0,
    )  # fmt: skip
    lines = (
        LineTime(path, 2, "<module>", "forward", 6.0, 0.6, 60, None),
        LineTime(path, 2, "<module>", "loss", 1.0, 0.1, 10, None),
        LineTime(path, 3, "<module>", "backward", 2.0, 0.2, 20, None),
    )
    return Profiled(
        5, 2, 1.0, 10.0, (PhaseTime("forward", 6.0, 0.6), PhaseTime("backward", 4.0, 0.4)), (10.0,) * 5, (1.1, 1.0),
        lines, 90, (ModuleTime("model", "Sequential", 0, 1.0, 5.0, 3.0, 0.8, None, 1.0, 1.0),),
        (Operation("aten::mm", "forward", 2.0, 3.0, 0.3, "64x64 64x64", "model.0", (path, 2), None),), memory, {}, 0,
        {}, 0, True, ("SGD",), 1, "", 0.0, OUTCOME,
    )  # fmt: skip


def every(folder):
    script = folder / "train.py"
    script.write_text("import torch\nloss = model(x).mean()\nloss.backward()\n", encoding="utf-8")
    stuck = Overfit(
        LearningVerdict.STUCK, "this loop is stuck", (2.3, math.nan, 2.3), OUTCOME, None, ("the rate is 0",)
    )
    return {
        "prove": pages.prove_page("truestep prove train.py", [proof()], "as text"),
        "compare": pages.compare_page("truestep compare train.py", comparison(), "as text"),
        "overfit": pages.overfit_page("truestep overfit train.py", stuck, "as text"),
        "tune": pages.tune_page("truestep tune train.py", "train.py", tuned(), "as text"),
        "profile": pages.profile_page("truestep profile train.py", profiled(str(script)), str(folder), "as text"),
    }


@pytest.fixture
def html(tmp_path):
    return {name: render_experiment(page) for name, page in every(tmp_path).items()}


@pytest.mark.parametrize(("high", "even"), [(1.01, True), (1.4, False)])
def test_a_doubt_about_the_machine_is_beside_the_headline(high, even):
    control = SpeedupRow((CONTROL,), "", Judged(1.0, 0.99, high, SpeedVerdict.UNSURE))
    page = pages.tune_page("truestep tune train.py", "train.py", replace(tuned(), control=control), "as text")
    assert "itself" not in page.headline
    assert any("the script against itself was not even" in one for one in page.paragraphs) is not even
    assert page.paragraphs[-1] == "measured with train.py on cpu"
    assert page.parts[0].tables[0].rows[-1].cells[-1] == ("" if even else "not even")


def test_a_page_has_the_command_the_answer_and_the_text(html):
    for name, text in html.items():
        assert f"truestep {name} train.py" in text
        assert "as text" in text
    assert "<code>clip-after-step</code> matters here" in html["prove"]
    assert "76.3, 76.4, 76.5" in html["prove"]
    assert "B is better" in html["compare"]
    assert "&lt;0.01&gt;" in html["compare"]
    assert "why: the rate is 0" in html["overfit"]
    assert "1.60x" in html["tune"]
    assert "fused=True" in html["tune"]
    assert "no compiler" not in html["tune"]  # it has no time
    assert "7 ms a step, 70 % (forward, loss)" in html["profile"]


def test_curves_have_the_band_of_the_seeds(tmp_path):
    page = every(tmp_path)["prove"]
    (chart,) = page.parts[0].charts
    assert [line.label for line in chart.lines] == ["as it is", "with the remedy"]
    assert all(line.band.endswith("Z") for line in chart.lines)
    assert chart.lines[1].points[-1] == (3, pytest.approx(0.2))


def test_a_run_without_findings_has_a_page_without_charts():
    page = pages.prove_page("truestep prove train.py", [], "nothing was found in a run of 20 steps\n\nmore")
    assert page.headline == "nothing was found in a run of 20 steps"
    assert page.parts == ()
    assert "<svg" not in render_experiment(page)


def test_a_page_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableFolder):
        write_experiment(every(tmp_path)["tune"], tmp_path / "file" / "page.html")


@pytest.mark.program
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt-get install chromium)")
def test_pages_in_a_browser(html, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra dev")
    seen = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, text in html.items():
            file = tmp_path / f"{name}.html"
            file.write_text(text, encoding="utf-8")
            for width, scheme in ((375, "light"), (1280, "dark")):
                page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                page.on("console", lambda message: seen.append(f"console: {message.text}"))
                page.on("pageerror", lambda error: seen.append(f"error: {error}"))
                uri = file.as_uri()
                page.on("request", lambda request, uri=uri: seen.append(request.url) if request.url != uri else None)
                page.goto(uri)
                page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                assert page.evaluate("document.documentElement.scrollWidth") == width, name
                for link in page.locator("nav a").all():
                    link.click()
                    assert page.locator(":target").count() == 1
                for button in page.locator("button:visible").all():
                    button.click()
                if page.locator(".plot").count():
                    page.locator(".plot").first.focus()
                    page.keyboard.press("ArrowRight")
                    assert page.locator(".tip").first.inner_text().startswith("step")
                page.close()
        browser.close()
    assert seen == []
