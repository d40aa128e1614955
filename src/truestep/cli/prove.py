"""``truestep prove``: compare a script with and without the remedy of a finding."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from textwrap import wrap
from typing import Annotated

import typer

from truestep.cli._errors import of_experiment
from truestep.cli._experiment import (
    Arguments,
    Format,
    Fresh,
    Limit,
    Memory,
    Module,
    Picture,
    Processes,
    Script,
    bench_of,
    check_picture,
    explained,
    write_picture,
)
from truestep.cli._stopping import Exit, stoppable
from truestep.errors import NoExperiment
from truestep.experiments.changes import REMEDIES
from truestep.experiments.charts.curve import drawn
from truestep.experiments.charts.picture import mean_and_band, svg
from truestep.experiments.prove.figure import MOST_SEEDS, Figure, Says
from truestep.experiments.prove.prove import LOSS, Answer, Proof, found, run_of
from truestep.experiments.prove.prove import prove as run_prove
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import Outcome
from truestep.rules import rule as rule_of

CODES = {Answer.MATTERS: Exit.FAILS, Answer.UNSURE: Exit.UNSURE, Answer.DOES_NOT: Exit.FINE}
"""Exit codes by answer. The order is that of precedence where findings have several answers."""
_SAYS = {Says.DIFFERS: "yes", Says.ALIKE: "no", Says.UNSURE: "cannot tell"}


@stoppable
def prove(
    script: Script,
    arguments: Arguments = None,
    module: Module = False,
    rule: Annotated[
        str | None, typer.Option(metavar="RULE", help="Prove this finding only; default: all findings.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=3, help="Number of seeds; both variants run once per seed.")] = 3,
    steps: Annotated[int, typer.Option(min=2, help="Optimizer steps after which a run ends.")] = 2000,
    within: Annotated[
        float,
        typer.Option(min=0.01, max=50, metavar="PERCENT", help="Differences below this percentage do not count."),
    ] = 2.0,
    limit: Limit = 600.0,
    memory: Memory = None,
    processes: Processes = 1,
    fresh: Fresh = False,
    format: Format = "text",
    picture: Picture = None,
) -> int:
    """Run a script with and without the remedy of each finding, and compare.

    The script itself is not changed: the remedy is applied from outside. It runs in a copy of the working folder, with
    trackers off, and overwrites nothing. Exit code 1 if a finding matters, 0 if none does or nothing was found, 3 if
    the answer is uncertain, 2 for a usage error.
    """
    if rule is not None:
        rule_of(rule)
    if picture is not None:
        check_picture(picture)
    bench = bench_of(
        script, arguments, module, steps=steps, limit=limit, memory=memory, processes=processes, fresh=fresh
    )
    with explained(bench):
        seen = found(bench)
        wanted = [rule] if rule is not None else [id for id in dict.fromkeys(seen.findings) if id in REMEDIES]
        proofs, untold = _all(bench, wanted, seeds, seen, within / 100)
    if picture is not None and proofs:
        write_picture(picture, svg(_curves(proofs[0]), f"{proofs[0].rule}: loss, mean and range of {seeds} seeds"))
    others = [id for id in dict.fromkeys(seen.findings) if id not in REMEDIES] if rule is None else []
    if format == "json":
        print(json.dumps([_document(proof) for proof in proofs], indent=2))
    else:
        print("\n\n".join([*map(_text, proofs), *_rest(seen, others, bool(wanted))]))
    if others or untold or (seen.how == "crashed" and not proofs):
        return _code(proofs, Answer.UNSURE)
    return _code(proofs)


def _code(proofs: Sequence[Proof], *others: Answer) -> int:
    """Return the exit code for all findings: one that matters decides, then one with an uncertain answer."""
    answers = {*others, *(proof.answer for proof in proofs), Answer.DOES_NOT}
    return next(code for answer, code in CODES.items() if answer in answers)


def _rest(seen: Outcome, others: Sequence[str], proved: bool) -> list[str]:
    """Return the paragraphs about findings without a remedy from outside, or about a run with nothing to prove."""
    run = run_of(seen)
    if others:
        said = f"cannot decide about {', '.join(others)}: found in {run}, but the remedy cannot be applied from outside"
        return [_wrapped(f"{said}; apply the fix that `truestep explain` shows, and compare by hand")]
    if proved:
        return []
    if seen.how == "crashed":
        return [_wrapped(f"cannot tell: nothing was found in {run}; fix the error above first")]
    return [_wrapped(f"nothing was found in {run}: there is nothing to prove, which does not prove that all is well")]


def _wrapped(text: str) -> str:
    return "\n".join(wrap(text, 80, break_long_words=False, break_on_hyphens=False))


def _all(
    bench: Bench, rules: Sequence[str], seeds: int, seen: Outcome, within: float
) -> tuple[list[Proof], list[NoExperiment]]:
    """Return the proofs of the findings, and the errors of proofs that failed; these do not stop the other proofs.

    Raises:
        NoExperiment: no proof could be made.
    """
    if seen.how == "crashed":
        sys.stderr.write(seen.said.rstrip() + "\n\n")
    proofs: list[Proof] = []
    errors: list[NoExperiment] = []
    for rule in rules:
        try:
            proofs.append(run_prove(bench, rule, seeds, seen, within=within))
        except NoExperiment as error:
            errors.append(error)
        except KeyboardInterrupt:
            if not proofs:
                raise
            break
        if proofs and proofs[-1].interrupted:
            break
    if errors and not proofs:
        raise errors[0]
    for untold in errors:
        sys.stderr.write(of_experiment(f"cannot tell: {untold}") + "\n\n")
    return proofs, errors


def _text(proof: Proof) -> str:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("", "as it is", "with the remedy", "differs"):
        table.add_column(title, justify="left" if not title else "right", overflow="fold")
    for figure in proof.figures:
        table.add_row(figure.name, _spread(figure.as_it_is), _spread(figure.remedied), _SAYS[figure.says])
    for figure in proof.beside:
        table.add_row(figure.name, _spread(figure.as_it_is), _spread(figure.remedied), "")
    console = Console(width=80, highlight=False, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    head = _wrapped(f"{proof.rule}, over {proof.seeds} seeds ({proof.change} from outside):")
    rows = "\n".join(line.rstrip() for line in captured.get().splitlines())
    parts = [head, *_charts(proof), f"{rows}\n\nmean and half the range over the seeds", _wrapped(sentence(proof))]
    return "\n\n".join(parts if proof.figures else [head, _wrapped(sentence(proof))])


def sentence(proof: Proof) -> str:
    """Return the conclusion about the finding as a sentence."""
    cut = f"; interrupted after {proof.seeds} seeds" if proof.interrupted else ""
    if not proof.figures:
        return (
            "cannot tell: the remedy changes the loss function, and the script prints no figure at its end "
            f"to compare{cut}"
        )
    if proof.answer is Answer.MATTERS:
        return f"the finding makes a difference here{_direction(proof)}{cut}"
    if proof.answer is Answer.DOES_NOT:
        bound = f"{100 * proof.within:.2g} %"
        return (
            f"the finding does not matter in a run of this length: no number differs by more than {bound} of its "
            f"value, with 95 % confidence{cut}"
        )
    unsure = [figure.name for figure in proof.figures if figure.says is Says.UNSURE]
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


def _direction(proof: Proof) -> str:
    """Return a clause if the remedy raises the training loss, as a limit or a lower learning rate can; else ""."""
    raised = any(f.name == LOSS and f.is_beyond_noise and f.difference > 0 for f in proof.figures)
    return "; the training loss ends higher with the remedy" if raised else ""


def _curves(proof: Proof) -> dict[str, list[list[float]]]:
    """Return the finite losses of all seeds, by variant."""
    names = ("as it is", "with the remedy")
    return {
        name: [[loss for loss in losses if math.isfinite(loss)] or [0.0] for losses in curves]
        for name, curves in zip(names, proof.losses, strict=True)
    }


def _charts(proof: Proof) -> list[str]:
    """Return charts of the mean losses with their spread, both on one scale."""
    bands = {name: mean_and_band(curves) for name, curves in _curves(proof).items()}
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


def _document(proof: Proof) -> dict[str, object]:
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
