"""Models divided over ranks: their units, and models that cannot be divided."""

import pytest
import torch
from torch import nn

from truestep.errors import BadPart
from truestep.loop.ranks.sharding import check_shardable, units_of


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.head = nn.Linear(3, 3)


def test_the_units_are_the_repeated_blocks_or_those_of_a_type():
    assert units_of(Model(), None) == ["blocks.0", "blocks.1", "blocks.2", "blocks.3"]
    assert units_of(Model(), nn.Linear) == [f"blocks.{place}.layer" for place in range(4)] + ["head"]


def test_blocks_that_share_parameters_or_have_none_are_no_units():
    model = Model()
    model.head.weight = model.blocks[1].layer.weight
    model.blocks[2] = nn.Identity()
    model.blocks.append(model.blocks[3])
    (unit,) = (name for name in units_of(model, [Block, nn.Identity]) if name != "blocks.0")
    assert unit in ("blocks.3", "blocks.4"), "one name of a block that is used twice"


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (nn.LazyLinear(3), "has no shape yet"),
        (nn.Embedding(3, 3, sparse=True), "has sparse gradients"),
        (nn.ParameterList([nn.Parameter(torch.zeros(()))]), "has no dimension"),
    ],
    ids=["lazy", "sparse", "scalar"],
)
def test_parameters_that_cannot_be_divided_are_named(part, said):
    model = Model()
    check_shardable(model)
    model.part = part
    with pytest.raises(BadPart, match=rf"part\S* {said}"):
        check_shardable(model)
