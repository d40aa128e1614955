"""Rows of a tensor that a view of it holds, in any shape."""

import pytest
import torch

from truestep.probes.evaluation.rows import viewed

WIDE, LINE, CUBE = torch.zeros(6, 80), torch.zeros(80), torch.zeros(9, 20, 3)


@pytest.mark.parametrize(
    ("part", "rows"),
    [
        (WIDE[2:6], range(2, 6)),
        (WIDE.t()[10:50], range(10, 50)),
        (WIDE.t()[10:50, 1:4], range(10, 50)),
        (WIDE[1:5, 3:9], range(1, 5)),
        (LINE[10:50].reshape(-1, 1), range(10, 50)),
        (CUBE[4, 5:15], range(5, 15)),
        (CUBE[2:7, 5], range(2, 7)),
        (WIDE[0, ::2], None),
        (LINE.view(8, 10), None),
        (WIDE.view(-1)[70:90], None),
        (WIDE.clone(), None),
    ],
)
def test_the_rows_of_a_view_are_known(part, rows):
    found = viewed(part)
    assert (None if found is None else found.chosen) == (None if rows is None else frozenset(rows))
