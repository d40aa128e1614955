"""The report of `truestep prove`: text, JSON, and curves for the picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

from truestep.experiments.figures.figure import MOST_SEEDS, Figure, FigureVerdict
from truestep.experiments.prove.prove import LOSS, ProofAnswer, RemedyProof, run_of
from truestep.experiments.reports.curve import drawn
from truestep.experiments.reports.picture import mean_and_band
from truestep.experiments.reports.text import rendered, wrapped
from truestep.experiments.running.outcome import RunOutcome

_SAYS = {FigureVerdict.DIFFERS: "yes", FigureVerdict.ALIKE: "no", FigureVerdict.UNSURE: "cannot tell"}


def text(proof: RemedyProof) -> str:
    """Return the proof as text: curves, a table of figures, and the conclusion."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("", "as it is", "with the remedy", "differs"):
        table.add_column(title, justify="left" if not title else "right", overflow="fold")
    for figure in proof.figures:
        table.add_row(figure.name, _spread(figure.as_it_is), _spread(figure.remedied), _SAYS[figure.says])
    for figure in proof.beside:
        table.add_row(figure.name, _spread(figure.as_it_is), _spread(figure.remedied), "")
    head = wrapped(f"{proof.rule}, over {proof.seeds} seeds ({proof.change} from outside):")
    parts = [
        head,
        *_charts(proof),
        f"{rendered(table)}\n\nmean and half the range over the seeds",
        wrapped(sentence(proof)),
    ]
    return "\n\n".join(parts if proof.figures else [head, wrapped(sentence(proof))])


def rest(seen: RunOutcome, others: Sequence[str], proved: bool) -> list[str]:
    """Return the paragraphs about findings without a remedy from outside, or about a run with nothing to prove."""
    run = run_of(seen)
    if others:
        said = f"cannot decide about {', '.join(others)}: found in {run}, but the remedy cannot be applied from outside"
        return [wrapped(f"{said}; apply the fix that `truestep explain` shows, and compare by hand")]
    if proved:
        return []
    if seen.how == "crashed":
        return [wrapped(f"cannot tell: nothing was found in {run}; fix the error above first")]
    return [wrapped(f"nothing was found in {run}: there is nothing to prove, which does not prove that all is well")]


def sentence(proof: RemedyProof) -> str:
    """Return the conclusion about the finding as a sentence."""
    cut = f"; interrupted after {proof.seeds} seeds" if proof.interrupted else ""
    if not proof.figures:
        return (
            "cannot tell: the remedy changes the loss function, and the script prints no figure at its end "
            f"to compare{cut}"
        )
    if proof.answer is ProofAnswer.MATTERS:
        return f"the finding makes a difference here{_direction(proof)}{cut}"
    if proof.answer is ProofAnswer.DOES_NOT:
        bound = f"{100 * proof.within:.2g} %"
        return (
            f"the finding does not matter in a run of this length: no number differs by more than {bound} of its "
            f"value, with 95 % confidence{cut}"
        )
    unsure = [figure.name for figure in proof.figures if figure.says is FigureVerdict.UNSURE]
    lost = [f for f in proof.figures if not all(map(math.isfinite, (*f.as_it_is, *f.remedied)))]
    if lost:
        return f"cannot tell: {lost[0].name} is not finite with the remedy either{cut}"
    needed = proof.seeds_needed
    more = (
        f"about {needed - proof.seeds} more would be enough: --seeds {needed}"
        if needed
        else f"{MOST_SEEDS} would not be enough"
    )
    named = f"{', '.join(unsure[:3])}{f' and {len(unsure) - 3} more' if len(unsure) > 3 else ''}"
    return f"cannot tell over {proof.seeds} seeds: {named} varies too much from seed to seed; {more}{cut}"


def _direction(proof: RemedyProof) -> str:
    """Return a clause if the remedy raises the training loss, as a limit or a lower learning rate can; else ""."""
    raised = any(f.name == LOSS and f.is_beyond_noise and f.difference > 0 for f in proof.figures)
    return "; the training loss ends higher with the remedy" if raised else ""


def curves(proof: RemedyProof) -> dict[str, list[list[float]]]:
    """Return the finite losses of all seeds, by variant."""
    names = ("as it is", "with the remedy")
    return {
        name: [[loss for loss in losses if math.isfinite(loss)] or [0.0] for losses in curves]
        for name, curves in zip(names, proof.losses, strict=True)
    }


def _charts(proof: RemedyProof) -> list[str]:
    """Return charts of the mean losses with their spread, both on one scale."""
    bands = {name: mean_and_band(curves) for name, curves in curves(proof).items()}
    means = [mean for mean, _, _ in bands.values()]
    return [
        f"{name}\n" + "\n".join(drawn(mean, height=5, beside=means, band=(low, high)))
        for name, (mean, low, high) in bands.items()
    ]


def _spread(values: tuple[float, ...]) -> str:
    """Return text with the mean of the values and half of their range."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < len(values):
        return f"{len(values) - len(finite)} of {len(values)} not finite"
    return f"{sum(values) / len(values):.4g} ± {(max(values) - min(values)) / 2:.2g}"


def document(proof: RemedyProof) -> dict[str, object]:
    """Return the proof as values for JSON."""
    return {
        "rule": proof.rule,
        "change": proof.change,
        "answer": str(proof.answer),
        "sentence": sentence(proof),
        "seeds": proof.seeds,
        "seeds_needed": proof.seeds_needed,
        "within": proof.within,
        "figures": [
            {**_row(figure), "says": str(figure.says), "interval": _plain(figure.interval)} for figure in proof.figures
        ],
        "beside": [_row(figure) for figure in proof.beside],
        "losses": _series(proof.losses),
        "gradient_norms": _series(proof.norms),
    }


def _row(figure: Figure) -> dict[str, object]:
    return {"name": figure.name, "as_it_is": _plain(figure.as_it_is), "remedied": _plain(figure.remedied)}


def _series(curves: tuple[Sequence[Sequence[float]], ...]) -> dict[str, object]:
    names = ("as_it_is", "remedied")
    return {name: [_plain(values) for values in series] for name, series in zip(names, curves, strict=True)}


def _plain(values: Sequence[float]) -> list[object]:
    return [value if math.isfinite(value) else str(value) for value in values]
