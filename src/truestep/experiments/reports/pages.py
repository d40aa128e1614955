"""The reports of experiments as HTML pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from truestep.experiments.compare.compare import NAMES, ChoiceAnswer, Comparison
from truestep.experiments.inference.measured import InferenceMeasured
from truestep.experiments.overfit.overfit import LearningVerdict, Overfit
from truestep.experiments.profile.bottleneck import sentences, size, unit_of
from truestep.experiments.profile.profile import Profiled
from truestep.experiments.prove.prove import ProofAnswer, RemedyProof
from truestep.experiments.reports import compare as of_compare
from truestep.experiments.reports import inference as of_inference
from truestep.experiments.reports import prove as of_prove
from truestep.experiments.reports import tune as of_tune
from truestep.experiments.reports.picture import mean_and_band
from truestep.experiments.tune.tune import CONTROL
from truestep.experiments.tune.tuned import SpeedupRow, Tuned
from truestep.report.page.annotated import timed
from truestep.report.page.experiment_page import ExperimentPage, Part, Table, TableRow
from truestep.report.page.line_times import line_times
from truestep.report.page.pictures.curves import Chart, Series, chart

_TONES: Mapping[object, str] = {
    ProofAnswer.MATTERS: "bad",
    ProofAnswer.DOES_NOT: "good",
    LearningVerdict.LEARNS: "good",
    LearningVerdict.FALLS: "good",
    LearningVerdict.STUCK: "bad",
    LearningVerdict.DIVERGES: "bad",
}
_MOST = 40
"""Rows of a table of a profile."""
_LEAST = 0.005
"""Smallest share of a step of such a row."""


def prove_page(command: str, proofs: Sequence[RemedyProof], text: str) -> ExperimentPage:
    """Return the page of `truestep prove`: for each finding its answer, curves and figures.

    Args:
        command: the command as typed.
        proofs: the findings; the page of a run without any has no charts.
        text: the report for the terminal.
    """
    parts = []
    for proof in proofs:
        series = _bands(of_prove.curves(proof))
        charts = [chart("loss", "Training loss", _spread(proof.seeds), series)] if series else []
        heads = ("figure", "as it is", "with the remedy", "differs")
        rows = [
            TableRow((figure.name, _values(figure.as_it_is), _values(figure.remedied), str(figure.says)))
            for figure in proof.figures
        ]
        rows += [
            TableRow((figure.name, _values(figure.as_it_is), _values(figure.remedied), "")) for figure in proof.beside
        ]
        tables = (Table(heads, tuple(rows), note="A value for each seed."),) if rows else ()
        lead = f"{of_prove.sentence(proof)} ({proof.change} from outside)"
        parts.append(Part(proof.rule, lead, tuple(charts), tables))
    first = next((proof for proof in proofs if proof.answer is ProofAnswer.MATTERS), proofs[0] if proofs else None)
    if first is None:
        return ExperimentPage("truestep prove", command, text.splitlines()[0] if text else "nothing to prove", text)
    matter = [proof.rule for proof in proofs if proof.answer is ProofAnswer.MATTERS]
    headline = f"{' and '.join(f'`{rule}`' for rule in matter)} matters here" if matter else of_prove.sentence(first)
    if len(matter) > 1:
        headline = headline.replace(" matters ", " matter ")
    compared = "findings compared" if len(proofs) > 1 else "finding compared"
    tiles = ((str(len(proofs)), compared), (str(first.seeds), "seeds"))
    tone = _TONES.get(first.answer, "warned")
    return ExperimentPage("truestep prove", command, headline, text, tone, tiles=tiles, parts=tuple(parts))


def compare_page(command: str, comparison: Comparison, text: str) -> ExperimentPage:
    """Return the page of `truestep compare`: the answer, the curves of both choices and their figures."""
    series = _bands(of_compare.curves(comparison))
    charts = (chart("loss", "Training loss", _spread(comparison.seeds), series),) if series else ()
    rows = [
        TableRow(
            (
                one.figure.name,
                _values(one.figure.as_it_is),
                _values(one.figure.remedied),
                _interval(one.figure.interval),
                f"{one.winner} is better" if one.winner else str(one.figure.says),
            ),
            strong=bool(one.winner),
        )
        for one in comparison.measured
    ]
    rows.append(TableRow(("seconds per run", *(f"{one:.3g}" for one in comparison.seconds), "", "")))
    note = "A value for each seed; the choices are paired by seed."
    table = Table(("figure", *NAMES, "B minus A, 95 %", ""), tuple(rows), note=note)
    choices = tuple(
        f"{name}: `{' '.join(one) or '(no arguments)'}`" for name, one in zip(NAMES, comparison.choices, strict=True)
    )
    decided = comparison.answer is not ChoiceAnswer.UNSURE
    parts = [Part("Curves", charts=charts)] if charts else []
    return ExperimentPage(
        "truestep compare",
        command,
        of_compare.sentence(comparison),
        text,
        "good" if decided else "warned",
        choices,
        ((str(comparison.seeds), "seeds"),),
        (*parts, Part("Figures", tables=(table,))),
    )


def overfit_page(command: str, result: Overfit, text: str) -> ExperimentPage:
    """Return the page of `truestep overfit`: the verdict, the curve and the causes."""
    points = [(step, loss) for step, loss in enumerate(result.losses, 1) if math.isfinite(loss)]
    parts: list[Part] = []
    if len(points) > 1:
        parts.append(Part("Curve", charts=(chart("loss", "Loss", "on the same batches", [Series("loss", points)]),)))
    if result.plain is not None and result.plain.findings:
        parts.append(Part("Findings", "of a supervised run of the script", code=result.plain.report.rstrip()))
    causes = tuple(f"why: {cause}" for cause in result.causes)
    tiles = ((f"{len(result.losses):,}", "steps"),)
    tone = _TONES.get(result.answer, "warned")
    return ExperimentPage("truestep overfit", command, result.sentence, text, tone, causes, tiles, tuple(parts))


def tune_page(command: str, script: str, result: Tuned, text: str) -> ExperimentPage:
    """Return the page of `truestep tune`: the best speed-ups, and the time, memory and losses of each."""
    control = [result.control] if result.control else []
    rows = [row for row in [*result.rows, *result.together, *control] if row.judged]
    fastest = max((row.judged.ratio for row in rows if row.judged and math.isfinite(row.judged.ratio)), default=1.0)
    body = tuple(_speedup(row, fastest, row.names == result.best) for row in rows)
    heads = ("speed-up", "speed", "interval", "memory", "once", "")
    note = "Speed of a step, as a multiple of that of the unchanged script."
    tables = (Table(heads, body, note=note),) if body else ()
    phases = sorted(result.phases.items(), key=lambda item: -item[1])
    shares = tuple(_timed(name, 1000 * seconds, seconds / result.step_s) for name, seconds in phases)
    parts = [Part("Speed-ups", tables=tables)] if tables else []
    parts.append(Part("A step", tables=(Table(("phase", "time"), shares),)))
    if lines := of_tune.lines(result):
        parts.append(Part("Lines", "Write into the script:", code=lines))
    tiles = ((f"{1000 * result.step_s:.3g} ms", "a step, unchanged"), (str(len(result.tried)), "tried"))
    tone = "good" if result.best else "limited"
    lead = tuple(filter(None, (of_tune.doubt(result), f"measured with {script} on {result.device}")))
    return ExperimentPage("truestep tune", command, of_tune.conclusion(result), text, tone, lead, tiles, tuple(parts))


def inference_page(command: str, found: InferenceMeasured, text: str) -> ExperimentPage:
    """Return the page of `truestep bench-inference`: a table of latencies for each size of the batch."""
    parts = []
    for one in found.settings:
        fastest = max((row.per_second or 0.0 for row in one.rows), default=0.0)
        rows = []
        for row in one.rows:
            name, median, p95, p99, rate, speed, interval, status = of_inference.cells(row, one)
            length = round(100 * row.per_second / fastest, 1) if row.per_second and fastest else None
            cells = (name, rate, median, p95, p99, speed, interval, status)
            rows.append(TableRow(cells, length, row is one.best))
        heads = ("", "samples/s", "median", "95 %", "99 %", "speed", "interval", "")
        parts.append(Part(of_inference.heading(one), tables=(Table(heads, tuple(rows)),)))
    said = of_inference.verdicts(found)
    tone = "good" if any(one.best for one in found.settings) else "limited"
    paragraphs = (*found.facts, *said[1:], *of_inference.asides(found))
    return ExperimentPage("truestep bench-inference", command, said[0], text, tone, paragraphs, parts=tuple(parts))


def profile_page(command: str, found: Profiled, folder: str, text: str) -> ExperimentPage:
    """Return the page of `truestep profile`: phases, lines in their files, modules, operations and memory."""
    phases = tuple(_timed(one.name, one.ms, one.share) for one in found.phases)
    parts = [Part("Phases", tables=(Table(("phase", "time in the mean step"), phases),))]
    modules = tuple(
        _timed(one.name or "(model)", one.forward_ms + one.backward_ms, one.share, one.kind)
        for one in found.modules
        if one.share >= _LEAST
    )[:_MOST]
    if modules:
        note = "Forward and backward, with the modules inside."
        parts.append(Part("Modules", tables=(Table(("module", "time", "class"), modules, note=note),)))
    operations = tuple(
        _timed(one.name, one.ms, one.share, one.phase, f"{one.calls:.3g}", one.shapes)
        for one in found.operations
        if one.share >= _LEAST
    )[:_MOST]
    if operations:
        heads = ("operation", "time", "phase", "calls", "shapes")
        parts.append(Part("Operations", tables=(Table(heads, operations),)))
    if found.memory is not None and len(found.memory.curve) > 1:
        parts.append(_memory(found))
    names = ("path", "line", "phase", "ms", "share")
    rows = [{name: getattr(one, name) for name in names} for one in found.lines]
    said = tuple(sentences(found, folder))
    tiles = (
        (f"{found.step_ms:.3g} ms", "a step"),
        (str(found.steps), "step timed" if found.steps == 1 else "steps timed"),
        (str(found.threads), "thread" if found.threads == 1 else "threads"),
    )
    headline = said[0] if said else f"a step takes {found.step_ms:.3g} ms"
    files = tuple(timed(line_times(rows)))
    return ExperimentPage("truestep profile", command, headline, text, "limited", said[1:], tiles, tuple(parts), files)


def _memory(found: Profiled) -> Part:
    memory = found.memory
    assert memory is not None
    unit, of = unit_of(memory.peak)
    points = [(place, held / of) for place, held in enumerate(memory.curve)]
    title = f"{size(memory.peak)} at the peak, in {memory.phase}"
    drawn: Chart = chart("memory", title, f"{unit} during one step", [Series("memory", points)], from_zero=True)
    drawn = replace(drawn, x_ticks=(), x_ticks_log=())
    owners = tuple(
        TableRow(
            (one.module or "-", f"{size(one.size)}, {one.size / memory.peak:.0%}", one.phase),
            round(100 * one.size / memory.peak, 1),
        )
        for one in memory.owners[:_MOST]
    )
    tables = (Table(("held at the peak", "size", "made in"), owners),) if owners else ()
    return Part("Memory", charts=(drawn,), tables=tables, of_steps=False)


def _timed(name: str, ms: float, share: float, *others: str) -> TableRow:
    return TableRow((name, f"{ms:.3g} ms, {share:.0%}", *others), round(100 * min(1.0, share), 1))


def _speedup(row: SpeedupRow, fastest: float, best: bool) -> TableRow:
    judged = row.judged
    assert judged is not None
    control = row.names == (CONTROL,)
    cells = (
        "script against itself" if control else ", ".join(row.names),
        f"{judged.ratio:.2f}x",
        f"{judged.low:.2f} to {judged.high:.2f}",
        "" if row.memory is None else f"{row.memory:.0%}",
        f"{row.once_s:.1f} s" if row.once_s >= 0.05 else "",
        ("" if of_tune.is_even(row) else "not even") if control else row.status,
    )
    length = round(100 * judged.ratio / fastest, 1) if math.isfinite(judged.ratio) else None
    return TableRow(cells, length, best)


def _bands(curves: Mapping[str, Sequence[Sequence[float]]]) -> list[Series]:
    """Return a line for each name, the mean of its series, with the band of their values."""
    found = []
    for name, series in curves.items():
        mean, low, high = mean_and_band(series)
        band = (low, high) if low != high else ((), ())
        found.append(Series(name, list(enumerate(mean, 1)), low=band[0], high=band[1]))
    return [one for one in found if one.points]


def _spread(seeds: int) -> str:
    return f"mean and range of {seeds} seeds, by update"


def _values(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


def _interval(interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{low:+.2g} to {high:+.2g}" if math.isfinite(low) and math.isfinite(high) else ""
