"""Ranks that do not answer: which errors are about them, and what is said of them."""

from types import SimpleNamespace

import pytest
import torch

from truestep.loop.ranks.heartbeat import Sign
from truestep.loop.ranks.silence import GAVE_UP, explained, is_of_ranks

ALIVE = Sign(beats=9, operations=5, place="train.py:30", ended="")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.distributed.DistError("timed out"), True),
        (torch.distributed.DistBackendError("NCCL timed out"), True),
        (RuntimeError("[pair.cc:534] Connection closed by peer [10.0.0.1]:4711"), True),
        (RuntimeError("shapes do not match"), False),
        (BrokenPipeError("Broken pipe"), False),
    ],
    ids=str,
)
def test_errors_about_ranks(error, expected):
    assert is_of_ranks(error) is expected


@pytest.mark.parametrize(
    ("signs", "said"),
    [
        ([ALIVE, None, None], "ranks 1, 2 did not answer: killed"),
        ([ALIVE, ALIVE._replace(ended="with an error")], "rank 1 has ended with an error"),
        ([ALIVE._replace(ended=GAVE_UP), ALIVE], f"rank 0 has ended {GAVE_UP}"),
        (
            [ALIVE._replace(ended=GAVE_UP), ALIVE._replace(operations=4, place="train.py:7")],
            "rank 1 did not come: the last operation over all ranks there was at train.py:7",
        ),
        ([ALIVE, ALIVE], "the ranks did not come to the same operation in time"),
    ],
)
def test_the_ranks_that_did_not_come_are_named(signs, said):
    heartbeat = SimpleNamespace(signs=lambda: signs, place="train.py:31")
    text = str(explained(torch.distributed.DistError("[gloo.cc:1] timed out. More"), heartbeat))
    assert said in text
    assert "this rank waited at train.py:31" in text
    assert "got: timed out" in text
