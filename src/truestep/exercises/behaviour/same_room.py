"""Checks of `same-room`, with the device "meta" in the place of an accelerator: it is there on each machine."""

from __future__ import annotations

from types import ModuleType

import torch
from torch import nn


def one_tensor(answer: ModuleType) -> None:
    """A tensor"""
    got = answer.to_room(torch.zeros(2, 3), nn.Linear(3, 1, device="meta"))
    assert got is not None, "the function must return the batch: `tensor.to()` does not change the tensor"
    assert got.device.type == "meta", f"the tensor must be on meta, the device of the model, got {got.device}"
    there = torch.zeros(2)
    assert answer.to_room(there, nn.Linear(2, 1)).device.type == "cpu", "a model on the cpu needs tensors on the cpu"


def pair(answer: ModuleType) -> None:
    """A tuple and a list"""
    model = nn.Linear(3, 1, device="meta")
    for batch in ((torch.zeros(2, 3), torch.zeros(2)), [torch.zeros(2, 3), torch.zeros(2)]):
        got = answer.to_room(batch, model)
        assert type(got) is type(batch), f"a {type(batch).__name__} must stay one, got {type(got).__name__}"
        assert [part.device.type for part in got] == ["meta", "meta"], "all tensors must move, the targets too"


def nested(answer: ModuleType) -> None:
    """A dict with tensors at several levels, and other values"""
    batch = {"x": torch.zeros(2, 3), "extra": [torch.ones(1), {"mask": torch.ones(2)}], "name": "a", "n": 3}
    got = answer.to_room(batch, nn.Linear(3, 1, device="meta"))
    assert got["x"].device.type == "meta"
    assert got["extra"][0].device.type == "meta", "a tensor in a list in a dict must move"
    assert got["extra"][1]["mask"].device.type == "meta", "a tensor in a dict in a list must move"
    assert (got["name"], got["n"]) == ("a", 3), "other values must stay as they are"


def untouched(answer: ModuleType) -> None:
    """The batch itself does not change"""
    batch = {"x": torch.zeros(2, 3)}
    answer.to_room(batch, nn.Linear(3, 1, device="meta"))
    assert batch["x"].device.type == "cpu", "the caller may still need the batch: return a new dict"


CHECKS = (one_tensor, pair, nested, untouched)
