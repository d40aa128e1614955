"""``truestep prove``: does a finding matter here?"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

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
from truestep.errors import NoExperiment
from truestep.experiments.bench import Bench
from truestep.experiments.changes import REMEDIES
from truestep.experiments.curve import drawn
from truestep.experiments.figure import Figure
from truestep.experiments.outcome import Outcome
from truestep.experiments.picture import mean_and_band, svg
from truestep.experiments.prove import LOSS, Proof, found
from truestep.experiments.prove import prove as run_prove
from truestep.rules import rule as rule_of


def prove(
    script: Script,
    arguments: Arguments = None,
    module: Module = False,
    rule: Annotated[
        str | None, typer.Option(metavar="RULE", help="Prove this finding; all that were found otherwise.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=3, help="How often both variants run.")] = 3,
    steps: Annotated[int, typer.Option(min=2, help="Optimizer steps after which a run ends.")] = 2000,
    limit: Limit = 600.0,
    memory: Memory = None,
    processes: Processes = 1,
    fresh: Fresh = False,
    format: Format = "text",
    picture: Picture = None,
) -> int:
    """Run a script with and without the remedy of what was found in it, and compare.

    The script itself is not changed: the remedy is applied from outside. It runs in a copy of the working folder, with
    trackers off, and overwrites nothing. Exit code 1 when a finding makes a difference beyond the noise, 0 when none
    does, 2 when there was nothing to compare.
    """
    if rule is not None:
        rule_of(rule)
    if picture is not None:
        check_picture(picture)
    bench = bench_of(
        script, arguments, module, steps=steps, limit=limit, memory=memory, processes=processes, fresh=fresh
    )
    with explained(bench):
        seen = None
        if rule is None:
            seen = found(bench)
            proofs = _all(bench, seeds, seen)
        else:
            proofs = [run_prove(bench, rule, seeds)]
    if picture is not None and proofs:
        write_picture(picture, svg(_curves(proofs[0]), f"{proofs[0].rule}: loss, mean and range of {seeds} seeds"))
    if format == "json":
        print(json.dumps([_document(proof) for proof in proofs], indent=2))
    else:
        print("\n\n".join(map(_text, proofs)) if proofs or seen is None else _nothing(seen))
    return 1 if any(proof.matters for proof in proofs) else 0


def _nothing(seen: Outcome) -> str:
    """Return what to say where there is nothing to prove."""
    run = f"a run of {seen.steps} steps that {'was ' if seen.how == 'stopped' else ''}{seen.how}"
    if not seen.findings:
        return f"nothing was found in {run}"
    rules = ", ".join(dict.fromkeys(seen.findings))
    return f"found in {run}, and not to be mended from outside: {rules}"


def _all(bench: Bench, seeds: int, seen: Outcome) -> list[Proof]:
    """Prove all that is found; one that cannot be proved here is told, and keeps the others from nothing."""
    rules, proofs, errors = _provable(seen.findings), [], []
    for rule in rules:
        try:
            proofs.append(run_prove(bench, rule, seeds, seen))
        except NoExperiment as error:
            errors.append(error)
    if errors and not proofs:
        raise errors[0]
    for untold in errors:
        sys.stderr.write(f"{untold}\n\n")
    return proofs


def _provable(findings: tuple[str, ...]) -> list[str]:
    return [id for id in dict.fromkeys(findings) if id in REMEDIES]


def _text(proof: Proof) -> str:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("", "as it is", "with the remedy", "beyond the noise"):
        table.add_column(title, justify="left" if not title else "right")
    for figure in proof.figures:
        sure = "yes" if figure.is_beyond_noise else "no"
        table.add_row(figure.name, _spread(figure.as_it_is), _spread(figure.remedied), sure)
    for figure in proof.beside:
        table.add_row(figure.name, _spread(figure.as_it_is), _spread(figure.remedied), "")
    console = Console(width=80, highlight=False, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    seeds = len(proof.figures[0].as_it_is) if proof.figures else 0
    head = f"{proof.rule}, over {seeds} seeds ({proof.change} from outside):"
    if not proof.figures:
        verdict = "the loss is another function with the remedy, and the script prints no figure: nothing to compare"
    elif proof.matters:
        verdict = f"the finding makes a difference here{_direction(proof)}"
    else:
        verdict = "no difference beyond the noise here: the finding does not matter in a run of this length"
    rows = "\n".join(line.rstrip() for line in captured.get().splitlines())
    parts = [head, *_charts(proof), f"{rows}\n\nmean and half the range over the seeds", verdict]
    return "\n\n".join(parts if proof.figures else [head, verdict])


def _direction(proof: Proof) -> str:
    """Return what to say where the remedy raises the loss: a limit that binds, a rate that is lower."""
    raised = any(f.name == LOSS and f.is_beyond_noise and f.difference > 0 for f in proof.figures)
    return "; the training loss ends higher with the remedy" if raised else ""


def _curves(proof: Proof) -> dict[str, list[list[float]]]:
    """Return the curves of all seeds by what they are of, without what is not finite."""
    names = ("as it is", "with the remedy")
    return {
        name: [[loss for loss in losses if math.isfinite(loss)] or [0.0] for losses in curves]
        for name, curves in zip(names, proof.losses, strict=True)
    }


def _charts(proof: Proof) -> list[str]:
    """Return the mean curves with their spread, both on one scale."""
    bands = {name: mean_and_band(curves) for name, curves in _curves(proof).items()}
    means = [mean for mean, _, _ in bands.values()]
    return [
        f"{name}\n" + "\n".join(drawn(mean, height=5, beside=means, band=(low, high)))
        for name, (mean, low, high) in bands.items()
    ]


def _spread(values: tuple[float, ...]) -> str:
    """Return values as their mean and half of their range."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < len(values):
        return f"{len(values) - len(finite)} of {len(values)} not finite"
    return f"{sum(values) / len(values):.4g} ± {(max(values) - min(values)) / 2:.2g}"


def _document(proof: Proof) -> dict[str, object]:
    return {
        "rule": proof.rule,
        "change": proof.change,
        "matters": proof.matters,
        "figures": [{**_row(figure), "beyond_noise": figure.is_beyond_noise} for figure in proof.figures],
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
