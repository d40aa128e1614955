"""The way of a resumed program to the place of its checkpoint, and the errors where it gets lost."""

import gc
import json
import random

import numpy as np
import pytest
import torch
from torch import nn

from truestep import Run
from truestep.errors import BadCheckpoint, BadLogValue, BadPart, FolderInUse, OpenWindow, UnknownPrecision
from truestep.loop.checkpoint.listing import find


def data(size=8):
    generator = torch.Generator().manual_seed(0)
    return torch.utils.data.TensorDataset(
        torch.randn(size, 2, generator=generator), torch.randn(size, 1, generator=generator)
    )


def made(out, **settings):
    settings = {"max_epochs": 3, "resume": "auto", "save_every_n_steps": 1, "keep_last": 50} | settings
    run = Run(out=out, seed=2, device="cpu", **settings)
    model = run.model(nn.Linear(2, 1))
    return run, model, run.optimizer(torch.optim.Adam(model.parameters(), lr=0.1))


def train(out, *, steps=1000, name="train", **settings):
    """Train, cut off after so many steps; return weights and log."""
    run, model, _ = made(out, **settings)
    loader = run.loader(data(), batch_size=2, shuffle=True, name=name)
    with run:
        for _ in run.epochs():
            for x, y in run.train(loader, model):
                if run.global_step == steps:
                    run.close()
                    return None
                loss = (model(x) - y).square().mean()
                run.step(loss)
                run.log({"loss": loss, "drawn": random.random()})
    return [value.tolist() for value in model.parameters()], (out / "metrics.jsonl").read_text()


def test_a_run_knows_where_it_is_before_its_loop(tmp_path):
    train(tmp_path, steps=6)
    run, _, _ = made(tmp_path)
    with run:
        assert (run.global_step, run.epoch) == (6, 1)


def test_loops_of_another_name_are_an_error_not_a_silence(tmp_path):
    train(tmp_path, steps=6)
    with pytest.raises(BadCheckpoint, match=r'place(.|\n)*loop over "train" in epoch 1, got a loop over "other"'):
        train(tmp_path, name="other")
    gc.collect()
    run, _, _ = made(tmp_path)
    with run, pytest.raises(BadCheckpoint, match="got the end of that epoch"):
        list(run.epochs())


def test_a_loader_made_in_an_epoch_needs_a_name(tmp_path):
    run, _, _ = made(tmp_path)
    with run, pytest.raises(BadPart, match="name=f"):
        for _ in run.epochs():
            run.loader(data(), batch_size=2)


def test_parts_are_given_to_a_run_once():
    run = Run(device="cpu")
    model = run.model(nn.Linear(2, 1))
    optimizer = run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    schedule = run.scheduler(torch.optim.lr_scheduler.StepLR(optimizer, 1))
    for again in (lambda: run.model(model), lambda: run.optimizer(optimizer), lambda: run.scheduler(schedule)):
        with pytest.raises(BadPart, match="belongs to the run already"):
            again()


def test_an_optimizer_with_other_groups_is_distinguished(tmp_path):
    train(tmp_path, steps=6)
    run = Run(out=tmp_path, seed=2, max_epochs=3, resume="auto", device="cpu")
    model = run.model(nn.Linear(2, 1))
    run.optimizer(torch.optim.Adam([{"params": [model.weight]}, {"params": [model.bias]}]))
    loader = run.loader(data(), batch_size=2, shuffle=True, name="train")
    with run, pytest.raises(BadCheckpoint, match=r"groups of \[2\] parameters, got \[1, 1\]"):
        next(run.train(loader))  # outside of epochs: the place is not here


def test_what_cannot_keep_a_state_is_refused():
    run = Run(device="cpu")
    with pytest.raises(BadPart, match=r"run\.state"):
        run.register("text", "abc")


def test_an_array_of_several_numbers_is_no_value_to_log():
    with pytest.raises(BadLogValue, match="ndarray"):
        Run(device="cpu").log({"norms": np.ones(2)})


# --- other places to go on from ---


def test_a_run_with_more_epochs_goes_on_as_if_it_had_had_them(tmp_path):
    whole = train(tmp_path / "whole", max_epochs=4)
    train(tmp_path / "run", max_epochs=2)
    assert train(tmp_path / "run", max_epochs=4) == whole


@pytest.mark.parametrize("killed_at", [None, 2])
def test_a_run_from_an_older_checkpoint_leaves_the_newer_ones_behind(killed_at, tmp_path):
    whole = train(tmp_path / "whole")
    out = tmp_path / "run"
    train(out)
    older = str(out / "checkpoints" / "step-000002")
    if killed_at is not None:
        train(out, steps=killed_at, resume=older, save_every_n_steps=None)
        assert find(out).step == 2
        assert len((out / "metrics.jsonl").read_text().splitlines()) == 2
        older = "auto"
    assert train(out, resume=older) == whole


def test_a_run_that_goes_on_from_another_run_keeps_a_log_of_its_own(tmp_path):
    weights, lines = train(tmp_path / "whole")
    train(tmp_path / "first", steps=5)
    gone_on, rest = train(tmp_path / "second", resume=tmp_path / "first")
    assert gone_on == weights
    assert lines.endswith(rest)
    assert json.loads(rest.splitlines()[0])["step"] == 6


# --- ends ---


def test_what_was_asked_for_in_a_loop_that_was_left_is_written_at_the_end(tmp_path):
    run, model, _ = made(tmp_path, save_every_n_steps=None)
    with run:
        for _ in run.epochs():
            run.step(model(torch.ones(1, 2)).mean())
            run.save(metric=0.5)
            break
    assert find(tmp_path).metric == 0.5


def test_a_run_that_left_its_epochs_ends_again_and_goes_on_with_more(tmp_path):
    for max_epochs, expected in ((5, [0, 1]), (5, []), (6, [1, 2])):
        run, _, _ = made(tmp_path, max_epochs=max_epochs)
        given = []
        with run:
            for epoch in run.epochs():
                given.append(epoch)
                run.save()
                if len(given) == 2:
                    break
        assert given == expected


def test_a_save_without_metric_does_not_take_the_metric_away(tmp_path):
    run, _, _ = made(tmp_path, max_epochs=1)
    with run:
        for _ in run.epochs():
            run.save(metric=0.25)
            run.save()
    assert find(tmp_path).metric == 0.25


def test_a_save_in_the_middle_of_a_window_that_was_left_is_an_error(tmp_path):
    run, model, _ = made(tmp_path, accumulate=4)
    loader = run.loader(data(), batch_size=2)
    for x, _ in run.train(loader, model):
        run.step(model(x).mean())
        run.save()
        break
    with pytest.raises(OpenWindow, match=r"run\.discard"):
        run.close()
    run.discard()
    run.close()


def test_an_exception_in_an_evaluation_saves_nothing_and_lets_go(tmp_path):
    run, model, _ = made(tmp_path, save_every_n_steps=None)
    with pytest.raises(ZeroDivisionError), run:
        for _ in run.epochs():
            run.save()
            with run.evaluate(model):
                _ = 1 / 0
    assert model.training
    assert torch.is_grad_enabled()
    with pytest.raises(BadCheckpoint):
        find(tmp_path)
    made(tmp_path)[0].close()


def test_a_folder_that_this_process_holds_says_so(tmp_path):
    first, _, _ = made(tmp_path)
    with pytest.raises(FolderInUse, match=r"this process(.|\n)*close\(\)"):
        made(tmp_path)
    first.close()
    made(tmp_path)[0].close()


def test_a_run_that_cannot_begin_holds_nothing(tmp_path):
    train(tmp_path, steps=2)
    state = find(tmp_path).path / "state.pt"
    damaged = bytearray(state.read_bytes())
    damaged[100] ^= 1
    state.write_bytes(damaged)
    with pytest.raises(BadCheckpoint):
        made(tmp_path, resume=find_path(tmp_path))
    with pytest.raises(UnknownPrecision):
        made(tmp_path, precision="fp8")
    with pytest.warns(match="is invalid"):
        made(tmp_path)[0].close()


def find_path(out):
    return max((out / "checkpoints").glob("step-*"))
