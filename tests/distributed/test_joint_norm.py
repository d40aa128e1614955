"""Layers of batch normalisation over ranks: those that are refused, copies, files; toolkit_loops trains them."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
import torch
from torch import nn

from truestep import Run
from truestep.errors import BadPart
from truestep.loop.ranks.joint_norm import Members, SyncBatchNorm, join_statistics


class Activated(nn.BatchNorm1d):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(input).relu()


@pytest.mark.parametrize("layer", [Activated(3), nn.LazyBatchNorm1d()])
def test_layers_of_other_classes_are_refused(layer: nn.Module) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), layer)
    with pytest.raises(BadPart, match=f"2 is a {type(layer).__name__}, whose statistics cannot be joined"):
        join_statistics(model, Members())
    assert type(model[1]) is nn.BatchNorm1d


def test_a_layer_stays_the_same_object_with_the_same_keys() -> None:
    layer = nn.BatchNorm2d(3)
    model, before = nn.ModuleDict({"norm": layer, "other": nn.InstanceNorm2d(3)}), list(layer.state_dict())
    join_statistics(model, Members())
    assert model["norm"] is layer
    assert isinstance(layer, nn.SyncBatchNorm)
    assert list(layer.state_dict()) == before
    assert type(model["other"]) is nn.InstanceNorm2d


class Strategy:
    weight = 1.0


def test_a_copy_has_the_same_ranks_and_a_file_has_none() -> None:
    members: Any = Members(Strategy(), group=object())  # type: ignore[arg-type]
    layer = nn.BatchNorm1d(3)
    join_statistics(layer, members)
    assert copy.deepcopy(layer).ranks is members
    stream = io.BytesIO()
    torch.save(layer, stream)
    stream.seek(0)
    loaded = torch.load(stream, weights_only=False)
    x = torch.randn(5, 3)
    assert torch.equal(loaded(x), nn.BatchNorm1d(3)(x)), "of this process alone"


@pytest.mark.parametrize("training", [True, False])
def test_passes_without_gradients_are_those_of_one_rank(training: bool) -> None:
    strategy: Any = Strategy()
    layer, plain = nn.BatchNorm1d(3).train(training), nn.BatchNorm1d(3).train(training)
    join_statistics(layer, Members(strategy))
    x = torch.randn(5, 3)
    with torch.no_grad():
        assert torch.equal(layer(x), plain(x))
    assert isinstance(layer.running_mean, torch.Tensor)
    assert isinstance(plain.running_mean, torch.Tensor)
    assert torch.equal(layer.running_mean, plain.running_mean)


def test_one_process_keeps_its_layers() -> None:
    with Run(device="cpu", watch=False, sync_batchnorm=True) as run:
        model = run.model(nn.Sequential(nn.BatchNorm1d(3)))
        assert type(model[0]) is nn.BatchNorm1d
        assert not isinstance(model[0], SyncBatchNorm)
