"""Weights go into a model from any file, all of them or with an exact account."""

import argparse
import collections
import datetime
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

from truestep.errors import BadCheckpoint, KeysDoNotMatch
from truestep.loop.checkpoint.checkpoints import Checkpoints
from truestep.loop.checkpoint.weight_files import read_weights
from truestep.loop.checkpoint.weights import load_weights


def net(inputs=4, classes=3):
    return nn.Sequential(
        collections.OrderedDict(body=nn.Linear(inputs, 8), norm=nn.BatchNorm1d(8), head=nn.Linear(8, classes))
    )


def same(a, b):
    a, b = a.state_dict(), b.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


@pytest.fixture
def trained():
    torch.manual_seed(1)
    model = net()
    model(torch.randn(5, 4))
    return model


@pytest.fixture
def run(tmp_path, trained):
    checkpoints = Checkpoints(tmp_path / "lab" / "checkpoints")
    checkpoints.save(5, epoch=0, models={"model": trained.state_dict()}, metric=1.0)
    return tmp_path / "lab"


@pytest.mark.parametrize("path", ["", "checkpoints", "checkpoints/step-000005", "best", "checkpoints/last",
                                  "checkpoints/step-000005/model.safetensors"])  # fmt: skip
def test_weights_come_from_our_checkpoints(run, trained, path):
    model = net()
    report = load_weights(model, run / path)
    assert report.complete
    assert report.loaded == list(model.state_dict())
    assert same(model, trained)


def test_one_of_several_models_is_named(tmp_path):
    models = {"generator": nn.Linear(2, 2), "critic": nn.Linear(2, 2)}
    checkpoints = Checkpoints(tmp_path)
    path = checkpoints.save(1, epoch=0, models={name: model.state_dict() for name, model in models.items()})
    model = nn.Linear(2, 2)
    load_weights(model, path, name="critic")
    assert same(model, models["critic"])
    load_weights(model, checkpoints.newest(), name="generator")
    assert same(model, models["generator"])
    with pytest.raises(BadCheckpoint, match="holds 2 models") as caught:
        load_weights(model, path)
    assert "'generator', 'critic'" in caught.value.expected
    with pytest.raises(BadCheckpoint, match="has no model 'actor'"):
        load_weights(model, path, name="actor")


def test_a_damaged_file_of_weights_is_an_error_and_a_damaged_other_file_is_not(run, trained):
    folder = run / "checkpoints" / "step-000005"
    (folder / "state.pt").write_bytes(b"x" * (folder / "state.pt").stat().st_size)
    model = net()
    load_weights(model, folder)
    assert same(model, trained)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x77")
    with pytest.raises(BadCheckpoint, match=r"model\.safetensors is damaged"):
        load_weights(net(), folder)


NESTS = {
    "plain": lambda state: state,
    "state_dict": lambda state: {"epoch": 3, "state_dict": state, "optimizer": {"state": {}}},
    "model": lambda state: {"model": state, "args": {"lr": 0.1}},
    "model_state_dict": lambda state: {"model_state_dict": state, "loss": torch.tensor(0.5).item()},
    "nested twice": lambda state: {"model": {"state_dict": state}},
}


@pytest.mark.parametrize("nest", NESTS.values(), ids=NESTS)
@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module.module."])
def test_foreign_files_are_read(tmp_path, trained, nest, prefix):
    state = {prefix + key: value for key, value in trained.state_dict().items()}
    torch.save(nest(state), tmp_path / "foreign.pth")
    model = net()
    assert load_weights(model, tmp_path / "foreign.pth").complete
    assert same(model, trained)


def test_an_entry_of_a_file_is_named(tmp_path, trained):
    other = net()
    torch.save({"ema": trained.state_dict(), "model": other.state_dict(), "step": 3}, tmp_path / "a.pt")
    model = net()
    load_weights(model, tmp_path / "a.pt", name="ema")
    assert same(model, trained)
    load_weights(model, tmp_path / "a.pt")
    assert same(model, other)
    with pytest.raises(BadCheckpoint, match=r"no weights were found in .* under 'average'") as caught:
        load_weights(model, tmp_path / "a.pt", name="average")
    assert "got keys ema, model, step" in caught.value.expected


class Compiled(nn.Module):
    """A wrapper with the keys of `torch.compile(module)`."""

    def __init__(self, module):
        super().__init__()
        self._orig_mod = module


def test_wrappers_inside_keys_do_not_matter_on_either_side(trained):
    inside = {key.replace("body.", "body._orig_mod."): value for key, value in trained.state_dict().items()}
    model = net()
    assert load_weights(model, inside).complete
    assert same(model, trained)
    compiled = net()
    compiled.body = Compiled(compiled.body)
    assert load_weights(compiled, trained.state_dict()).complete
    assert torch.equal(compiled.body._orig_mod.weight, trained.body.weight)


def test_a_part_of_the_model_that_is_called_module_is_kept(trained):
    averaged = torch.optim.swa_utils.AveragedModel(net())
    source = torch.optim.swa_utils.AveragedModel(trained)
    assert load_weights(averaged, source.state_dict()).complete
    assert same(averaged, source)


def test_files_in_the_safetensors_format_of_others_are_read(tmp_path, trained):
    safetensors.torch.save_file(trained.state_dict(), tmp_path / "model.safetensors")
    for path in (tmp_path, tmp_path / "model.safetensors"):
        model = net()
        load_weights(model, path)
        assert same(model, trained)


def tied():
    model = nn.Sequential(nn.Embedding(5, 5), nn.Linear(5, 5, bias=False))
    model[1].weight = model[0].weight
    return model


def test_a_tied_weight_that_a_file_leaves_out_is_not_missing(tmp_path):
    source, model = tied(), tied()
    safetensors.torch.save_file({"0.weight": source[0].weight}, tmp_path / "a.safetensors")
    assert load_weights(model, tmp_path / "a.safetensors").missing == []
    assert same(model, source)
    untied = nn.Sequential(nn.Embedding(5, 5), nn.Linear(5, 5, bias=False))
    with pytest.raises(KeysDoNotMatch, match="does not match") as caught:
        load_weights(untied, tmp_path / "a.safetensors")
    assert "1 missing in the file: 1.weight" in caught.value.expected


def test_a_counter_that_old_files_lack_is_not_missing(trained):
    state = {key: value for key, value in trained.state_dict().items() if "num_batches" not in key}
    assert load_weights(net(), state).missing == []


class Counter(nn.Module):
    """A module with extra state only."""

    def __init__(self):
        super().__init__()
        self.seen = 0

    def get_extra_state(self):
        return {"seen": self.seen}

    def set_extra_state(self, state):
        self.seen = state["seen"]


def test_a_model_without_tensors_has_its_extra_state_loaded(tmp_path):
    source, model = Counter(), Counter()
    source.seen = 5
    path = Checkpoints(tmp_path).save(1, epoch=0, models={"model": source.state_dict()})
    assert load_weights(model, path).loaded == ["_extra_state"]
    assert model.seen == 5
    assert load_weights(Counter(), source.state_dict()).complete
    assert load_weights(nn.Identity(), {}).complete


def test_what_does_not_match_is_listed_and_nothing_is_loaded(trained):
    state = trained.state_dict()
    state["head.weigth"] = state.pop("head.weight")
    state["extra"] = torch.ones(1)
    model = net(inputs=7)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with pytest.raises(KeysDoNotMatch) as caught:
        load_weights(model, state)
    assert caught.value.happened == "the given mapping does not match the model"
    assert "1 missing in the file: head.weight (the file has head.weigth)" in caught.value.expected
    assert "2 unknown to the model: head.weigth, extra" in caught.value.expected
    assert "1 of another shape: body.weight [8, 4] in the file, [8, 7] in the model" in caught.value.expected
    assert "partial=True" in caught.value.remedy
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


def test_many_keys_are_counted_not_listed():
    model = nn.Sequential(*(nn.Linear(1, 1) for _ in range(20)))
    with pytest.raises(KeysDoNotMatch) as caught:
        load_weights(model, {"0.weight": torch.ones(1, 1)})
    assert "39 missing in the file: 0.bias, 1.weight, 1.bias, 2.weight, 2.bias and 34 more" in caught.value.expected


def test_part_of_the_weights_is_loaded_where_that_is_asked_for(trained):
    model = net(classes=10)
    head = model.head.weight.clone()
    state = {**trained.state_dict(), "extra": torch.ones(1)}
    del state["norm.bias"]
    report = load_weights(model, state, partial=True)
    assert not report.complete
    assert report.missing == ["norm.bias"]
    assert report.unexpected == ["extra"]
    assert report.reshaped == {"head.weight": ((3, 8), (10, 8)), "head.bias": ((3,), (10,))}
    assert "body.weight" in report.loaded
    assert torch.equal(model.body.weight, trained.body.weight)
    assert torch.equal(model.head.weight, head)


@pytest.mark.parametrize(
    "state", [{"a": torch.ones(1)}, {}, {"0.weight": torch.ones(9, 9)}], ids=["unknown", "empty", "shapes"]
)
def test_nothing_that_matches_is_an_error_also_for_a_part(state):
    with pytest.raises(KeysDoNotMatch, match="nothing in the given mapping matches the model"):
        load_weights(nn.Sequential(nn.Linear(2, 2)), state, partial=True)


def test_types_of_the_model_are_kept(trained):
    model = net().bfloat16()
    load_weights(model, trained.state_dict())
    assert model.body.weight.dtype == torch.bfloat16
    assert torch.equal(model.body.weight, trained.body.weight.bfloat16())


def test_weights_go_where_they_are_asked_for(tmp_path, trained):
    torch.save(trained.state_dict(), tmp_path / "a.pt")
    assert {value.device.type for value in read_weights(tmp_path / "a.pt", device="meta").values()} == {"meta"}


@pytest.mark.parametrize("thing", [np.float64(0.5), np.int64(3), np.arange(3.0), Path("a"), argparse.Namespace(lr=0.1)])
def test_what_scripts_save_beside_the_weights_does_not_stop_them_from_being_read(tmp_path, trained, thing):
    torch.save({"state_dict": trained.state_dict(), "beside": thing}, tmp_path / "a.pt")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / "a.pt", weights_only=True)
    model = net()
    load_weights(model, tmp_path / "a.pt")
    assert same(model, trained)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / "a.pt", weights_only=True)


class Settings:
    pass


@pytest.mark.parametrize("thing", [Settings(), datetime.timedelta(1)])
def test_a_file_that_needs_code_is_refused_with_what_to_do(tmp_path, trained, thing):
    torch.save({"state_dict": trained.state_dict(), "settings": thing}, tmp_path / "a.pt")
    with pytest.raises(BadCheckpoint, match=r"a\.pt cannot be read without running code from it") as caught:
        load_weights(net(), tmp_path / "a.pt")
    assert type(thing).__name__ in caught.value.expected
    assert "weights_only=False" in caught.value.remedy


@pytest.mark.parametrize("cut", [0, 1, 100, -1, -200])
def test_a_truncated_file_is_named(tmp_path, trained, cut):
    path = tmp_path / "a.pt"
    torch.save(trained.state_dict(), path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(BadCheckpoint, match=r"a\.pt is damaged, or was not written by torch\.save"):
        load_weights(net(), path)


@pytest.mark.parametrize("content", ["text", "zip"])
def test_a_file_of_another_kind_is_named(tmp_path, content):
    path = tmp_path / "a.pt"
    if content == "zip":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("notes.txt", "notes")
    else:
        path.write_text("not weights")
    with pytest.raises(BadCheckpoint, match=r"a\.pt is damaged, or was not written by torch\.save"):
        load_weights(net(), path)


@pytest.mark.parametrize("content", [3, [torch.ones(1)], torch.ones(2), {"args": {"lr": 0.1}}])
def test_a_file_without_weights_says_what_it_holds(tmp_path, content):
    torch.save(content, tmp_path / "a.pt")
    with pytest.raises(BadCheckpoint, match="no weights were found"):
        load_weights(net(), tmp_path / "a.pt")


@pytest.mark.parametrize("path", ["missing.pt", "missing.safetensors", "missing"])
def test_a_missing_file_is_named(tmp_path, path):
    with pytest.raises(BadCheckpoint, match=path):
        load_weights(net(), tmp_path / path)
