"""Each process that a program starts has a record, and a replay merges them as the run did."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

PROGRAM = """
import multiprocessing
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)


def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(rank)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(24):
        x = torch.randn(8, 4)
        (model(x) - x.sum(1, keepdim=True)).square().mean().backward()
        optimizer.step()
    del model
    dist.destroy_process_group()


if __name__ == "__main__" and len(sys.argv) == 1:
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, args=(folder,), nprocs=2)
"""


def truestep(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "truestep", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Return the folder of a run with two ranks, and the report that it printed."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "train.py").write_text(PROGRAM)
    truestep(folder, "run", "--record", "record", "--format", "json", "--output", "report.json", "train.py")
    return folder, json.loads((folder / "report.json").read_text())


@pytest.mark.program
def test_a_replay_equals_the_report_of_the_run(recorded: tuple[Path, dict[str, Any]]) -> None:
    folder, report = recorded
    again = json.loads(truestep(folder, "replay", "--format", "json", "record"))
    assert [finding["rule"] for finding in again["findings"]] == ["missing-zero-grad"]
    assert (again["ranks"], again["steps"]) == (2, 24)
    report.pop("record")
    again.pop("record")
    assert again == report


@pytest.mark.program
def test_each_process_has_a_record(recorded: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = recorded
    (process,) = (folder / "record").glob("rank-0-processes")
    assert sorted(path.name for path in process.iterdir()) == ["0", "1"]
    alone = json.loads(truestep(folder, "replay", "--format", "json", str(process / "1")))
    assert (alone["ranks"], alone["steps"]) == (1, 24)


@pytest.mark.program
def test_the_records_of_an_earlier_run_are_removed(recorded: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, _ = recorded
    truestep(folder, "run", "--record", str(tmp_path), "train.py")
    assert (tmp_path / "rank-0-processes").exists()
    truestep(folder, "run", "--record", str(tmp_path), "train.py", "none")
    assert [path.name for path in tmp_path.iterdir()] == ["rank-0.jsonl"]
    assert json.loads(truestep(folder, "replay", "--format", "json", str(tmp_path)))["steps"] == 0
