"""``truestep prove``: does a finding matter here?"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from truestep.cli.overfit import write_picture
from truestep.errors import NoExperiment
from truestep.experiments.bench import Bench
from truestep.experiments.changes import REMEDIES
from truestep.experiments.curve import drawn, svg
from truestep.experiments.prove import Proof, found
from truestep.experiments.prove import prove as run_prove
from truestep.rules import rule as rule_of
from truestep.watch.program import Target, prepare


def prove(
    script: Annotated[
        str, typer.Argument(metavar="SCRIPT", help="What to run; with -m, a module.", show_default=False)
    ],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS", help="The script's own.")] = None,
    module: Annotated[bool, typer.Option("-m", help="SCRIPT is the name of a module, as with python -m.")] = False,
    rule: Annotated[
        str | None, typer.Option(metavar="RULE", help="Prove this finding; all that were found otherwise.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=2, help="How often both variants run.")] = 3,
    steps: Annotated[int, typer.Option(min=2, help="Optimizer steps after which a run ends.")] = 2000,
    limit: Annotated[float, typer.Option(help="Seconds after which a run is ended.")] = 600.0,
    format: Annotated[Literal["text", "json"], typer.Option(help="Form of the report.")] = "text",
    picture: Annotated[Path | None, typer.Option("--svg", help="File for the curves of the first finding.")] = None,
) -> int:
    """Run a script with and without the remedy of what was found in it, and compare.

    The script itself is not changed: the remedy is applied from outside. It runs in a copy of the working folder, with
    trackers off, and overwrites nothing. Exit code 1 when a finding makes a difference beyond the noise, 0 when none
    does, 2 when there was nothing to compare.
    """
    if rule is not None:
        rule_of(rule)
    target = Target(script, tuple(arguments or ()), module)
    prepare(target)
    bench = Bench(target, steps, limit_s=limit)
    try:
        rules = [rule] if rule is not None else _provable(found(bench).findings)
        proofs = [run_prove(bench, id, seeds) for id in rules]
    except NoExperiment as error:
        if error.said:
            sys.stderr.write(error.said.rstrip() + "\n\n")
        raise
    if picture is not None and proofs:
        write_picture(picture, svg(_curves(proofs[0]), f"{proofs[0].rule}: loss of the first seed"))
    if format == "json":
        print(json.dumps([_document(proof) for proof in proofs], indent=2))
    else:
        print("\n\n".join(map(_text, proofs)) if proofs else "nothing was found that a remedy from outside could mend")
    return 1 if any(proof.matters for proof in proofs) else 0


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
    console = Console(width=80, highlight=False, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    seeds = len(proof.figures[0].as_it_is) if proof.figures else 0
    head = f"{proof.rule}, over {seeds} seeds ({proof.change} from outside):"
    if not proof.figures:
        verdict = "the loss is another function with the remedy, and the script prints no figure: nothing to compare"
    elif proof.matters:
        verdict = "the finding makes a difference here"
    else:
        verdict = "no difference beyond the noise here: the finding does not matter in a run of this length"
    rows = "\n".join(line.rstrip() for line in captured.get().splitlines())
    parts = [head, *_charts(proof), f"{rows}\n\nmean and half the range over the seeds", verdict]
    return "\n\n".join(parts if proof.figures else [head, verdict])


def _curves(proof: Proof) -> dict[str, list[float]]:
    names = ("as it is", "with the remedy")
    return {
        name: [loss for loss in losses if math.isfinite(loss)] or [0.0]
        for name, losses in zip(names, proof.losses, strict=True)
    }


def _charts(proof: Proof) -> list[str]:
    """Return the curves of the first seed, both on one scale."""
    curves = _curves(proof)
    every = list(curves.values())
    return [f"{name}\n" + "\n".join(drawn(losses, height=5, beside=every)) for name, losses in curves.items()]


def _spread(values: tuple[float, ...]) -> str:
    """Return values as their mean and half of their range."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < len(values):
        return f"{len(values) - len(finite)} of {len(values)} not finite"
    return f"{sum(values) / len(values):.4g} ± {(max(values) - min(values)) / 2:.2g}"


def _document(proof: Proof) -> dict[str, object]:
    def plain(values: tuple[float, ...]) -> list[object]:
        return [value if math.isfinite(value) else str(value) for value in values]

    return {
        "rule": proof.rule,
        "change": proof.change,
        "matters": proof.matters,
        "figures": [
            {
                "name": figure.name,
                "as_it_is": plain(figure.as_it_is),
                "remedied": plain(figure.remedied),
                "beyond_noise": figure.is_beyond_noise,
            }
            for figure in proof.figures
        ],
        "losses": {"as_it_is": plain(proof.losses[0]), "remedied": plain(proof.losses[1])},
    }
