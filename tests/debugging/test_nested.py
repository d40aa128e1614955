"""Tensors in nested values."""

import torch

from truestep.debugging._nested import DEEPEST, mapped, tensors


def nested(levels):
    value = torch.ones(1)
    for _ in range(levels):
        value = [value]
    return value


def test_tensors_are_found_and_replaced_to_a_depth():
    assert [path for path, _ in tensors(nested(DEEPEST))] == ["[0]" * DEEPEST]
    assert [tensor.item() for _, tensor in tensors(mapped(nested(DEEPEST), lambda tensor: tensor + 1))] == [2]


def test_a_value_that_contains_itself_has_an_end():
    value = [torch.ones(1)]
    value.append(value)
    assert len(list(tensors(value))) == DEEPEST
    assert list(tensors(nested(DEEPEST + 1))) == []
