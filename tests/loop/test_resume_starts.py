"""Bodies of epochs that run a model before their loop, cut off inside it: their results there are the same again."""

import copy
import itertools
import os
import pickle
import random
import threading

import numpy as np
import pytest
import torch
from tiers import only
from torch import nn

from truestep import Run
from truestep.errors import InexactResume
from truestep.loop.checkpoint.listing import find
from truestep.loop.position import starts


class Cut(Exception):
    """The program was cut off."""


@pytest.fixture(autouse=True)
def files_stay_in_memory(monkeypatch):
    """Do not wait for the disk: no machine is stopped here."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class Walker:
    """An environment: a place that random steps move."""

    def __init__(self):
        self.chance, self.place = np.random.default_rng(3), np.zeros(2, np.float32)

    def step(self, action):
        self.place = (0.9 * self.place + 0.1 * action + self.chance.normal(0, 0.1, 2)).astype(np.float32)
        return self.place

    def state_dict(self):
        return {"chance": self.chance.bit_generator.state, "place": self.place}

    def load_state_dict(self, state):
        self.chance.bit_generator.state, self.place = state["chance"], state["place"].copy()


DATA = torch.randn(12, 2, generator=torch.Generator().manual_seed(0))
PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def trained(run, model, tick, inputs, targets, name="train"):
    loader = run.loader(torch.utils.data.TensorDataset(inputs, targets), batch_size=2, shuffle=True, name=name)
    for x, y in run.train(loader, model):
        loss = nn.functional.mse_loss(model(x), y)
        run.step(loss)
        run.log({"loss": loss})
        tick()


@program
def pseudo_labels(run, model, tick):
    for epoch in run.epochs():
        with run.evaluate(model):
            labels = model(DATA).tanh() + 0.1 * torch.randn(12, 2)
        trained(run, model, tick, DATA, labels, f"train-{epoch}")


@program
def labels_of_an_average(run, model, tick):
    average = run.ema(model, 0.5)
    for epoch in run.epochs():
        with run.evaluate(average.model):
            labels = average.model(DATA).sign()
        trained(run, model, tick, DATA, labels, f"train-{epoch}")


@program
def rollouts_in_a_registered_environment(run, model, tick):
    walker = run.register("walker", Walker())
    run.state.setdefault("heat", 1.0)
    for epoch in run.epochs():
        seen, taken = [], []
        heat = run.state.heat
        with torch.no_grad():
            for _ in range(12):
                seen.append(torch.from_numpy(walker.place))
                taken.append(model(seen[-1]) + heat * torch.randn(2))
                walker.step(taken[-1].numpy())
        run.state.heat *= 0.5
        trained(run, model, tick, torch.stack(seen), torch.stack(taken), f"train-{epoch}")
        run.log({"place": float(walker.place.sum())})


@program
def labels_between_two_loops(run, model, tick):
    for epoch in run.epochs():
        trained(run, model, tick, DATA, DATA.sign(), f"first-{epoch}")
        with run.evaluate(model):
            labels = model(DATA) + torch.randn(12, 2)
        trained(run, model, tick, DATA, labels, f"second-{epoch}")
        with run.evaluate(model):
            hard = (model(DATA) - labels).square().sum(1).topk(6).indices
        trained(run, model, tick, DATA[hard], labels[hard], f"third-{epoch}")


@program
def an_evaluation_and_a_copy_before_the_loop(run, model, tick):
    for epoch in run.epochs():
        teacher = copy.deepcopy(model)
        assert pickle.loads(pickle.dumps(model)).state_dict().keys() == model.state_dict().keys()
        with run.evaluate(model, teacher):
            run.log({"before": (model(DATA) - teacher(DATA)).abs().max() + random.random()})
            labels = teacher(DATA).sign()
        trained(run, model, tick, DATA, labels, f"train-{epoch}")


def played(written, out, cuts_at, **settings):
    settings = {"save_every_n_steps": 2, "max_epochs": 3, "resume": "auto"} | settings
    run = Run(out=out, seed=1, device="cpu", watch=False, progress=False, alerts=False, **settings)
    model = run.model(nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2)))
    run.optimizer(torch.optim.Adam(model.parameters(), lr=0.05))
    places = itertools.count(1)

    def tick():
        if next(places) == cuts_at:
            raise Cut

    with run:
        written(run, model, tick)
    return [value.tolist() for value in model.parameters()], (out / "metrics.jsonl").read_text()


@pytest.mark.parametrize(
    "written", only([rollouts_in_a_registered_environment], PROGRAMS), ids=lambda written: written.__name__
)
def test_what_a_model_computes_before_the_loop_is_the_same_again(written, tmp_path):
    settings = {"asynchronous": written is pseudo_labels}
    whole = played(written, tmp_path / "whole", 0, **settings)
    for place in (3, 16):
        out = tmp_path / f"cut-{place}"
        with pytest.raises(Cut):
            played(written, out, place, **settings)
        with pytest.raises(Cut):
            played(written, out, 2, **settings)
        assert played(written, out, 0, **settings) == whole, f"cut at {place}"


def kept(out):
    return find(out).state()["loops"]["starts"]


def test_a_body_without_a_model_before_its_loop_keeps_nothing(tmp_path):
    def plain(run, model, tick):
        for epoch in run.epochs():
            chosen = torch.randperm(12)[:6]
            trained(run, model, tick, DATA[chosen], DATA[chosen], f"train-{epoch}")
            with run.evaluate(model):
                run.log({"after": model(DATA).sum()})

    with pytest.raises(Cut):
        played(plain, tmp_path, 6)
    assert kept(tmp_path) == []


def test_a_checkpoint_between_epochs_keeps_nothing(tmp_path):
    def saves(run, model, tick):
        for epoch in run.epochs():
            with run.evaluate(model):
                labels = model(DATA)
            trained(run, model, tick, DATA, labels, f"train-{epoch}")
            run.save()

    played(saves, tmp_path, 0, save_every_n_steps=None)
    assert kept(tmp_path) == []


def test_calls_of_modules_are_only_looked_for_outside_of_loops(tmp_path):
    plain, seen = nn.Module.__call__, []

    def program(run, model, tick):
        for epoch in run.epochs():
            seen.append(nn.Module.__call__ is plain)
            trained(run, model, lambda: seen.append(nn.Module.__call__ is plain), DATA, DATA, f"train-{epoch}")

    played(program, tmp_path, 0, max_epochs=2)
    assert seen == [False, *[True] * 6] * 2
    assert nn.Module.__call__ is plain


class Large(Walker):
    """An environment with a memory that is not copied in each epoch."""

    def state_dict(self):
        return super().state_dict() | {"memory": torch.empty(65 * 2**18, dtype=torch.float32)}

    def load_state_dict(self, state):
        super().load_state_dict(state)


@pytest.mark.program
def test_what_cannot_be_done_again_is_said_when_the_checkpoint_is_made(tmp_path):
    def program(run, model, tick):
        walker = run.register("memory", Large())
        for epoch in run.epochs():
            with torch.no_grad():
                labels = model(DATA) + torch.from_numpy(walker.step(0))
            trained(run, model, tick, DATA, labels, f"train-{epoch}")

    with pytest.warns(InexactResume, match=r'"memory" are large(.|\n)*run\.register\(\)') as said:
        played(program, tmp_path, 0, save_every_n_steps=4, max_epochs=2)
    assert [warning.category for warning in said].count(InexactResume) == 1


class DrawsByItself(torch.utils.data.Dataset):
    """Samples with noise of a generator that the data set makes."""

    def __init__(self):
        self.chance = np.random.default_rng(0)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.full((2,), float(self.chance.normal())), torch.zeros(2)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_data_set_that_draws_by_itself_is_reported_at_the_first_save(workers, tmp_path):
    run = Run(out=tmp_path, max_steps=3, save_every_n_steps=1, device="cpu", watch=False, progress=False)
    model = run.model(nn.Linear(2, 2))
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    loader = run.loader(DrawsByItself(), batch_size=2, num_workers=workers)
    with run, pytest.warns(InexactResume, match="differ when drawn twice") as said:
        for x, y in run.train(loader, model):
            run.step((model(x) - y).square().mean())
    assert [warning.category for warning in said].count(InexactResume) == 1


class Stream(torch.utils.data.IterableDataset):
    """A stream that draws from a private generator, which each epoch seeds."""

    def set_epoch(self, epoch):
        self.chance = np.random.default_rng(epoch)

    def __iter__(self):
        for _ in range(8):
            yield torch.full((2,), float(self.chance.normal())), torch.zeros(2)


class StreamWithState(Stream):
    """One that begins anywhere and keeps its generator in its state."""

    def __init__(self):
        self.chance = np.random.default_rng(0)

    def set_epoch(self, epoch):
        """Go on drawing."""

    def state_dict(self):
        return {"chance": self.chance.bit_generator.state}

    def load_state_dict(self, state):
        self.chance.bit_generator.state = state["chance"]


@pytest.mark.parametrize("stream", [Stream, StreamWithState])
def test_a_stream_that_repeats_itself_is_not_reported(stream, tmp_path):
    run = Run(out=tmp_path, max_steps=3, save_every_n_steps=1, device="cpu", watch=False, progress=False)
    model = run.model(nn.Linear(2, 2))
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    loader = run.loader(stream(), batch_size=2)
    with run:
        for x, y in run.train(loader, model):
            run.step((model(x) - y).square().mean())
    assert find(tmp_path).step == 3


def test_what_cannot_be_copied_in_the_state_of_a_run_ends_no_loop(tmp_path):
    with Run(out=tmp_path, device="cpu", watch=False, max_epochs=2) as run:
        model = run.model(torch.nn.Linear(2, 1))
        run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        loader = run.loader(torch.ones(4, 2), batch_size=2)
        for _ in run.epochs():
            run.state.lock = threading.Lock()
            for x in run.train(loader, model):
                loss = model(x).mean()
                run.state.last = loss
                run.step(loss)
    assert run.global_step == 4


def test_only_what_is_quick_to_copy_is_copied():
    assert starts._is_small({"seen": torch.ones(100), "names": ["a", ("b", {1, 2})], "n": 3})
    assert not starts._is_small([(float(i), i) for i in range(20_000)])
    assert not starts._is_small(torch.empty(2**27, dtype=torch.uint8))
