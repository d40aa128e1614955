"""Fingerprints: other bits give other numbers, nothing of the run is changed, and every line is there."""

import json
import os
import random
import subprocess
import sys
from contextlib import ExitStack

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from truestep.experiments.instruments.state import digests
from truestep.experiments.instruments.state.fingerprints import Fingerprints
from truestep.experiments.instruments.state.trace import read_trace
from truestep.experiments.running.inside.state_writes import watch_writes

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.bool]


@pytest.mark.parametrize("of", [digests.of_tensor, digests.on_device])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_value_changes_the_checksum_and_so_does_the_order(of, dtype):
    tensor = torch.tensor([1, 0, 1, 1, 0, 0, 1], dtype=dtype)
    assert of(tensor) == of(tensor.clone())
    for place in range(len(tensor)):
        other = tensor.clone()
        other[place] = 1 - other[place].int()
        assert of(other) != of(tensor)
    assert of(tensor.flip(0)) != of(tensor)
    assert of(torch.zeros(0, dtype=dtype)) == of(torch.zeros(0, dtype=dtype))


def test_the_last_bit_of_a_weight_changes_the_checksum():
    tensor = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    other = tensor.clone()
    other[500] = torch.nextafter(other[500], torch.tensor(9.0))
    for of in (digests.of_tensor, digests.on_device):
        assert of(other) != of(tensor)


def test_kinds_of_tensors_have_a_checksum_of_their_values():
    square = torch.arange(16.0).reshape(4, 4)
    assert digests.of_tensor(square.t()) == digests.of_tensor(square.t().contiguous()) != digests.of_tensor(square)
    assert digests.of_tensor(square.to_sparse()) == digests.of_tensor(square.clone().to_sparse())
    assert digests.of_tensor(square.to_sparse()) != digests.of_tensor((2 * square).to_sparse())
    assert digests.of_tensor(torch.complex(square, square)) != digests.of_tensor(torch.complex(square, square).conj())
    assert digests.of_tensor(torch.tensor(3.0)) != digests.of_tensor(torch.tensor(4.0))
    assert digests.of_tensor(torch.empty(3, device="meta")) == digests.of_tensor(torch.empty(5, device="meta"))


def test_a_batch_of_any_form_has_a_checksum():
    batch = {"x": torch.ones(2), "texts": ["a", "b"], "n": (1, 2.0, None), "array": np.arange(3)}
    assert digests.of(batch) == digests.of({**batch, "x": torch.ones(2), "array": np.arange(3)})
    for name, value in (("x", torch.zeros(2)), ("texts", ["a", "c"]), ("n", (1, 2.5, None)), ("array", np.zeros(3))):
        assert digests.of({**batch, name: value}) != digests.of(batch)


def trained(folder, watched=True, wrap=lambda model: model):
    """Train a little; return the weights, the random states at the end, and the fingerprints."""
    torch.manual_seed(0)
    random.seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    loader = DataLoader(TensorDataset(torch.randn(12, 3), torch.randn(12, 1)), batch_size=3, shuffle=True)
    with ExitStack() as stack:
        if watched:
            instrument = Fingerprints(folder, "train.py")
            instrument.install(stack)
        optimizer = torch.optim.SGD(wrap(model).parameters(), lr=0.1, momentum=0.9)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        for _ in range(2):
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.mse_loss(wrap(model)(x), y).backward()
                optimizer.step()
                schedule.step()
            torch.save(model.state_dict(), folder / "model.pt")
    states = (torch.get_rng_state().tolist(), random.getstate())
    return [p.tolist() for p in model.state_dict().values()], states, read_trace(folder / "prints.jsonl")


def test_a_run_is_the_same_with_and_without_and_all_of_it_is_written_down(tmp_path):
    weights, states, trace = trained(tmp_path)
    assert (weights, states) == trained(tmp_path, watched=False)[:2]
    assert len(trace.steps) == 8
    first, second, *_, last = trace.steps
    assert first.after == second.weights
    assert (first.state, list(second.state)) == ({}, ["momentum_buffer"])
    assert [len(step.batches) for step in trace.steps] == [1] * 8
    assert [step.batches[0][1] for step in trace.steps] == [1, 2, 3, 4] * 2
    assert sorted(name.partition(": ")[2] for name in first.buffers) == [
        "1.num_batches_tracked",
        "1.running_mean",
        "1.running_var",
    ]
    assert first.names == ["0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "3.bias"]
    assert (first.rates, last.rates) == ([0.1], [pytest.approx(1e-4)])
    assert any(schedule.startswith("StepLR last_epoch 7") for schedule in last.schedules)
    assert trace.draws_from("torch")
    assert [(write.kind, write.steps) for write in trace.writes] == [("torch.save", 4), ("torch.save", 8)]


def test_nothing_of_torch_is_left_changed(tmp_path):
    before = (torch.autograd._engine_run_backward, torch.serialization._save, os.replace, random.setstate)
    trained(tmp_path)
    assert (torch.autograd._engine_run_backward, torch.serialization._save, os.replace, random.setstate) == before


@pytest.mark.slow
def test_a_compiled_model_is_looked_at(tmp_path):
    _, _, trace = trained(tmp_path, wrap=lambda model: torch.compile(model, backend="eager"))
    assert len(trace.steps) == 8
    assert len({step.weights for step in trace.steps}) == 8


def test_each_kind_of_write_is_seen_while_it_is_under_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen = []
    with ExitStack() as stack:
        watch_writes(stack, lambda kind, path, tear: seen.append((kind, path)))
        torch.save({"a": 1}, "a.pt")
        with open("b.pt", "wb") as file:
            torch.save({"a": 1}, file, _use_new_zipfile_serialization=False)
        safetensors.torch.save_file({"a": torch.ones(2)}, "c.safetensors")
        os.replace("a.pt", "d.pt")
        (tmp_path / "b.pt").rename(tmp_path / "e.pt")
    assert seen == [
        ("torch.save", "a.pt"),
        ("torch.save", "b.pt"),
        ("safetensors", "c.safetensors"),
        ("rename", "d.pt"),
        ("rename", "e.pt"),
    ]


def test_a_torn_write_of_safetensors_leaves_what_this_version_would_leave(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    safetensors.torch.save_file({"a": torch.ones(2)}, "c.safetensors")

    def killed(kind, path, tear):
        tear()
        raise KeyboardInterrupt

    with ExitStack() as stack:
        watch_writes(stack, killed)
        with pytest.raises(KeyboardInterrupt):
            safetensors.torch.save_file({"a": torch.zeros(2)}, "c.safetensors")
    assert sorted(os.listdir()) in (["c.safetensors"], [".tmpHalf00", "c.safetensors"])
    if ".tmpHalf00" in os.listdir():  # it writes beside the final name: the earlier file is whole
        assert safetensors.torch.load_file("c.safetensors")["a"].tolist() == [1.0, 1.0]


KILLED = """
import sys, json
from contextlib import ExitStack
import torch
from truestep.experiments.changes.harness.killed import Killed
with ExitStack() as stack:
    Killed(**json.loads(sys.argv[1])).install(stack)
    p = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([p], lr=0.1)
    for step in range(1, 5):
        p.sum().backward()
        print("backward", flush=True)
        optimizer.step()
        print("step", step, flush=True)
        torch.save({"p": p.detach()}, "p.pt")
        print("saved", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "last"),
    [({"step": 2}, "backward"), ({"step": 2, "moment": "backward"}, "saved"), ({"write": 1}, "step 2")],
)
def test_a_process_dies_at_the_given_place(how, last, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, json.dumps(how)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == -9, done.stderr
    assert done.stdout.splitlines()[-1] == last
    if "write" in how:
        with pytest.raises((RuntimeError, OSError, EOFError)):
            torch.load(tmp_path / "p.pt")
