"""Labels outside the range of classes, and indices outside the rows of an embedding."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import nn

from truestep.findings import Mark, PostMortem
from truestep.postmortem.evidence import frame_values
from truestep.postmortem.evidence.crash import Crash
from truestep.postmortem.evidence.frame_values import count, shape
from truestep.postmortem.evidence.parties import Party, parties, source

LABEL = r"^Target (?P<label>-?\d+) is out of bounds"
ROW = r"^index out of range in self"
_LARGEST = 1 << 24


def label(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    met = parties(crash)
    if len(met) != 2 or not met[0].tensor.dim():
        return None
    scores, labels = met
    wrong = int(match["label"])
    classes = int(scores.tensor.shape[1] if scores.tensor.dim() > 1 else scores.tensor.shape[0])
    span = _span(labels.tensor)
    if span is None or 0 <= wrong < classes:
        return None
    what = f"`{labels.name}`" if labels.name else "the target"
    facts = [("labels", f"{span[0]:,} to {span[1]:,} in this batch")]
    if wrong < 0:
        help = f"ignore such labels with `ignore_index={wrong}`, or count the labels from 0"
    elif wrong == classes and span[0] >= 1:
        help = f"count the labels from 0: `{labels.name or 'target'} - 1`"
    else:
        help = f"make the last layer with at least {span[1] + 1:,} outputs, or map the labels to 0 to {classes - 1:,}"
    return PostMortem(
        slug="label-outside-of-classes",
        error="",
        message=f"{what} holds the label {wrong:,}, but the model's {classes:,} classes are 0 to {classes - 1:,}",
        primary=crash.fails(f"the scores are {shape(scores.tensor.shape)}: {classes:,} per sample"),
        related=_marks(
            source(crash, labels, f"{what} comes from here"),
            source(crash, scores, f"the scores {shape(scores.tensor.shape)} come from here"),
        ),
        facts=tuple(facts),
        help=help,
    )


def row(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    layer = crash.inner_value("forward")
    given = crash.inner_value("forward", "input")
    if not isinstance(layer, nn.Embedding) or not frame_values.is_tensor(given):
        return None
    rows, span = int(layer.num_embeddings), _span(given)
    if span is None or 0 <= span[0] <= span[1] < rows:
        return None
    asked = span[1] if span[1] >= rows else span[0]
    name = crash.name_of(layer)
    what = f"`{name}`" if name else "an Embedding"
    party = next((one for one in parties(crash) if one.tensor is given), Party("", given))
    built = crash.built(layer, name)
    related = _marks(
        source(crash, party, f"`{party.name}` comes from here, {span[0]:,} to {span[1]:,}"),
        None if built is None else Mark(built, f"{what} is made here, with {count(rows, 'row')}"),
    )
    help = f"make {what} with at least {asked + 1:,} rows, or map larger numbers to one for unknown tokens"
    if asked < 0:
        help = "replace negative numbers before this line, such as those that mark padding"
    return PostMortem(
        slug="index-outside-of-table",
        error="",
        message=f"{what} has the rows 0 to {rows - 1:,} and was asked for row {asked:,}",
        primary=crash.fails(f"the indices run from {span[0]:,} to {span[1]:,}"),
        related=related,
        help=help,
    )


def _span(tensor: Any) -> tuple[int, int] | None:
    """Return the smallest and the largest value of an integer tensor on the CPU."""
    if not tensor.is_cpu or tensor.is_floating_point() or not 0 < tensor.numel() <= _LARGEST:
        return None
    with torch.no_grad():
        low, high = torch.aminmax(tensor)
    return int(low), int(high)


def _marks(*marks: Mark | None) -> tuple[Mark, ...]:
    return tuple(mark for mark in marks if mark is not None)
