"""The table adds up, counts tied parameters once, and fits on 80 columns."""

import pytest
import torch
from torch import nn

from truestep import freeze, parameter_groups, parameter_table
from truestep.errors import BadSettings


def tied():
    model = nn.Module()
    model.embed = nn.Embedding(10, 4)
    model.body = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4).to(torch.bfloat16))
    model.head = nn.Linear(4, 10, bias=False)
    model.head.weight = model.embed.weight
    model.register_buffer("mask", torch.ones(2, 2))
    return model


def test_totals_count_tied_parameters_once():
    model = tied()
    freeze(model, "body.0")
    table = parameter_table(model)
    assert table.parameters == sum(p.numel() for p in model.parameters()) == 80
    assert table.trainable == 60
    assert table.bytes == sum(p.nbytes for p in model.parameters())
    assert table.buffer_bytes == 16


def test_the_printed_table_says_all():
    model = tied()
    freeze(model, "body.0")
    optimizer = torch.optim.SGD(parameter_groups(model.body, lr=0.1))
    assert str(parameter_table(model, optimizer)) == (
        " name                        shape   dtype     parameters  trainable  group\n"
        " ─────────────────────────────────────────────────────────────────────────────\n"
        " embed.weight                10 x 4  float32           40        yes  none\n"
        " body.0.weight               4 x 4   float32           16         no  decay\n"
        " body.0.bias                 4       float32            4         no  no_decay\n"
        " body.1.weight               4 x 4   bfloat16          16        yes  decay\n"
        " body.1.bias                 4       bfloat16           4        yes  no_decay\n"
        " head.weight = embed.weight  10 x 4  float32       shared             none\n"
        "\n"
        "80 parameters, 60 trainable; 280 bytes; buffers 16 bytes"
    )


def test_long_names_stand_under_their_module_within_80_columns():
    model = nn.Module()
    model.encoder = nn.ModuleList([nn.TransformerEncoderLayer(512, 8) for _ in range(2)])
    lines = str(parameter_table(model, torch.optim.SGD(model.parameters(), lr=0.1))).splitlines()
    assert max(map(len, lines)) <= 80
    at = next(number for number, line in enumerate(lines) if line.strip() == "encoder.1.linear1")
    assert lines[at + 1].split() == ["weight", "2048", "x", "512", "float32", "1,048,576", "yes", "0"]


def test_children_are_added_up():
    table = parameter_table(tied(), depth=1)
    assert [(row.name, row.parameters, row.dtype, row.same_as) for row in table.rows] == [
        ("embed", 40, "float32", ""),
        ("body", 40, "float32, bfloat16", ""),
        ("head", 0, "float32", "embed.weight"),
    ]
    assert table.parameters == 80


def test_what_has_no_shape_yet_is_shown():
    assert [row.shape for row in parameter_table(nn.LazyLinear(2)).rows] == ["?", "?"]


def test_a_module_without_parameters_has_an_empty_table():
    assert "0 parameters" in str(parameter_table(nn.ReLU()))


def test_a_depth_below_one_is_refused():
    with pytest.raises(BadSettings, match="depth must be an integer of at least 1, got 0"):
        parameter_table(tied(), depth=0)


def test_a_single_number_has_a_shape_too():
    table = parameter_table(nn.ParameterList([nn.Parameter(torch.ones(()))]))
    assert table.rows[0].shape == "()"
    assert "1 parameter, 1 trainable" in str(table)
