"""Accuracy of a model before and after quantisation, over all batches of the validation data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree

from truestep.errors import BadInputs
from truestep.export.calls import Call, Chosen, call_from
from truestep.export.outputs import leaves
from truestep.export.tracing import plain
from truestep.model.modes import evaluating

Metric = Callable[[Any, Any], Any]
"""A function from the output of the model and the batch to one number, on the CPU; greater is better."""
ACCURACY, ERROR = "accuracy", "mean squared error"
_LABELS = ("labels", "label", "targets", "target")
_REMEDY = "pass metric=, a function from (output, batch) to a number where greater is better (--metric MODULE:FUNCTION)"
Judge = Callable[[torch.Tensor, torch.Tensor], tuple[float, int]]
"""A function from output and labels to a sum and the number of its terms."""


@dataclass(frozen=True)
class Scores:
    """A metric of two models on the same data.

    Attributes:
        name: "accuracy", "mean squared error", or the name of the user's function.
        before, after: mean of the metric of the model, and of the quantised one.
        samples: number of labels, or of samples for the metric of the user.
    """

    name: str
    before: float
    after: float
    samples: int

    @property
    def drop(self) -> float:
        """The loss of quality: a fall of the metric, or the rise of an error relative to the error before."""
        if math.isnan(self.after):
            return 0.0 if math.isnan(self.before) else math.inf
        if self.name != ERROR:
            return self.before - self.after
        rise = self.after - self.before
        return rise / self.before if self.before else (math.inf if rise > 0 else 0.0)


def scores(
    before: nn.Module, after: nn.Module, batches: Iterable[Any], chosen: Chosen | None, metric: Metric | None
) -> Scores:
    """Return the metric of two models over all batches; without a metric, the accuracy or the error for the labels.

    Args:
        before, after: on the CPU.
        batches: of the validation data, with labels.
        chosen: returns the inputs of a batch; None for the convention of `call_from`.
        metric: of the user; None for accuracy or mean squared error.

    Raises:
        BadInputs: the batches have no labels, or labels that allow no metric.
    """
    sums, samples, name = [0.0, 0.0], 0, ""
    judge: Judge | None = None
    with evaluating(before), evaluating(after):
        for given in batches:
            batch = _pytree.tree_map(lambda part: part.cpu() if isinstance(part, torch.Tensor) else part, given)
            call = call_from(before, batch, chosen).copied()
            outputs = [model(*each.args, **each.kwargs) for model in (before, after) for each in (call.copied(),)]
            if metric is not None:
                name, count = getattr(metric, "__name__", "metric"), call.size
                found = [float(metric(output, batch)) * count for output in outputs]
            else:
                labels = _labels(batch, call, chosen)
                held = [_scores_in(output) for output in outputs]
                if judge is None:
                    name, judge = _judge(held[0], labels)
                pairs = [judge(each, labels) for each in held]
                found, count = [pair[0] for pair in pairs], pairs[0][1]
            sums = [total + value for total, value in zip(sums, found, strict=True)]
            samples += count
    means = [total / samples if samples else math.nan for total in sums]
    return Scores(name, means[0], means[1], samples)


def _labels(batch: Any, call: Call, chosen: Chosen | None) -> torch.Tensor:
    """Return the labels of a batch: the field after the inputs, the last one, or the entry of that name."""
    found = None
    if isinstance(batch, Mapping):
        found = next((batch[name] for name in _LABELS if name in batch), None)
    elif isinstance(batch, tuple | list) and len(batch) > 1:
        place = len(call.args) if chosen is None else len(batch) - 1
        found = batch[place] if place < len(batch) else None
    if not isinstance(found, torch.Tensor):
        raise BadInputs(
            "the batches have no labels: the accuracy before and after quantisation cannot be measured",
            expected=f"expected (inputs, labels), or a dictionary with {' or '.join(_LABELS[:2])}",
            remedy="pass the loader of the validation set, with labels",
        )
    return found


def _scores_in(output: Any) -> torch.Tensor:
    """Return the scores in an output: the tensor, the entry "logits", or the first tensor."""
    made = plain(output)
    held = made["logits"] if isinstance(made, Mapping) and "logits" in made else made
    return leaves(held)[0]


def _judge(held: torch.Tensor, labels: torch.Tensor) -> tuple[str, Judge]:
    """Return the name of the metric for labels, and its function."""
    shape = tuple(labels.shape)
    if labels.is_floating_point():
        values = torch.isfinite(labels) & (labels != 0) & (labels != 1)
        if held.numel() == labels.numel() and held.shape[:1] == labels.shape[:1] and bool(values.any()):
            return ERROR, _squares
    else:
        places = [at for at in dict.fromkeys((held.dim() - 1, 1)) if _without(held, at) == shape]
        if len(places) == 1 and held.shape[places[0]] > max(1, int(labels.max()) if labels.numel() else 1):
            return ACCURACY, lambda scores, labels: _hits(scores, labels, places[0])
    raise BadInputs(
        f"outputs of shape {list(held.shape)} and {str(labels.dtype).removeprefix('torch.')} labels of shape "
        f"{list(shape)} allow no metric",
        expected="expected classes for outputs with one score for each class, or numbers for outputs of their shape",
        remedy=_REMEDY,
    )


def _without(held: torch.Tensor, at: int) -> tuple[int, ...] | None:
    shape = tuple(held.shape)
    return shape[:at] + shape[at + 1 :] if 0 < at < len(shape) else None


def _hits(held: torch.Tensor, labels: torch.Tensor, at: int) -> tuple[float, int]:
    """Return the number of right classes and that of labels; negative labels count as none, such as -100."""
    counted = labels >= 0
    return float(((held.argmax(at) == labels) & counted).sum()), int(counted.sum())


def _squares(held: torch.Tensor, labels: torch.Tensor) -> tuple[float, int]:
    apart = held.reshape(labels.shape).double() - labels.double()
    return float(apart.square().sum()), labels.numel()
