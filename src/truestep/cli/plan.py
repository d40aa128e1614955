"""``truestep plan``: does a training fit, and on how many devices?"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from truestep.cli.experimenting.experiment import Arguments, Format, Limit, Module, bench_of, explained
from truestep.cli.experimenting.stopping import stoppable
from truestep.errors import UsageError
from truestep.experiments.plan.fitting import AUTOCAST, RECOMPUTE
from truestep.experiments.plan.plan import COUNTS, factory_target
from truestep.experiments.plan.plan import plan as run_plan
from truestep.experiments.plan.units import read_input, read_memory
from truestep.experiments.reports import plan as report
from truestep.report.color import console
from truestep.supervision.launching.program import Target

Planned = Annotated[
    str,
    typer.Argument(
        metavar="SCRIPT", help="Path of a script, or MODULE:FACTORY; with -m, a module name.", show_default=False
    ),
]
DeviceMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory of one device, such as 80GB. Default: the GPUs of this machine, or a table of common ones.",
        show_default=False,
    ),
]
Devices = Annotated[
    list[int] | None,
    typer.Option(
        min=2,
        metavar="N",
        help="Number of devices for FSDP2; can be repeated. Default: 2, 4 and 8.",
        show_default=False,
    ),
]
Recompute = Annotated[bool, typer.Option("--recompute", help="With repeated blocks recomputed in the backward pass.")]
Autocast = Annotated[bool, typer.Option("--autocast", help="With forward passes under autocast to bf16.")]
Steps = Annotated[int, typer.Option(min=3, help="Optimizer steps to run; the last one is measured.")]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SHAPE",
        help="With MODULE:FACTORY: shape and type of an input of the model, such as 8x1024:int64; one for each "
        "argument.",
        show_default=False,
    ),
]
OptimizerName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="With MODULE:FACTORY: class in torch.optim. Default: AdamW.", show_default=False),
]
ParameterType = Annotated[
    Literal["float32", "bfloat16", "float16"] | None,
    typer.Option(
        help="With MODULE:FACTORY: type of the parameters. Default: as the factory makes them.", show_default=False
    ),
]


@stoppable
def plan(
    script: Planned,
    arguments: Arguments = None,
    module: Module = False,
    memory: DeviceMemory = None,
    devices: Devices = None,
    recompute: Recompute = False,
    autocast: Autocast = False,
    steps: Steps = 3,
    input: Inputs = None,
    optimizer: OptimizerName = None,
    dtype: ParameterType = None,
    limit: Limit = 600.0,
    format: Format = "text",
) -> int:
    """Measure the memory of a script's steps, and compute it for one device, DDP and FSDP2.

    The script runs for some optimizer steps, in a copy of the working folder, with trackers off, and overwrites
    nothing. For a model that is too large for this machine, give a factory in place of the script: a function without
    arguments that returns the model. Its memory is computed from shapes alone. Exit code 0; 2 for wrong use, 3 if there
    was nothing to measure.
    """
    room = None if memory is None else read_memory(memory)
    if not module and _is_factory(script):
        target = _factory(script, arguments, input, optimizer, dtype)
        bench = bench_of(target.name, list(target.arguments), True, steps=None, limit=limit)
    else:
        _refuse({"--input": input, "--optimizer": optimizer, "--dtype": dtype})
        bench = bench_of(script, arguments, module, steps=None, limit=limit)
    changes = [name for name, wanted in ((RECOMPUTE, recompute), (AUTOCAST, autocast)) if wanted]
    with explained(bench):
        found = run_plan(bench, memory=room, counts=devices or COUNTS, changes=changes, steps=steps)
    if format == "json":
        print(json.dumps(report.document(found), indent=2))
        return 0
    console(width=80, markup=False, emoji=False).print(report.text(found, script))
    return 0


def _is_factory(script: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][\w.]*:\w+", script) is not None and not Path(script).exists()


def _factory(
    factory: str, arguments: list[str] | None, inputs: list[str] | None, optimizer: str | None, dtype: str | None
) -> Target:
    if arguments:
        raise UsageError(
            f"a factory takes no arguments, got {' '.join(arguments)}",
            expected="expected options before MODULE:FACTORY",
            remedy=f"write truestep plan {' '.join(arguments)} {factory}",
        )
    if not inputs:
        raise UsageError(
            "--input is missing: a model from a factory needs the shapes of its inputs",
            remedy="write --input 32x3x224x224, or --input 8x1024:int64 for tokens",
        )
    for text in inputs:
        read_input(text)
    return factory_target(factory, inputs, optimizer or "AdamW", dtype or "")


def _refuse(options: dict[str, object]) -> None:
    for name, value in options.items():
        if value:
            raise UsageError(
                f"{name} is for a model from a factory, and a script was given",
                expected="expected MODULE:FACTORY with it",
                remedy=f"drop {name}: a script has its own",
            )
