"""`Int8`: an export with int8 linear layers, if they are as accurate as the user wants."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from torch import nn

from truestep.errors import LessAccurate, UsageError
from truestep.export.calls import Call, Chosen
from truestep.export.formats import FILES, Source
from truestep.export.int8.quantising import layers, quantised, require
from truestep.export.int8.scores import ERROR, Metric, Scores, scores
from truestep.export.int8.speed import size, speeds

TOLERANCE = 5e-2
"""Largest relative difference of an export from the quantised model: other sums round to another of 255 steps."""
MOST_DROP = 0.01


@dataclass(frozen=True)
class Int8:
    """The wish for int8 linear layers.

    Attributes:
        most_drop: largest fall of the accuracy or the metric; for a mean squared error, largest rise relative to it.
        metric: of the user; None for accuracy or mean squared error.
    """

    most_drop: float = MOST_DROP
    metric: Metric | None = None

    def check(self, to: str) -> None:
        """Raise an error for a format without a graph, and without torchao.

        Raises:
            UsageError: the format is safetensors.
            PackageMissing: torchao is not installed.
        """
        if to == "safetensors":
            raise UsageError(
                "weights in safetensors are not quantised: the factory builds the model without int8",
                expected="expected a format with a graph: pt2, onnx or aoti",
                remedy='pass to="onnx"',
            )
        require()

    def applied(self, model: nn.Module, batches: Iterable[Any], chosen: Chosen | None) -> Quantised:
        """Return the quantised model, and its metric over all batches.

        Raises:
            LessAccurate: the metric falls by more than `most_drop`.
            BadInputs: the model has no linear layer, or the batches have no labels.
        """
        made = quantised(model)
        found = scores(model, made, batches, chosen, self.metric)
        if not found.drop <= self.most_drop:
            raise _less_accurate(model, found, self.most_drop)
        return Quantised(model, made, found, self.most_drop)


def wanted(kind: str | None, most_drop: float | None, metric: Metric | None) -> Int8 | None:
    """Return the wish for a kind of quantisation; None without one.

    Raises:
        UsageError: the kind is unknown, or the other values have no use without one.
    """
    if kind is None and most_drop is None and metric is None:
        return None
    if kind != "int8":
        raise UsageError(
            f'"{kind}" is not a quantisation' if kind is not None else "most_drop and metric are for quantised exports",
            expected='expected quantise="int8"' + ("" if kind is None else f', got "{kind}"'),
            remedy='pass quantise="int8" (--quantise int8)',
        )
    if most_drop is not None and not 0 <= most_drop < math.inf:
        raise UsageError(
            f"most_drop must be a number of at least 0, got {most_drop}",
            expected="expected the largest fall of the accuracy, such as 0.01",
            remedy="pass most_drop=0.01",
        )
    if metric is not None and not callable(metric):
        raise UsageError(
            f"metric must be a function, got a {type(metric).__name__}",
            expected="expected a function from (output, batch) to a number where greater is better",
            remedy="pass the function itself",
        )
    return Int8(MOST_DROP if most_drop is None else most_drop, metric)


def name_of(to: str, quantise: Int8 | None) -> str:
    """Return the name of the default folder of an export.

    Example:
        >>> name_of("onnx", Int8())
        'onnx-int8'
    """
    return to if quantise is None else f"{to}-int8"


@dataclass(frozen=True)
class Quantised:
    """A quantised model that is accurate enough.

    Attributes:
        before: the model.
        after: the quantised one.
        found: metric of both.
        most_drop: the largest fall that is allowed.
    """

    before: nn.Module
    after: nn.Module
    found: Scores
    most_drop: float

    def document(self, path: Path, to: str, calls: Sequence[Call], source: Callable[[], Source]) -> dict[str, Any]:
        """Return metric, latency and size before and after, for `config.json`.

        Args:
            path: the written file.
            to: its format.
            calls: calls with real inputs.
            source: returns the model before in the same format's form, which is written for the measurement only.
        """
        timed, bytes_before = speeds(path, to, calls, source)
        done, linear = layers(self.after)
        return {
            "kind": "int8",
            "from": _type_of(self.before),
            "layers": done,
            "linear_layers": linear,
            "torchao": metadata.version("torchao"),
            "metric": asdict(self.found) | {"drop": self.found.drop, "most_drop": self.most_drop},
            "bytes": {"before": bytes_before, "after": size(path.parent, FILES[to])},
            "latency": timed,
        }


def _type_of(model: nn.Module) -> str:
    """Return the type of the first linear layer."""
    first = next(module for module in model.modules() if isinstance(module, nn.Linear))
    return str(first.weight.dtype).removeprefix("torch.")


def _less_accurate(model: nn.Module, found: Scores, most: float) -> LessAccurate:
    if found.name == ERROR:
        fact = f"rises by {found.drop:.2%}, from {found.before:.6g} to {found.after:.6g}"
        most_shown = f"{most:.2%}"
    else:
        fact = f"falls by {found.drop:.4g}, from {found.before:.4f} to {found.after:.4f}"
        most_shown = f"{most:.4g}"
    return LessAccurate(
        f"the {found.name} of {type(model).__name__} {fact} with int8, in {found.samples:,} samples",
        expected=f"expected at most {most_shown}: nothing was written",
        remedy="export the model without quantise, or allow more with most_drop= (--most-drop)",
    )
