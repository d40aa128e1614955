"""Loops: their begin and end, their steps, and the work between two steps."""

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from tiers import few, only
from torch import nn

from truestep import schedules
from truestep.errors import BadSchedule, BadSettings, MetricMissing, UnboundSchedule
from truestep.loop.optim.schedulers import HorizonWarning
from truestep.loop.run.run import Run


def data(count=10):
    generator = torch.Generator().manual_seed(0)
    return torch.utils.data.TensorDataset(
        torch.randn(count, 4, generator=generator), torch.randn(count, 1, generator=generator)
    )


def made(**settings):
    run = Run(device="cpu", **settings)
    torch.manual_seed(0)
    model = run.model(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)))
    optimizer = run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    return run, model, optimizer


def loss_of(model, batch):
    return nn.functional.mse_loss(model(batch[0]), batch[1])


def test_epochs_and_batches_are_given_once():
    run, model, _ = made(max_epochs=2)
    loader = run.loader(data(), batch_size=4, shuffle=True)
    seen = []
    for epoch in run.epochs():
        for batch in run.train(loader, model):
            run.step(loss_of(model, batch))
            seen.append((epoch, len(batch[0])))
    assert seen == [(0, 4), (0, 4), (0, 2), (1, 4), (1, 4), (1, 2)]
    assert (run.global_step, run.epoch) == (6, 2)


def test_every_pass_has_an_order_of_its_own_also_without_epochs():
    run, model, _ = made()
    loader = run.loader(data(), batch_size=10, shuffle=True)
    orders = [x for _ in range(3) for x, _ in run.train(loader, model)]
    assert not torch.equal(orders[0], orders[1])
    assert not torch.equal(orders[1], orders[2])


@pytest.mark.parametrize("call", only(["run.steps()"], ["run.train()", "run.steps()"]))
def test_a_loop_without_an_end_around_a_run_that_has_ended_is_an_error(call):
    run, model, _ = made(max_steps=4)
    loader = run.loader(data(), batch_size=4)

    def forever():
        while True:
            yield from run.train(loader, model) if call == "run.train()" else run.steps()

    batch = data(4).tensors
    seen = 0
    with pytest.raises(BadSettings, match=rf"{re.escape(call)} was called 1,000 times after the last of max_steps=4"):
        for _ in forever():
            run.step(loss_of(model, batch))
            seen += 1
    assert (seen, run.global_step) == (4, 4)


def test_max_steps_ends_every_loop():
    run, model, _ = made(max_steps=4)
    loader = run.loader(data(), batch_size=4)
    epochs = []
    for epoch in run.epochs():
        for batch in run.train(loader, model):
            run.step(loss_of(model, batch))
        epochs.append(epoch)
    assert run.global_step == 4
    assert epochs == [0, 1]


def test_steps_need_no_loader():
    run, model, _ = made(max_steps=5)
    given = []
    for step in run.steps():
        run.step(model(torch.randn(3, 4)).mean())
        given.append(step)
    assert given == [0, 1, 2, 3, 4]
    assert run.global_step == 5


def test_a_run_without_end_is_refused():
    run, _, _ = made()
    with pytest.raises(BadSettings, match="no end"):
        next(run.epochs())
    with pytest.raises(BadSettings, match="no end"):
        next(run.steps())


def test_train_mode_is_set_at_the_root_only():
    run, model, _ = made(max_epochs=1)
    loader = run.loader(data(), batch_size=5)
    model[1].eval()
    for _ in run.train(loader, model):
        assert model.training
        assert not model[1].training, "a frozen BatchNorm stays frozen"
    model.eval()
    for _ in run.train(loader, model):
        assert model[1].training, "a model in eval mode is put in train mode as a whole"


def test_evaluate_restores_every_switch():
    run, model, _ = made(max_epochs=1)
    model[1].eval()
    with pytest.raises(ZeroDivisionError), run.evaluate(model):
        assert not model.training
        assert not torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()
        _ = 1 / 0
    assert model.training
    assert not model[1].training
    assert torch.is_grad_enabled()
    with run.evaluate(model, inference_mode=True):
        assert torch.is_inference_mode_enabled()


def test_batches_of_an_evaluation_are_the_same_every_time():
    run, _, _ = made()
    loader = run.loader(data(), batch_size=3)
    first, second = ([x for x, _ in run.batches(loader)] for _ in range(2))
    assert all(map(torch.equal, first, second))


def test_several_updates_in_one_body_are_several_steps():
    run, model, _ = made(max_epochs=1)
    loader = run.loader(data(), batch_size=5)
    for batch in run.train(loader, model):
        for _ in range(3):
            run.step(loss_of(model, batch))
    assert run.global_step == 6


# --- schedules ---


def lrs(run, model, optimizer, count=6):
    found = []
    for epoch in run.epochs():
        for batch in run.train(run.loader_of_test, model):
            run.step(loss_of(model, batch))
            found.append(optimizer.param_groups[0]["lr"])
        run.log({"val_loss": 1.0 / (epoch + 1)})
    return found


def test_a_schedule_takes_its_length_from_the_run():
    run, model, optimizer = made(max_epochs=4, accumulate=2)
    run.scheduler(schedules.warmup_cosine(optimizer, warmup=0.25), every="step")
    run.loader_of_test = run.loader(data(), batch_size=2)
    got = lrs(run, model, optimizer)
    twin = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    theirs = schedules.warmup_cosine(twin, warmup=0.25, total_steps=12)  # three windows in each of four epochs
    expected = []
    for index in range(20):
        if index % 5 in (1, 3, 4):
            twin.step()
            theirs.step()
        expected.append(twin.param_groups[0]["lr"])
    assert got == expected


def test_an_epoch_schedule_moves_at_the_end_of_epochs():
    run, model, optimizer = made(max_epochs=3)
    run.scheduler(torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5), every="epoch")
    run.loader_of_test = run.loader(data(), batch_size=5)
    assert lrs(run, model, optimizer) == [0.1, 0.1, 0.05, 0.05, 0.025, 0.025]


def test_a_plateau_follows_what_is_logged():
    run, model, optimizer = made(max_epochs=5)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=0.9, factor=0.5)
    run.scheduler(plateau, every="epoch", metric="val_loss")
    run.loader_of_test = run.loader(data(), batch_size=10)
    twin = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(twin, patience=0, threshold=0.9, factor=0.5)
    expected = []
    for epoch in range(5):
        expected.append(twin.param_groups[0]["lr"])
        theirs.step(1.0 / (epoch + 1))
    assert lrs(run, model, optimizer) == expected
    assert expected[-1] < 0.1


def test_a_plateau_without_its_metric_says_what_is_missing():
    run, model, optimizer = made(max_epochs=2)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    with pytest.raises(BadSchedule, match="no metric"):
        run.scheduler(plateau, every="epoch")
    with pytest.raises(BadSchedule, match="once per epoch"):
        run.scheduler(plateau, every="step", metric="val_loss")
    run.scheduler(plateau, every="epoch", metric="val_loss")
    loader = run.loader(data(), batch_size=10)
    with pytest.raises(MetricMissing, match="val_loss"):
        for _ in run.epochs():
            for batch in run.train(loader, model):
                run.step(loss_of(model, batch))


def test_a_metric_is_that_of_its_epoch():
    run, _, optimizer = made(max_epochs=3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    run.scheduler(plateau, every="epoch", metric="val_loss")
    with pytest.raises(MetricMissing, match="not logged in this epoch"):
        for epoch in run.epochs():
            if epoch == 0:
                run.log({"val_loss": 1.0})


@pytest.mark.parametrize("cadence", ["batch", "epochs", ""])
def test_a_cadence_that_there_is_not_is_refused(cadence):
    run, _, optimizer = made(max_epochs=2)
    with pytest.raises(BadSchedule, match="not a cadence"):
        run.scheduler(torch.optim.lr_scheduler.StepLR(optimizer, 1), every=cadence)


def test_a_schedule_follows_steps_that_are_called_by_hand():
    run, model, optimizer = made(max_epochs=1)
    schedule = run.scheduler(torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5), every="step")
    loader = run.loader(data(), batch_size=5)
    for batch in run.train(loader, model):
        loss_of(model, batch).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert schedule.last_epoch == 2
    assert run.global_step == 2


def test_a_schedule_of_another_length_is_a_warning_after_two_bodies():
    run, model, optimizer = made(max_epochs=10)
    run.scheduler(torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10), every="step")
    loader = run.loader(data(100), batch_size=5)
    with pytest.warns(HorizonWarning, match="counts epochs"):
        for number, batch in enumerate(run.train(loader, model)):
            run.step(loss_of(model, batch))
            if number == 2:
                break


def test_a_schedule_of_the_right_length_is_quiet():
    run, model, optimizer = made(max_epochs=10)
    run.scheduler(torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=200), every="step")
    loader = run.loader(data(100), batch_size=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number, batch in enumerate(run.train(loader, model)):
            run.step(loss_of(model, batch))
            if number == 2:
                break


def test_a_schedule_without_length_in_a_run_without_length_is_an_error_at_the_start():
    class Endless(torch.utils.data.IterableDataset):
        def __iter__(self):
            while True:
                yield torch.randn(4), torch.randn(1)

    run, model, optimizer = made(max_epochs=1)
    run.scheduler(schedules.warmup_cosine(optimizer), every="step")
    with pytest.raises(UnboundSchedule, match="no known length"):
        next(run.train(run.loader(Endless(), batch_size=2), model))


def test_max_steps_is_a_length_too():
    class Endless(torch.utils.data.IterableDataset):
        def __iter__(self):
            while True:
                yield torch.randn(4), torch.randn(1)

    run, model, optimizer = made(max_steps=10)
    run.scheduler(schedules.warmup_linear(optimizer, warmup=0), every="step")
    for batch in run.train(run.loader(Endless(), batch_size=2), model):
        run.step(loss_of(model, batch))
    assert run.global_step == 10
    assert optimizer.param_groups[0]["lr"] == 0.0


# --- loops in loops, loops beside loops ---


def two_loaders(out, stop_at=None, kind="zip"):
    """Train from two loaders; return the samples that were used, in order."""
    run, model, _ = made(out=out, max_epochs=2, resume="auto", save_every_n_steps=3)
    first = run.loader(data(12), batch_size=2, shuffle=True, name="first")
    second = run.loader(data(18), batch_size=3, shuffle=True, name="second")
    endless = forever(run, second, model) if kind == "forever" else None
    with run:
        for _ in run.epochs():
            if kind == "one after the other":
                for batch in run.train(first, model):
                    use(run, model, batch)
                    if run.global_step == stop_at:
                        raise KeyboardInterrupt
                for batch in run.train(second, model):
                    use(run, model, batch)
                    if run.global_step == stop_at:
                        raise KeyboardInterrupt
                continue
            if kind == "zip":
                pairs = zip(run.train(first, model), run.train(second, model), strict=False)
            elif kind == "inner":
                pairs = ((a, b) for a in run.train(first, model) for b in [next(iter(run.train(second, model)))])
            else:
                pairs = ((a, next(endless)) for a in run.train(first, model))
            for a, b in pairs:
                use(run, model, (torch.cat([a[0], b[0]]), torch.cat([a[1], b[1]])))
                if run.global_step == stop_at:
                    raise KeyboardInterrupt
    return model.state_dict(), (out / "metrics.jsonl").read_text()


def forever(run, loader, model):
    while True:
        yield from run.train(loader, model)


def use(run, model, batch):
    loss = loss_of(model, batch)
    run.step(loss)
    run.log({"loss": loss, "sum": batch[0].sum()})


KINDS = ["zip", "one after the other", "forever", "inner"]


@pytest.mark.parametrize("stop_at", few(3, [4, 6, 7, 10, 11]))
@pytest.mark.parametrize("kind", KINDS)
def test_loops_beside_loops_resume_where_they_were(kind, stop_at, tmp_path):
    weights, lines = two_loaders(tmp_path / "whole", kind=kind)
    with pytest.raises(KeyboardInterrupt):
        two_loaders(tmp_path / "cut", stop_at, kind=kind)
    again, our_lines = two_loaders(tmp_path / "cut", kind=kind)
    assert our_lines == lines
    assert all(torch.equal(weights[key], again[key]) for key in weights)


def test_what_an_epoch_does_before_its_loop_is_done_again_with_its_random_state(tmp_path):
    def go(out, stop_at=None):
        run, model, _ = made(out=out, max_epochs=3, resume="auto", save_every_n_steps=2)
        loader = run.loader(data(), batch_size=2, shuffle=True)
        with run:
            for _ in run.epochs():
                drawn = torch.rand(()).item()
                run.log({"drawn": drawn})
                for batch in run.train(loader, model):
                    loss = loss_of(model, batch) * (1 + drawn)
                    run.step(loss)
                    run.log({"loss": loss, "draw": torch.rand(())})
                    if run.global_step == stop_at:
                        raise KeyboardInterrupt
        return (out / "metrics.jsonl").read_text()

    whole = go(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "cut", stop_at=9)
    assert go(tmp_path / "cut") == whole
    assert sum("drawn" in json.loads(line) for line in whole.splitlines()) == 3


def test_loops_that_are_alive_when_the_program_ends_say_nothing():
    program = Path(__file__).parent / "programs" / "left_alive.py"
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.split(), ended.stderr) == (0, ["daemon"], "")
