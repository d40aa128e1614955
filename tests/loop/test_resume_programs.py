"""Plausible programs of many kinds, cut off and resumed: each ends with the weights and the log of one that was not.

A program is a function of a folder and of `tick`, which it calls where it may be cut off.
"""

import itertools
import random
from contextlib import suppress

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from truestep import Run, schedules


class Cut(Exception):
    """The program was cut off."""


def data(size=24, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.utils.data.TensorDataset(
        torch.randn(size, 4, generator=generator), torch.randn(size, 1, generator=generator)
    )


def net():
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1))


def mse(model, batch):
    return nn.functional.mse_loss(model(batch[0]), batch[1])


def begun(out, **settings):
    settings = {"max_epochs": 3, "save_every_n_steps": 2, "log_every_n_steps": 3} | settings
    return Run(out=out, seed=1, device="cpu", resume="auto", **settings)


def parts(run, make=lambda model: torch.optim.AdamW(model.parameters(), lr=0.05)):
    model = run.model(net())
    return model, run.optimizer(make(model)), run.loader(data(), batch_size=4, shuffle=True)


def trained(run, model, loader, tick, **more):
    """One pass; logs the loss and the values of `more`, by functions."""
    for batch in run.train(loader, model):
        loss = mse(model, batch)
        run.step(loss)
        run.log({"loss": loss, **{name: value() for name, value in more.items()}})
        tick()


PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


@program
def two_optimizers_with_schedules(out, tick):
    run = begun(out)
    generator, critic = run.model(nn.Linear(3, 4)), run.model(nn.Linear(4, 1))
    slow = run.optimizer(torch.optim.Adam(generator.parameters(), 1e-2))
    fast = run.optimizer(torch.optim.RMSprop(critic.parameters(), 1e-2))
    run.scheduler(schedules.warmup_cosine(slow, warmup=0.2, total_steps=9))  # at every second batch
    run.scheduler(lr_scheduler.StepLR(fast, 5))
    loader = run.loader(data(), batch_size=4, shuffle=True)
    with run:
        for _ in run.epochs():
            for x, _ in run.train(loader, generator, critic):
                made = generator(torch.randn(len(x), 3))
                run.step(critic(made.detach()).mean() - critic(x).mean(), optimizer=fast)
                if run.global_step % 2 == 0:
                    run.step(-critic(made).mean(), optimizer=slow)
                run.log({"slow": slow.param_groups[0]["lr"], "fast": fast.param_groups[0]["lr"]})
                tick()
    return [*generator.parameters(), *critic.parameters()]


@program
def a_closure(out, tick):
    run = begun(out)
    model = run.model(nn.Linear(4, 1))
    run.optimizer(torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4))
    loader = run.loader(data(), batch_size=8, shuffle=True)
    with run:
        for _ in run.epochs():
            for batch in run.train(loader, model):
                run.step(lambda batch=batch: mse(model, batch))
                run.log({"sum": batch[0].sum()})
                tick()
    return model.parameters()


@program
def a_plateau_and_evaluations(out, tick):
    run = begun(out)
    model, optimizer, loader = parts(run, lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=0.5)
    run.scheduler(plateau, every="epoch", metric="val_loss")
    held_out = run.loader(data(8, 5), batch_size=4)
    with run:
        for _ in run.epochs():
            trained(run, model, loader, tick, lr=lambda: optimizer.param_groups[0]["lr"])
            with run.evaluate(model):
                val_loss = sum(mse(model, batch).item() for batch in run.batches(held_out)) + random.random()
                tick()
            run.log({"val_loss": val_loss})
            run.save(metric=val_loss)
            tick()
    return model.parameters()


@program
def schedules_in_sequence_and_one_that_cycles_momentum(out, tick):
    run = begun(out)
    model = run.model(net())
    first, last = (run.optimizer(torch.optim.SGD(model[at].parameters(), lr=0.1, momentum=0.9)) for at in (0, 4))
    rise, fall = lr_scheduler.LinearLR(first, 0.1, total_iters=5), lr_scheduler.CosineAnnealingLR(first, 13)
    run.scheduler(lr_scheduler.SequentialLR(first, [rise, fall], [5]))
    run.scheduler(lr_scheduler.OneCycleLR(last, 0.2, total_steps=19))
    loader = run.loader(data(), batch_size=4, shuffle=True)
    with run:
        for _ in run.epochs():
            for batch in run.train(loader, model):
                run.step(mse(model, batch), optimizer=first)
                run.step(mse(model, batch), optimizer=last)
                run.log({"lr": first.param_groups[0]["lr"], "momentum": last.param_groups[0]["momentum"]})
                tick()
    return model.parameters()


class Sum:
    """A meter."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.total, self.count = torch.zeros(()), 0

    def update(self, loss):
        self.total += loss.detach()
        self.count += 1

    def state_dict(self):
        return {"total": self.total, "count": self.count}

    def load_state_dict(self, state):
        self.total, self.count = state["total"], state["count"]


@program
def a_meter_that_each_epoch_resets(out, tick):
    run = begun(out)
    model, _, loader = parts(run)
    meter = run.register("meter", Sum())
    with run:
        for _ in run.epochs():
            meter.reset()
            for batch in run.train(loader, model):
                loss = mse(model, batch)
                run.step(loss)
                meter.update(loss)
                tick()
            run.log({"mean": meter.total / meter.count, "count": meter.count})
    return model.parameters()


@program
def what_each_epoch_changes_before_its_loop(out, tick):
    run = begun(out)
    model, optimizer, loader = parts(run)
    group = optimizer.param_groups[0]
    history = run.state.setdefault("history", [])
    counts = run.state.setdefault("counts", {"begun": 0, "norms": [torch.zeros(2)], "array": np.arange(3.0)})
    with run:
        for _ in run.epochs():
            counts["begun"] += 1
            counts["array"] += 1
            history.append(0.0)
            group["lr"] *= 0.7
            with torch.no_grad():
                model[4].weight.mul_(0.9)
            for batch in run.train(loader, model):
                loss = mse(model, batch)
                run.step(loss)
                history.append(loss.item())
                counts["norms"][0] += loss.detach()
                run.log({"lr": optimizer.param_groups[0]["lr"], "begun": counts["begun"], "lines": len(history)})
                tick()
            run.log({"sum": sum(run.state.history), "norm": counts["norms"][0].sum(), "array": counts["array"].sum()})
    return model.parameters()


@program
def parameters_added_after_an_epoch(out, tick):
    run = begun(out)
    model, optimizer, loader = parts(run, lambda model: torch.optim.AdamW(model[0].parameters(), lr=0.05))
    more = {"params": list(model[4].parameters()), "lr": 0.01}
    if run.epoch > 1:
        optimizer.add_param_group(more)
    with run:
        for epoch in run.epochs():
            if epoch == 1:
                optimizer.add_param_group(more)
            trained(run, model, loader, tick)
            run.save()
            tick()
    return model.parameters()


@program
def layers_that_thaw(out, tick):
    run = begun(out)
    model, _, loader = parts(run)
    with run:
        for epoch in run.epochs():
            model[0].requires_grad_(epoch >= 2)
            trained(run, model, loader, tick)
    return model.parameters()


class KeepsFloats(torch.optim.Optimizer):
    """Keeps its state in fp32 beside parameters in bf16, some of it in a list."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.05})

    @torch.no_grad()
    def step(self, closure=None):
        for parameter in self.param_groups[0]["params"]:
            state = self.state[parameter]
            if not state:
                state["weight"], state["moments"] = parameter.float(), [torch.zeros_like(parameter.float())]
            state["moments"][0].mul_(0.9).add_(parameter.grad.float())
            state["weight"].sub_(0.05 * state["moments"][0])
            parameter.copy_(state["weight"])


@program
def parameters_in_bf16(out, tick):
    run = begun(out)
    model = run.model(nn.Linear(4, 1).bfloat16())
    optimizer = run.optimizer(KeepsFloats(model.parameters()))
    loader = run.loader(data(), batch_size=4, shuffle=True)
    with run:
        for _ in run.epochs():
            for x, y in run.train(loader, model):
                run.step((model(x.bfloat16()) - y.bfloat16()).square().mean())
                run.log({"sum": optimizer.state[model.weight]["moments"][0].double().sum()})
                tick()
    return model.parameters()


@program
def generators_of_its_own(out, tick):
    run = begun(out)
    model, _, loader = parts(run)
    chance = {
        "python": run.register("python", random.Random(6)).random,
        "torch": run.register("torch", torch.Generator().manual_seed(4)),
        "numpy": run.register("numpy", np.random.default_rng(5)).normal,
        "twister": run.register("twister", np.random.Generator(np.random.MT19937(3))).normal,
        "legacy": run.register("legacy", np.random.RandomState(6)).randn,
    }
    generator = chance.pop("torch")
    with run:
        for _ in run.epochs():
            trained(run, model, loader, tick, torch=lambda: torch.rand((), generator=generator), **chance)
    return model.parameters()


@program
def a_loop_before_the_epochs(out, tick):
    run = begun(out, max_epochs=2)
    model, _, loader = parts(run)
    other = run.loader(data(20, 3), batch_size=4, shuffle=True)
    with run:
        trained(run, model, other, tick, drawn=random.random)
        run.log({"before": random.random()})
        for _ in run.epochs():
            trained(run, model, loader, tick)
            run.log({"after": random.random()})
            run.save()
            tick()
    return model.parameters()


def epochs_written_by_hand(out, tick, **settings):
    run = begun(out, max_epochs=None, **settings)
    model, _, loader = parts(run)
    with run:
        for _ in range(3):
            run.log({"before": random.random()})
            trained(run, model, loader, tick)
            run.log({"after": random.random()})
            run.save()
            tick()
            run.log({"saved": random.random()})
    return model.parameters()


@program
def epochs_by_hand_that_save_in_loops(out, tick):
    return epochs_written_by_hand(out, tick)


@program
def epochs_by_hand_that_save_between_loops(out, tick):
    return epochs_written_by_hand(out, tick, save_every_n_steps=None)


@program
def an_early_stop(out, tick):
    run = begun(out, max_epochs=9)
    model, _, loader = parts(run)
    run.state.setdefault("bad", 0)
    with run:
        for epoch in run.epochs():
            trained(run, model, loader, tick)
            run.state.bad += 1
            run.log({"bad": run.state.bad, "epoch_ended": epoch})
            run.save(metric=float(epoch))
            tick()
            if run.state.bad == 2:
                break
        run.log({"stopped": run.state.bad})
    tick()
    return model.parameters()


@program
def steps_with_a_buffer(out, tick):
    class Buffer(list):
        def state_dict(self):
            return {"held": list(self)}

        def load_state_dict(self, state):
            self[:] = state["held"]

    run = begun(out, max_epochs=None)
    model = run.model(nn.Linear(4, 1))
    run.optimizer(torch.optim.Adam(model.parameters(), 0.01))
    buffer = run.register("buffer", Buffer())
    with run:
        for _ in run.steps(18):
            buffer.append(torch.randn(4))
            chosen = torch.stack([buffer[random.randrange(len(buffer))], buffer[np.random.randint(len(buffer))]])
            run.step(model(chosen).square().mean())
            run.log({"held": len(buffer)})
            tick()
    return model.parameters()


@program
def a_batch_size_that_grows(out, tick):
    run = begun(out)
    model, _, _ = parts(run)
    with run:
        for epoch in run.epochs():
            loader = run.loader(data(), batch_size=4 + 2 * epoch, shuffle=True, name=f"train-{epoch}")
            trained(run, model, loader, tick)
    return model.parameters()


@program
def two_phases_and_evaluations_inside(out, tick):
    run = begun(out, max_epochs=2)
    model, _, first = parts(run)
    second, held_out = run.loader(data(20, 3), batch_size=5, shuffle=True), run.loader(data(8, 5), batch_size=4)
    with run:
        for _ in run.epochs():
            trained(run, model, first, tick)
            with run.evaluate(model):
                between = sum(mse(model, batch).item() for batch in run.batches(held_out)) + random.random()
            run.log({"between": between})
            run.save(metric=between)
            for batch in run.train(second, model):
                run.step(mse(model, batch))
                if run.global_step % 3 == 0:
                    with run.evaluate(model):
                        inside = sum(mse(model, batch).item() for batch in run.batches(held_out))
                    run.log({"inside": inside})
                    run.save(metric=inside)
                tick()
    return model.parameters()


@program
def a_stream_that_is_never_closed(out, tick):
    run = begun(out)
    model, _, loader = parts(run)
    other = run.loader(data(20, 3), batch_size=3, shuffle=True)
    endless = (batch for _ in itertools.count() for batch in run.train(other))
    with run:
        for _ in run.epochs():
            for batch in run.train(loader, model):
                loss = mse(model, batch) + mse(model, next(endless))
                run.step(loss)
                run.log({"loss": loss})
                tick()
            run.save()
            tick()
    return model.parameters()


@program
def early_stopping_and_alerts(out, tick):
    """Values are logged before the step: the first line after a restart is of the step before it."""
    run = begun(out, max_epochs=9, clip_norm=0.5)
    model, optimizer, loader = parts(run)
    run.scheduler(schedules.warmup_cosine(optimizer, warmup=0.2))
    run.alert("worse", rising=3)
    run.alert("spoilt", above=1.0)
    run.state.asked = []
    with run:
        for epoch in run.epochs():
            if run.stalled("val_loss", patience=3, min_delta=1e-3):
                break
            for batch in run.train(loader, model):
                loss = mse(model, batch)
                spoilt = float("nan") if run.global_step == 7 else run.global_step % 9
                run.log({"loss": loss, "spoilt": spoilt})
                run.step(loss * float("inf") if run.global_step == 11 else loss)
                tick()
            run.log({"val_loss": max(0.1, 1.0 - 0.3 * epoch), "worse": abs(epoch - 1) * 1.0})
            run.state.asked.append(run.stalled("val_loss", patience=2))
            run.save()
            tick()
        run.state.alerts = [alert.message for alert in run.alerts]
    return [torch.tensor(run.state.asked, dtype=torch.float), torch.tensor(float(len(run.state.alerts)))]


def cut_at(tick_number):
    numbers = itertools.count(1)

    def tick():
        if next(numbers) == tick_number:
            raise Cut

    return tick, numbers


def outcome(parameters, out):
    alerts = out / "alerts.jsonl"
    lines = (out / "metrics.jsonl").read_text() + (alerts.read_text() if alerts.exists() else "")
    return [parameter.detach().clone() for parameter in parameters], lines


OFTEN = {epochs_by_hand_that_save_between_loops, steps_with_a_buffer}
"""Programs for `make test`; the others are for `make programs`."""


@pytest.mark.parametrize(
    "written",
    [pytest.param(one, id=one.__name__, marks=[] if one in OFTEN else [pytest.mark.program]) for one in PROGRAMS],
)
def test_a_program_that_was_cut_off_ends_as_one_that_was_not(written, tmp_path):
    tick, numbers = cut_at(0)
    weights, lines = outcome(written(tmp_path / "whole", tick), tmp_path / "whole")
    ticks = next(numbers) - 1
    assert ticks >= 9
    for number in (ticks // 2 - 1, ticks // 2 + 2, ticks):
        out = tmp_path / f"cut-{number}"
        with pytest.raises(Cut):
            written(out, cut_at(number)[0])
        with suppress(Cut):
            written(out, cut_at(number // 3)[0])
        ours, our_lines = outcome(written(out, cut_at(0)[0]), out)
        assert our_lines == lines, f"cut at {number} of {ticks}"
        assert all(map(torch.equal, ours, weights)), f"cut at {number} of {ticks}"
