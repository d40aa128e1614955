"""``truestep export``: a checkpoint as a model to serve, compared with eager in a fresh process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from truestep.cli.experimenting.experiment import Format
from truestep.cli.serving.given import FactoryArguments, Weights, argument_of, batches_of, check_torch
from truestep.errors import UsageError

CheckpointPath = Annotated[
    str, typer.Argument(metavar="CHECKPOINT", help="A checkpoint, a run, or its last or best.", show_default=False)
]
Factory = Annotated[
    str, typer.Option(metavar="MODULE:FACTORY", help="Function or class that returns the model.", show_default=False)
]
Inputs = Annotated[
    str,
    typer.Option(
        metavar="FILE|MODULE:NAME",
        help="Real batches: a file of tensors, or a loader or a function that returns one.",
        show_default=False,
    ),
]
To = Annotated[Literal["pt2", "onnx", "aoti", "safetensors"], typer.Option(help="Format of the export.")]
Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Default: export/FORMAT in the run, or export/FORMAT-int8.", show_default=False),
]
Dynamic = Annotated[
    list[str] | None,
    typer.Option(
        metavar="INPUT:DIM",
        help="A free dimension besides the batch; can be repeated. Default: those that differ between batches.",
        show_default=False,
    ),
]
FixedBatch = Annotated[bool, typer.Option("--fixed-batch", help="Fix the size of the batch.")]
Tolerance = Annotated[
    float | None,
    typer.Option(
        min=0, metavar="X", help="Largest relative difference. Default: 1e-4 for float32.", show_default=False
    ),
]
Quantise = Annotated[
    Literal["int8"] | None,
    typer.Option(help="Quantise linear layers, for CPUs; measures accuracy, speed and size.", show_default=False),
]
MostDrop = Annotated[
    float | None,
    typer.Option(
        min=0, metavar="X", help="Largest fall of the accuracy by --quantise. Default: 0.01.", show_default=False
    ),
]
MetricOf = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FUNCTION",
        help="Number for (output, batch) to compare with --quantise, greater is better. Default: the accuracy.",
        show_default=False,
    ),
]
Batches = Annotated[int, typer.Option(min=1, metavar="N", help="Batches to compare.")]


def export(
    checkpoint: CheckpointPath,
    model: Factory,
    inputs: Inputs,
    to: To = "pt2",
    argument: FactoryArguments = None,
    weights: Weights = None,
    out: Out = None,
    dynamic: Dynamic = None,
    fixed_batch: FixedBatch = False,
    tolerance: Tolerance = None,
    batches: Batches = 4,
    quantise: Quantise = None,
    most_drop: MostDrop = None,
    metric: MetricOf = None,
    format: Format = "text",
) -> int:
    """Export the model of a checkpoint, and compare the export with it.

    The model is traced in eval mode with a free batch size, written, loaded again in a fresh process, and compared with
    eager over real batches and edge shapes. Exit code 0; 1 if outputs differ by more than the tolerance or int8 is less
    accurate than allowed, 2 if the model cannot be exported (the message has its line) or for wrong use.
    """
    check_torch("export")
    from truestep.export.factories import imported
    from truestep.export.int8.wanted import name_of, wanted
    from truestep.export.text import folder_of, text
    from truestep.loop.inference.exporting import export_checkpoint

    arguments = dict(map(argument_of, argument or ()))
    wish = wanted(quantise, most_drop, None if metric is None else imported(metric))
    found, source = export_checkpoint(
        checkpoint,
        factory=model,
        arguments=arguments,
        batches=batches_of(inputs),
        to=to,
        weights=weights,
        folder=(lambda path: folder_of(path, name_of(to, wish))) if out is None else (lambda _: out),
        dynamic=_dimensions(dynamic),
        fixed_batch=fixed_batch,
        tolerance=tolerance,
        count=batches,
        quantise=wish,
    )
    if format == "json":
        print(json.dumps(found.config | {"folder": str(found.folder), "notes": list(found.notes)}, indent=2))
    else:
        print(text(found, source))
    return 0


def _dimensions(texts: list[str] | None) -> dict[str, list[int]] | None:
    if texts is None:
        return None
    found: dict[str, list[int]] = {}
    for text in texts:
        name, _, dim = text.rpartition(":")
        if not name or not dim.isdecimal():
            raise UsageError(
                f"--dynamic {text} names no dimension",
                expected="expected INPUT:DIM, counted from 0",
                remedy="write --dynamic tokens:1",
            )
        found.setdefault(name, []).append(int(dim))
    return found
