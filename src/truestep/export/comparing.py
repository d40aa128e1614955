"""The comparison of an export with its model: the export is loaded and called in a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from truestep.errors import ExportDiffers
from truestep.export.calls import Call
from truestep.export.outputs import leaves

TOLERANCES = {torch.float64: 1e-8, torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 1e-2}
"""Largest relative difference by the type of the parameters: sums in another order, of many layers."""
LIMIT = 600.0
"""Seconds for the fresh process."""


@dataclass(frozen=True)
class Row:
    """The comparison of one call.

    Attributes:
        shapes: shapes of the inputs by name.
        size: size of the batch.
        kind: "real" for a batch of the loader, "edge" for another size of it, "short" for short other dimensions.
        largest: largest absolute difference.
        relative: that, divided by the largest absolute value of the output.
        fault: an error of the export, or another shape or type of an output; "" without one.
    """

    shapes: dict[str, list[int]]
    size: int
    kind: str
    largest: float
    relative: float
    fault: str


@dataclass(frozen=True)
class Comparison:
    """The comparison of an export with its model.

    Attributes:
        runtime: name and version of the program that ran the export.
        rows: one for each call.
        tolerance: largest relative difference that is allowed.
        limits: short inputs that the export refuses, with its message.
    """

    runtime: str
    rows: tuple[Row, ...]
    tolerance: float
    limits: tuple[str, ...] = ()

    @property
    def largest(self) -> float:
        """The largest absolute difference."""
        return max(row.largest for row in self.rows)

    @property
    def relative(self) -> float:
        """The largest relative difference."""
        return max(row.relative for row in self.rows)

    @property
    def passed(self) -> bool:
        """True if every output has the same shape and type, and differs by at most the tolerance."""
        return all(not row.fault and row.relative <= self.tolerance for row in self.rows)

    @property
    def worst(self) -> Row:
        """The row with the largest difference; one with a fault first."""
        return max(self.rows, key=lambda row: (bool(row.fault), row.relative))


def tolerance_for(model: nn.Module) -> float:
    """Return the default tolerance for the types of a model's parameters."""
    kinds = {parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()}
    return max((TOLERANCES.get(kind, 1e-4) for kind in kinds), default=TOLERANCES[torch.float32])


def compare(
    folder: Path,
    format: str,
    model: nn.Module,
    calls: Sequence[tuple[str, Call]],
    expected: Sequence[object],
    *,
    tolerance: float,
    forbidden: Sequence[str],
) -> Comparison:
    """Compare an export with outputs of its model.

    Args:
        folder: of the export.
        format: of the export.
        model: in messages.
        calls: kinds and calls.
        expected: outputs of the model.
        tolerance: largest relative difference that is allowed.
        forbidden: modules that the export must not need.

    Raises:
        ExportDiffers: the export cannot be loaded in the fresh process, or needs the model's Python.
    """
    held = [(call.args, call.kwargs, leaves(output)) for (_, call), output in zip(calls, expected, strict=True)]
    given = {
        "calls": held,
        "forbidden": list(forbidden),
        "path": [] if forbidden else [entry for entry in sys.path if entry],
        "threads": torch.get_num_threads(),
    }
    document, said = _called(folder, format, given)
    if document is not None:
        said = document["error"]
    if document is None or said:
        raise ExportDiffers(
            f"the export of {type(model).__name__} to {format} cannot be loaded in a fresh process",
            expected=f"message of the process: {said}"[:400],
            remedy="compute in float32, without torch.autocast in forward, or export to pt2 or aoti"
            if "NOT_IMPLEMENTED" in said
            else "export to another format, or report the message to the project of the runtime",
        )
    if document["imported"]:
        raise ExportDiffers(
            f"the export of {type(model).__name__} needs {', '.join(document['imported'])}",
            expected="expected a file that runs without the model's Python",
            remedy="return plain tensors, tuples and dictionaries from forward",
        )
    rows, limits = [], []
    for (kind, call), made in zip(calls, document["rows"], strict=True):
        shapes = {name: list(tensor.shape) for name, tensor in zip(call.names, call.tensors, strict=True)}
        row = Row(shapes, call.size, kind, made["largest"], made["relative"], made["fault"])
        if kind == "short" and made.get("raised", False):
            shown = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            limits.append(f"the export refuses {shown}: {row.fault}")
        else:
            rows.append(row)
    return Comparison(document["runtime"], tuple(rows), tolerance, tuple(limits))


def _called(folder: Path, format: str, given: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Call an export in a fresh process; return its result, or None with the last line of its message."""
    with tempfile.TemporaryDirectory(prefix="truestep-export-") as place:
        reference, result = Path(place, "reference.pt"), Path(place, "result.json")
        torch.save(given, reference)
        command = [sys.executable, "-m", "truestep.export.child", str(folder.resolve()), format]
        environment = os.environ | {"TRUESTEP_WATCH": "0", "PYTHONPATH": _own_path()}
        try:
            done = subprocess.run(
                [*command, str(reference), str(result)],
                cwd=place,
                env=environment,
                capture_output=True,
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None, f"it did not end within {LIMIT:.0f} s"
        if not result.exists():
            return None, (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["none"])[-1]
        return json.loads(result.read_text(encoding="utf-8")), ""


def _own_path() -> str:
    """Return the search path of the fresh process, with this package."""
    entries = [str(Path(__file__).parents[2]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return os.pathsep.join(entry for entry in entries if entry)
