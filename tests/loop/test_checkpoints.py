"""A folder of checkpoints: saved state comes back exactly, the last and the best are kept, the newest is found."""

import collections
import json
import os
import random
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import truestep
from truestep.errors import BadCheckpoint, BadSettings, BrokenCheckpoint, DiskFull, UnsavableState, UnwritableFolder
from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.loop.checkpoint.checkpoints import Checkpoints
from truestep.loop.checkpoint.listing import find


class Net(nn.Module):
    """Tied weights, an extra state, a buffer of integers, statistics, complex and low-precision weights."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 4)
        self.decoder = nn.Linear(4, 4)
        self.decoder.weight = self.encoder.weight
        self.norm = nn.BatchNorm1d(4)
        self.low = nn.Parameter(torch.randn(3).bfloat16())
        self.phase = nn.Parameter(torch.randn(2, dtype=torch.complex64))
        self.empty = nn.Parameter(torch.zeros(0, 2))
        self.register_buffer("scale", torch.randn(2).to(torch.float8_e4m3fn))
        self.seen = {"batches": 3, "size": np.float32(0.5)}

    def get_extra_state(self):
        return self.seen

    def set_extra_state(self, state):
        self.seen = state


def same_bits(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(as_bytes(a), as_bytes(b))
    return a == b


def as_bytes(tensor):
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def save(checkpoints, step, **changes):
    return checkpoints.save(
        step, **{"epoch": step // 10, "models": {"model": {"weight": torch.full((3,), step)}}, **changes}
    )


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_model_comes_back_exactly(tmp_path):
    net = Net()
    path = Checkpoints(tmp_path).save(7, epoch=1, models={"model": net.state_dict()})
    back, state = Checkpoint(path).model("model"), net.state_dict()
    assert list(back) == list(state)
    assert all(same_bits(back[key], state[key]) for key in state)
    assert back["encoder.weight"] is back["decoder.weight"]
    assert back._metadata == state._metadata
    other = Net()
    other.load_state_dict(back)
    assert all(same_bits(*pair) for pair in zip(other.state_dict().values(), state.values(), strict=True))


def test_several_models_have_a_file_each(tmp_path):
    models = {"generator": nn.Linear(2, 2), "critic": nn.Linear(2, 1), "a/b": nn.Linear(1, 1)}
    path = Checkpoints(tmp_path).save(1, epoch=0, models={name: net.state_dict() for name, net in models.items()})
    assert {"generator.safetensors", "critic.safetensors", "a%2Fb.safetensors"} < set(names(path))
    for name, net in models.items():
        assert torch.equal(Checkpoint(path).model(name)["weight"], net.weight)
    with pytest.raises(BadCheckpoint, match="has no model 'actor'") as caught:
        Checkpoint(path).model("actor")
    assert "'generator', 'critic', 'a/b'" in caught.value.expected


def test_an_optimizer_and_random_states_come_back_exactly(tmp_path):
    net = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=np.float64(0.1))
    for _ in range(3):
        net(torch.randn(2, 3)).sum().backward()
        optimizer.step()
    rng = {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}
    state = {"optimizer": optimizer.state_dict(), "losses": collections.deque([0.5], maxlen=3)}
    path = Checkpoints(tmp_path).save(3, epoch=0, models={"model": net.state_dict()}, state=state, rng=rng)
    back = Checkpoint(path)
    assert back.state()["losses"] == state["losses"]
    assert back.state()["optimizer"]["param_groups"] == optimizer.state_dict()["param_groups"]
    for number, moments in optimizer.state_dict()["state"].items():
        assert all(same_bits(back.state()["optimizer"]["state"][number][key], moments[key]) for key in moments)
    assert back.rng()["python"] == rng["python"]
    assert torch.equal(back.rng()["torch"], rng["torch"])
    assert np.array_equal(back.rng()["numpy"][1], rng["numpy"][1])


def test_each_rank_has_its_random_states(tmp_path):
    path = save(Checkpoints(tmp_path), 1, rng=[{"rank": 0}, {"rank": 1}])
    assert [Checkpoint(path).rng(rank) for rank in (0, 1)] == [{"rank": 0}, {"rank": 1}]
    assert Checkpoint(path).world_size == 2
    with pytest.raises(BadCheckpoint, match="no random states of rank 2"):
        Checkpoint(path).rng(2)


def test_everything_loads_without_running_code(tmp_path):
    path = Checkpoints(tmp_path).save(1, epoch=0, models={"model": Net().state_dict()}, state={"a": {1}}, rng={"b": 2})
    files = [name for name in names(path) if name.endswith(".pt")]
    assert files == ["models.pt", "rng-rank0.pt", "state.pt"]
    for name in files:
        torch.load(path / name, weights_only=True)


def test_the_manifest_says_what_the_checkpoint_is(tmp_path):
    path = save(Checkpoints(tmp_path), 12, metric=np.float32(0.5), mode="max")
    content = json.loads((path / "manifest.json").read_text())
    assert content["format"] == "truestep.checkpoint/1"
    assert (content["step"], content["epoch"], content["metric"], content["mode"]) == (12, 1, 0.5, "max")
    assert content["versions"] == {"torch": torch.__version__, "truestep": truestep.__version__}
    assert {name: entry["bytes"] for name, entry in content["files"].items()} == {
        name: (path / name).stat().st_size for name in names(path) if name != "manifest.json"
    }
    found = Checkpoint(path)
    assert (found.step, found.epoch, found.metric, found.models) == (12, 1, 0.5, ["model"])


def test_the_last_and_the_best_are_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep_last=2)
    for step, metric in enumerate([3.0, 1.0, 2.0, 5.0, None, float("nan"), 4.0], start=1):
        save(checkpoints, step, metric=metric)
    assert names(tmp_path) == ["best", "last", "step-000002", "step-000006", "step-000007"]
    assert checkpoints.newest().step == 7
    assert checkpoints.best().step == 2
    assert (os.readlink(tmp_path / "last"), os.readlink(tmp_path / "best")) == ("step-000007", "step-000002")


def test_the_highest_is_best_where_it_is_asked_for(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep_last=1)
    for step, metric in enumerate([0.5, 0.9, 0.9, 0.1], start=1):
        save(checkpoints, step, metric=metric, mode="max")
    assert checkpoints.best().step == 3
    assert names(tmp_path) == ["best", "last", "step-000003", "step-000004"]


def test_without_metrics_nothing_is_best(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.newest() is checkpoints.best() is None
    save(checkpoints, 1)
    save(checkpoints, 2, metric=float("nan"))
    assert checkpoints.best() is None
    assert not (tmp_path / "best").exists()


def test_newest_is_the_one_saved_last_whatever_the_clock_and_the_steps_say(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path)
    for step in (10, 20, 30):
        save(checkpoints, step)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    again = Checkpoints(tmp_path)
    path = save(again, 15)
    for entry in path.iterdir():
        os.utime(entry, (0, 0))
    os.utime(path, (0, 0))
    assert again.newest().step == 15
    assert names(tmp_path) == ["last", "step-000015", "step-000020", "step-000030"]
    assert Checkpoints(tmp_path).newest().step == 15


def test_a_step_saved_again_is_replaced(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    save(checkpoints, 1, state={"run": "first"})
    save(checkpoints, 2)
    save(checkpoints, 1, state={"run": "second"})
    assert checkpoints.newest().state() == {"run": "second"}
    assert names(tmp_path) == ["last", "step-000001", "step-000002"]


def test_a_step_saved_again_at_once_without_a_metric_keeps_its_metric(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    save(checkpoints, 1, metric=2.0, mode="max")
    save(checkpoints, 1)
    assert (checkpoints.best().step, checkpoints.best().metric, checkpoints.best().manifest.mode) == (1, 2.0, "max")
    save(checkpoints, 2)
    save(checkpoints, 1)
    assert checkpoints.best() is None


def test_a_script_that_changes_directory_saves_where_it_began(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoints = Checkpoints(Path("lab"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    save(checkpoints, 1)
    assert find(tmp_path / "lab").step == 1


def test_a_damaged_checkpoint_is_named_and_left_alone(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for step in (1, 2, 3):
        save(checkpoints, step, metric=-step)
    (tmp_path / "step-000003" / "state.pt").unlink()
    weights = tmp_path / "step-000002" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\xff")
    with pytest.warns(BrokenCheckpoint) as caught:
        assert checkpoints.newest().step == 1
    said = [str(warning.message) for warning in caught]
    assert any("step-000003 is invalid: state.pt is missing; it is left unchanged" in text for text in said)
    assert any("step-000002 is invalid: model.safetensors is damaged" in text for text in said)
    with pytest.warns(BrokenCheckpoint):
        assert checkpoints.best().step == 1
    assert names(tmp_path)[2:] == ["step-000001", "step-000002", "step-000003"]


def test_a_damaged_checkpoint_of_the_same_step_is_replaced(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    save(checkpoints, 1)
    (tmp_path / "step-000001" / "manifest.json").unlink()
    save(Checkpoints(tmp_path), 1)
    assert Checkpoints(tmp_path).newest().step == 1


@pytest.mark.parametrize("value", [lambda: 1, nn.Linear(1, 1)])
def test_what_cannot_be_saved_fails_before_anything_is_written(tmp_path, value):
    checkpoints = Checkpoints(tmp_path)
    with pytest.raises(UnsavableState, match=r"state\['sampler'\]\['fn'\] cannot be saved"):
        save(checkpoints, 1, state={"sampler": {"fn": value}})
    assert names(tmp_path) == []


def test_an_extra_state_that_cannot_be_saved_names_its_model(tmp_path):
    with pytest.raises(UnsavableState, match=r"the state of model 'model'\['_extra_state'\] cannot be saved"):
        save(Checkpoints(tmp_path), 1, models={"model": {"_extra_state": len}})


def test_the_first_state_is_read_back_before_the_manifest(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path)
    load = torch.load
    read = []

    def loading(path, **options):
        read.append((path.name, (path.parent / "manifest.json").exists()))
        return load(path, **options)

    monkeypatch.setattr(torch, "load", loading)
    save(checkpoints, 1, rng={"a": 1})
    assert read == [("models.pt", False), ("state.pt", False), ("rng-rank0.pt", False)]
    save(checkpoints, 2)
    assert len(read) == 3


def test_a_state_that_comes_back_different_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "load", lambda *_, **__: {"other": 1})
    with pytest.raises(UnsavableState, match=r"models\.pt differs from the state that was written"):
        save(Checkpoints(tmp_path), 1)
    assert names(tmp_path) == []


def test_a_disk_that_fills_while_writing_leaves_nothing_behind(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path)
    save(checkpoints, 1)
    save_file = torch.save

    def filling(value, file):
        save_file(value, file)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", filling)
    with pytest.raises(DiskFull, match="does not fit on the disk") as caught:
        save(checkpoints, 2)
    assert "earlier checkpoints are intact" in caught.value.remedy
    assert names(tmp_path) == ["last", "step-000001"]
    assert checkpoints.newest().step == 1


@pytest.mark.parametrize("place", ["checkpoints", ""])
def test_a_file_in_place_of_the_folder_is_an_error(tmp_path, place):
    (tmp_path / "run").write_text("")
    with pytest.raises(UnwritableFolder, match="cannot write into"):
        Checkpoints(tmp_path / "run" / place)


def test_a_mode_that_there_is_not_is_an_error(tmp_path):
    with pytest.raises(BadSettings, match=r"mode must be .*, got 'maximum'"):
        save(Checkpoints(tmp_path), 1, mode="maximum")


def test_keeping_none_is_an_error(tmp_path):
    with pytest.raises(BadSettings, match="keep_last must be a positive integer, got 0"):
        Checkpoints(tmp_path, keep_last=0)


def test_another_process_is_not_disturbed_by_a_reader(tmp_path):
    save(Checkpoints(tmp_path / "checkpoints"), 1)
    under_way = tmp_path / "checkpoints" / ".tmp-step-000002"
    under_way.mkdir()
    assert find(tmp_path).step == 1
    assert under_way.exists()


class TestFind:
    @pytest.fixture
    def run(self, tmp_path):
        checkpoints = Checkpoints(tmp_path / "lab" / "checkpoints")
        for step, metric in ((1, 0.1), (2, 0.5)):
            save(checkpoints, step, metric=metric)
        return tmp_path / "lab"

    @pytest.mark.parametrize(
        ("path", "step"),
        [("", 2), ("checkpoints", 2), ("checkpoints/step-000001", 1), ("checkpoints/last", 2), ("checkpoints/best", 1),
         ("last", 2), ("best", 1)],
    )  # fmt: skip
    def test_path_means_a_checkpoint(self, run, path, step):
        assert find(run / path).step == step
        assert find(str(run / path)).path.name == f"step-00000{step}"

    @pytest.mark.parametrize("link", ["last", "best"])
    def test_links_are_not_needed(self, run, link):
        (run / "checkpoints" / link).unlink()
        assert find(run / "checkpoints" / link).step == {"last": 2, "best": 1}[link]

    def test_a_copied_checkpoint_is_found_under_any_name(self, run, tmp_path):
        (run / "checkpoints" / "step-000001").rename(tmp_path / "kept")
        assert find(tmp_path / "kept").step == 1

    def test_a_run_that_is_called_best_is_a_run(self, run, tmp_path):
        run.rename(tmp_path / "best")
        assert find(tmp_path / "best").step == 2

    @pytest.mark.parametrize(
        ("path", "got"),
        [("missing", "got nothing"), ("checkpoints/step-000009", "got nothing"), ("notes", "got a folder with a.txt")],
    )
    def test_nothing_there_is_an_error_that_says_what_is(self, run, path, got):
        (run / "notes").mkdir()
        (run / "notes" / "a.txt").touch()
        with pytest.raises(BadCheckpoint, match="no checkpoint at") as caught:
            find(run / path)
        assert got in caught.value.expected

    def test_a_damaged_checkpoint_that_was_asked_for_is_an_error(self, run):
        (run / "checkpoints" / "step-000001" / "manifest.json").unlink()
        with pytest.raises(BadCheckpoint, match=r"step-000001 is invalid: it has no manifest\.json"):
            find(run / "checkpoints" / "step-000001")

    def test_nothing_is_said_where_all_is_whole(self, run):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            find(run)
