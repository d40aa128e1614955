"""Batch normalization of a single sample: the layer, and the loader with a last batch of one."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from truestep.findings import Mark, PostMortem
from truestep.postmortem.evidence import frame_values
from truestep.postmortem.evidence.crash import Crash, Frame
from truestep.postmortem.evidence.frame_values import shape

MESSAGE = r"^Expected more than 1 value per channel when training, got input size torch\.Size\(\[(?P<sizes>[\d, ]+)\]\)"


def explain(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    layer = crash.inner_value("forward")
    sizes = tuple(int(size) for size in match["sizes"].split(","))
    if layer is None or not frame_values.is_module(layer) or "Norm" not in type(layer).__name__:
        return None
    name = crash.name_of(layer)
    what = f"`{name}`" if name else f"a {type(layer).__name__}"
    if sizes[0] != 1:
        return None
    related: list[Mark] = []
    facts: tuple[tuple[str, str], ...] = ()
    help = (
        "give it at least two samples in training (`drop_last=True` makes a loader drop a last batch of one), "
        "or call `.eval()` on the model to predict one"
    )
    loader = _loader(crash)
    rest = None if loader is None else _rest(loader[1])
    if loader is not None and rest is not None:
        named, _, frame = loader
        setting = [] if frame.file is None or frame.scope is None else frame.file.settings(frame.scope, named)
        facts = (("note", f"{rest[0]:,} samples in batches of {rest[1]} leave a last batch of 1"),)
        if len(setting) == 1:
            related.append(Mark(frame.place(setting[0].node), "keeps the last batch, even if it has one sample"))
        help = f"make `{named}` with `drop_last=True`"
    return PostMortem(
        slug="batch-of-one",
        error="",
        message=f"{what} was given one sample, but in training it needs the variance of several",
        primary=crash.fails(f"{what} was given {shape(sizes)}"),
        related=tuple(related),
        facts=facts,
        help=help,
    )


def _loader(crash: Crash) -> tuple[str, Any, Frame] | None:
    """Return the only visible loader that may end with a batch of one sample."""
    found = {}
    for frame in crash.frames:
        for name, value in frame.names.items():
            if type(value) is DataLoader:
                own = frame_values.attributes(value)
                size = own.get("batch_size")
                if type(size) is int and size > 1 and own.get("drop_last") is False and _leaves_one(value, size):
                    found[id(value)] = (name, value, frame)
    return next(iter(found.values())) if len(found) == 1 else None


def _leaves_one(loader: Any, size: int) -> bool:
    rest = _rest(loader)
    return rest is not None and rest[0] % size == 1


def _rest(loader: Any) -> tuple[int, int] | None:
    """Return the number of samples of a loader with a data set class of torch, and its batch size."""
    own = frame_values.attributes(loader)
    dataset = own.get("dataset")
    if type(dataset) is not TensorDataset:
        return None
    tensors = frame_values.attributes(dataset).get("tensors")
    first = tensors[0] if type(tensors) is tuple and tensors else None
    return (int(first.shape[0]), int(own["batch_size"])) if isinstance(first, torch.Tensor) else None
