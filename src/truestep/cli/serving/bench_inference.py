"""``truestep bench-inference``: the latency of a trained model, run in several ways that take turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from truestep.cli.experimenting.experiment import (
    Arguments,
    Format,
    Limit,
    Memory,
    Module,
    PageFile,
    bench_of,
    check_page,
    explained,
    write_page,
)
from truestep.cli.experimenting.stopping import Exit, stoppable
from truestep.cli.serving.given import FactoryArguments, Weights, argument_of, batches_of, check_torch
from truestep.cli.shell.progress import StageProgress
from truestep.errors import UsageError
from truestep.experiments.inference.measured import InferenceMeasured
from truestep.experiments.reports.inference import document, text
from truestep.experiments.reports.pages import inference_page
from truestep.supervision.launching.program import Target

TargetPath = Annotated[
    str,
    typer.Argument(
        metavar="TARGET", help="A script, a folder of truestep export, or a checkpoint.", show_default=False
    ),
]
Factory = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FACTORY",
        help="Function or class that returns the model; for a checkpoint.",
        show_default=False,
    ),
]
Inputs = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|MODULE:NAME",
        help="Real batches; for a checkpoint, and for exports with inputs that cannot be drawn.",
        show_default=False,
    ),
]
Variable = Annotated[
    str, typer.Option(metavar="NAME", help="Variable of a script's model. Default: the largest trained one.")
]
Batch = Annotated[
    list[str] | None,
    typer.Option(
        metavar="N", help="Samples in a call; can be repeated. Default: 1 and those of a batch.", show_default=False
    ),
]
Threads = Annotated[
    list[str] | None,
    typer.Option(metavar="N", help="Threads; can be repeated. Default: those of torch.", show_default=False),
]
Only = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Only this way; can be repeated.", show_default=False)
]
Budget = Annotated[float, typer.Option(min=5, metavar="SECONDS", help="Approximate time for the ways.")]


@stoppable
def bench_inference(
    target: TargetPath,
    arguments: Arguments = None,
    module: Module = False,
    model: Factory = None,
    argument: FactoryArguments = None,
    weights: Weights = None,
    inputs: Inputs = None,
    variable: Variable = "",
    batch: Batch = None,
    threads: Threads = None,
    only: Only = None,
    budget: Budget = 120.0,
    limit: Limit = 600.0,
    memory: Memory = None,
    format: Format = "text",
    report: PageFile = None,
) -> int:
    """Measure the latency of a trained model: eager, compiled, exported, quantised.

    Outputs are compared with those of eager first; then blocks of calls take turns, and eager is timed against itself
    for the noise. The model of a script is found after two steps of its training; the script runs in a copy of the
    working folder, and is not changed. Options come before TARGET. Exit code 0 if latencies were measured, 3 if not.
    """
    from truestep.experiments.instruments.inference.names import NAMES

    check_page(report)
    names = _split(only)
    for name in names:
        if name not in NAMES:
            raise UsageError(
                f'unknown way "{name}"', expected=f"expected one of {', '.join(NAMES)}", remedy="correct --only"
            )
    sizes, counts = _numbers("--batch", batch), _numbers("--threads", threads)
    check_torch("bench-inference")
    if module or target.endswith(".py"):
        bench = bench_of(target, arguments, module, steps=None, limit=limit + budget, memory=memory)
        from truestep.experiments.inference.of_script import bench_script

        with explained(bench):
            found = bench_script(bench, batches=sizes, threads=counts, only=names, budget_s=budget, variable=variable)
    else:
        if arguments:
            raise UsageError(
                f"{arguments[0]} comes after {target}, which is not a script",
                expected="expected options before the target",
                remedy=f"write truestep bench-inference OPTIONS {target}",
            )
        found = _of_artefact(target, model, argument, weights, inputs, (sizes, counts, names, budget))
    write_page(
        report,
        lambda words: inference_page(f"truestep bench-inference {words}", found, text(found)),
        Target(target, tuple(arguments or ()), module),
    )
    print(json.dumps(document(found), indent=2) if format == "json" else text(found))
    return Exit.FINE if found.settings else Exit.UNSURE


def _of_artefact(
    target: str,
    model: str | None,
    argument: list[str] | None,
    weights: str | None,
    inputs: str | None,
    wanted: tuple[list[int], list[int], list[str], float],
) -> InferenceMeasured:
    """Measure exports, or a checkpoint."""
    from truestep.experiments.inference.of_artefact import Wanted, bench_checkpoint, bench_exports, exports_at

    progress = StageProgress()
    asked = Wanted(*wanted, progress)
    exports = exports_at(Path(target))
    if exports:
        found = bench_exports(exports, None if inputs is None else batches_of(inputs), asked)
    elif model is None or inputs is None:
        raise UsageError(
            f"{target} is neither a script nor a folder of truestep export",
            expected="expected --model MODULE:FACTORY and --inputs for a checkpoint",
            remedy="pass them before the checkpoint",
        )
    else:
        found = bench_checkpoint(
            target,
            factory=model,
            arguments=dict(map(argument_of, argument or ())),
            batches=batches_of(inputs),
            weights=weights,
            wanted=asked,
        )
    progress.end()
    return found


def _split(names: list[str] | None) -> list[str]:
    return [name.strip() for given in names or () for name in given.split(",") if name.strip()]


def _numbers(option: str, texts: list[str] | None) -> list[int]:
    found = []
    for one in _split(texts):
        if not one.isdecimal() or not int(one):
            raise UsageError(
                f"{option} must be at least 1, got {one}",
                expected="expected whole numbers, with commas between them",
                remedy=f"{option} 1,8",
            )
        found.append(int(one))
    return list(dict.fromkeys(found))
