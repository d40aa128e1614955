"""Shapes of the arrays that variables hold."""

import numpy as np
import pytest
import torch

from truestep.probes.variables.arrays import shape_of


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_nested_tensor_has_no_shape() -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    assert shape_of(torch, nested) == ()
    assert shape_of(torch, torch.ones(2, 3)) == shape_of(torch, np.ones((2, 3))) == (2, 3)
