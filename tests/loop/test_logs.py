"""The log: tensors are read late, lines are written once."""

import json
import math

import numpy as np
import pytest
import torch

from truestep.errors import BadLogValue
from truestep.loop.log.logs import Logs


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_has_step_epoch_and_values(tmp_path):
    logs = Logs(tmp_path / "metrics.jsonl")
    logs.log({"loss": torch.tensor(0.5), "lr": 1e-3, "note": "warm"}, step=3, epoch=1)
    logs.flush()
    assert lines(tmp_path / "metrics.jsonl") == [{"step": 3, "epoch": 1, "loss": 0.5, "lr": 0.001, "note": "warm"}]


def test_values_are_those_of_their_moment(tmp_path):
    logs = Logs(tmp_path / "metrics.jsonl")
    running = torch.tensor(1.0)
    logs.log({"running": running}, step=1, epoch=0)
    running.add_(1.0)
    logs.log({"running": running}, step=2, epoch=0)
    logs.flush()
    assert [line["running"] for line in lines(tmp_path / "metrics.jsonl")] == [1.0, 2.0]


def test_nothing_is_read_before_lines_are_written(tmp_path, monkeypatch):
    logs = Logs(tmp_path / "metrics.jsonl", every=3)
    reads = []
    monkeypatch.setattr(torch.Tensor, "item", lambda self: reads.append("item"))
    whole = torch.Tensor.tolist
    monkeypatch.setattr(torch.Tensor, "tolist", lambda self: reads.append("tolist") or whole(self))
    for step in range(2):
        logs.log({"loss": torch.tensor(0.5), "norm": torch.tensor([2.0])}, step=step, epoch=0)
    assert reads == []
    logs.log({"loss": torch.tensor(0.25)}, step=2, epoch=0)
    assert reads == ["tolist"], "one copy for all lines"
    assert len(lines(tmp_path / "metrics.jsonl")) == 3


def test_graphs_are_let_go(tmp_path):
    logs = Logs(tmp_path / "metrics.jsonl")
    weight = torch.ones((), requires_grad=True)
    logs.log({"loss": weight * 2}, step=0, epoch=0)
    assert not logs._kept[0].values["loss"].requires_grad


def test_nan_and_infinity_are_written_as_text(tmp_path):
    logs = Logs(tmp_path / "metrics.jsonl")
    logs.log({"a": math.nan, "b": torch.tensor(-math.inf)}, step=0, epoch=0)
    logs.flush()
    assert lines(tmp_path / "metrics.jsonl") == [{"step": 0, "epoch": 0, "a": "nan", "b": "-inf"}]


def test_numbers_of_numpy_are_numbers(tmp_path):
    logs = Logs(tmp_path / "metrics.jsonl")
    logs.log({"accuracy": np.float64(0.5), "count": np.int64(3)}, step=0, epoch=0)
    logs.flush()
    assert lines(tmp_path / "metrics.jsonl")[0]["count"] == 3


@pytest.mark.parametrize("value", [torch.ones(2), None, [1.0], {"a": 1}])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(BadLogValue, match="loss"):
        Logs(None).log({"loss": value}, step=0, epoch=0)


def test_the_log_is_cut_to_what_a_checkpoint_knew(tmp_path):
    logs = Logs(tmp_path / "metrics.jsonl")
    logs.log({"loss": 1.0}, step=1, epoch=0)
    size = logs.secure()
    logs.log({"loss": 2.0}, step=2, epoch=0)
    logs.flush()
    logs.cut(size)
    logs.log({"loss": 3.0}, step=2, epoch=0)
    logs.flush()
    assert [line["loss"] for line in lines(tmp_path / "metrics.jsonl")] == [1.0, 3.0]


def test_without_a_folder_the_last_values_are_kept():
    logs = Logs(None)
    logs.log({"val_loss": torch.tensor(2.0)}, step=1, epoch=0)
    logs.flush()
    assert logs.last == {"val_loss": 2.0}
    logs.end_epoch()
    assert logs.last == {}
