"""Values before and after a step: frozen parameters, rounded updates; and attributes that freeze nothing."""

import math
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from truestep.events import (
    Event,
    FreezeIgnored,
    FrozenStepped,
    LayersMeasured,
    LearningRateRead,
    PaceRead,
    ParameterMet,
    UpdateMeasured,
    UpdateRounded,
)
from truestep.probes.optimizer import pace
from truestep.testing import capture_events

X, Y = torch.randn(32, 6, generator=torch.Generator().manual_seed(0)), torch.arange(32) % 3


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def train(
    model: nn.Module, optimizer: torch.optim.Optimizer, clear: Callable[[], None], steps: int = 12, freeze: int = 4
) -> list[Event]:
    with capture_events() as events:
        for step in range(steps):
            if step == freeze:
                model[0].requires_grad_(False)  # type: ignore[index]
            clear()
            nn.functional.cross_entropy(model(X.to(model[2].weight.dtype)).float(), Y).backward()  # type: ignore[index]
            optimizer.step()
    return events


def frozen(events: list[Event]) -> FrozenStepped:
    return [event for event in events if isinstance(event, FrozenStepped)][-1]


def test_a_gradient_that_stays_is_emitted_with_what_it_moves() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    told = frozen(train(model, optimizer, model[2].zero_grad, steps=22))
    assert (told.used, told.zero, told.bare) == ((1, 2), (), ())


def test_decay_on_a_gradient_of_zeros_is_emitted() -> None:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    told = frozen(train(model, optimizer, lambda: optimizer.zero_grad(set_to_none=False)))
    assert (told.used, told.zero, told.bare) == ((), (1, 2), ())


def test_decay_of_an_optimizer_of_ones_own_is_emitted() -> None:
    class Decaying(torch.optim.SGD):
        @torch.no_grad()
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            for parameter in self.param_groups[0]["params"]:
                parameter.mul_(0.99)
                if parameter.grad is not None:
                    parameter.sub_(0.1 * parameter.grad)

    model = network()
    optimizer = Decaying(model.parameters(), lr=0.1)
    told = frozen(train(model, optimizer, optimizer.zero_grad))
    assert (told.used, told.zero, told.bare) == ((), (), (1, 2))


@pytest.mark.parametrize("build", [torch.optim.SGD, torch.optim.AdamW])
def test_without_a_gradient_nothing_moves(build: Callable[..., torch.optim.Optimizer]) -> None:
    model = network()
    optimizer = build(model.parameters(), lr=0.1, weight_decay=0.1)
    told = frozen(train(model, optimizer, optimizer.zero_grad))
    assert (told.used, told.zero, told.bare) == ((), (), ())


@pytest.mark.parametrize(("lr", "least", "most"), [(1e-6, 0.0, 0.02), (0.05, 0.8, 1.0)])
def test_how_much_of_an_update_is_left_in_bfloat16(lr: float, least: float, most: float) -> None:
    model = network().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    events = train(model, optimizer, optimizer.zero_grad, freeze=99)
    told = [event for event in events if isinstance(event, UpdateRounded)]
    assert told
    assert all(least <= event.changed <= most and event.dtype == "bfloat16" for event in told)


@pytest.mark.parametrize(("lr", "least", "most"), [(1e-4, 0.5, 1.0), (2e-3, 0.0, 0.1)])
def test_weights_that_keep_their_value_for_long_are_counted(lr: float, least: float, most: float) -> None:
    model = network().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    events = train(model, optimizer, optimizer.zero_grad, steps=120, freeze=999)
    kept = [event.kept for event in events if isinstance(event, UpdateRounded)]
    assert kept[0] == 0.0  # not for long
    assert least <= kept[-1] <= most


def test_weights_with_a_learning_rate_of_zero_do_not_count() -> None:
    model = network().bfloat16()
    first, *others = model.parameters()
    groups: list[dict[str, Any]] = [{"params": [first], "lr": 0.0}, {"params": others, "lr": 0.01}]
    optimizer = torch.optim.AdamW(groups)
    events = train(model, optimizer, optimizer.zero_grad, steps=120, freeze=999)
    assert max(event.kept for event in events if isinstance(event, UpdateRounded)) <= 0.1


def test_weights_that_stay_where_their_gradients_are_noise_are_not_counted() -> None:
    model = network().bfloat16()
    noise = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.register_hook(lambda grad: torch.randn(grad.shape, generator=noise).to(grad.dtype))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    events = train(model, optimizer, optimizer.zero_grad, steps=120, freeze=999)
    assert {event.kept for event in events if isinstance(event, UpdateRounded)} == {0.0}


def test_full_precision_and_optimizers_of_ones_own_are_not_looked_at() -> None:
    class Own(torch.optim.AdamW):
        pass

    full, half = network(), network().bfloat16()
    events = train(full, adam := torch.optim.AdamW(full.parameters()), adam.zero_grad, freeze=99)
    events += train(half, own := Own(half.parameters()), own.zero_grad, freeze=99)
    assert not [event for event in events if isinstance(event, UpdateRounded)]


def test_rates_are_read_at_sampled_steps_and_at_the_end() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.param_groups[0]["lr"] = 0.0
    calls: list[int] = []

    def clear() -> None:
        optimizer.zero_grad()
        calls.append(1)
        optimizer.param_groups[0]["lr"] = 0.1 if len(calls) > 2 else 0.0

    events = train(model, optimizer, clear, freeze=99)
    read = [event for event in events if isinstance(event, LearningRateRead)]
    assert [event.rates for event in read][:4] == [(0.0,), (0.0,), (0.1,), (0.1,)]
    assert [event.zero for event in read][:4] == [True, True, False, False]


@pytest.mark.parametrize(("attribute", "on"), [("requires_grad", "module"), ("require_grad", "parameter")])
def test_attributes_that_freeze_nothing_are_emitted(attribute: str, on: str) -> None:
    model = network()
    for thing in [model[0]] if on == "module" else model[0].parameters():
        setattr(thing, attribute, False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    events = train(model, optimizer, optimizer.zero_grad, freeze=99)
    told = [event for event in events if isinstance(event, FreezeIgnored)]
    assert told
    assert {event.attribute for event in told} == {attribute}
    assert {event.parameters for event in told} == {(1, 2)}


@pytest.mark.program
def test_parts_that_were_frozen_once_are_not_emitted() -> None:
    model = network()
    model[0].requires_grad = False  # type: ignore[assignment]
    model[0].weight.require_grad = False  # type: ignore[union-attr]
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    thaw = iter(range(12))

    def clear() -> None:
        optimizer.zero_grad()
        if next(thaw) == 2:
            model[0].requires_grad_(True)

    events = train(model, optimizer, clear, freeze=99)
    assert [event for event in events if isinstance(event, FreezeIgnored)] == []


def test_the_size_of_updates_is_the_median_over_weights_that_are_not_near_zero() -> None:
    model = network()
    nn.init.normal_(model[2].weight, std=1e-3)
    size = model[0].weight.detach().square().mean().sqrt().item()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)

    def sign() -> None:
        optimizer.zero_grad()
        model[0].weight.register_hook(lambda grad: torch.ones_like(grad))

    optimizer.param_groups[0]["lr"] = 2.0
    events = train(model, optimizer, sign, steps=1)
    (measured,) = [event for event in events if isinstance(event, UpdateMeasured)]
    assert abs(measured.ratio - 2.0 / size) < 0.05 * measured.ratio


def test_the_weights_of_each_layer_are_measured_at_sampled_steps() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    gradients: list[float] = []
    updates: list[float] = []
    with capture_events() as events:
        for step in range(5):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(X), Y).backward()
            if step == 3:
                model[0].weight.grad.fill_(float("nan"))  # type: ignore[union-attr, operator]
                before = model[2].weight.detach().clone()
                gradients = [model[2].weight.grad.square().mean().sqrt().item()]  # type: ignore[union-attr, operator]
            optimizer.step()
            if step == 3:
                updates = [((model[2].weight - before).norm() / before.norm()).item()]  # type: ignore[operator]
    measured = [event for event in events if isinstance(event, LayersMeasured)]
    assert len(measured) == 4  # steps 0 to 3; the biases are not measured
    names = {event.parameter: event.name for event in events if isinstance(event, ParameterMet)}
    assert [names[number] for number in measured[3].parameters] == ["model.0.weight", "model.2.weight"]
    assert math.isnan(measured[3].gradients[0])
    assert measured[3].gradients[1] == pytest.approx(gradients[0], rel=0.01)
    assert measured[3].updates[1] == pytest.approx(updates[0], rel=0.01)


def test_units_whose_gradient_is_zero_are_counted() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    with torch.no_grad():
        model[0].bias[:6] = -100.0  # type: ignore[index, operator]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with capture_events() as events:
        model(torch.rand(5, 4)).square().sum().backward()
        optimizer.step()
    (measured,) = [event for event in events if isinstance(event, LayersMeasured)]
    assert measured.idle[0] >= 0.75
    assert measured.idle[1] == 0.0


def test_time_and_memory_of_a_long_run_are_read_once_in_a_sampled_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_SHORT_S", 0.0)
    model = network()
    optimizers = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (model[0], model[2])]  # type: ignore[arg-type]
    with capture_events() as events:
        for _ in range(12):
            nn.functional.cross_entropy(model(X), Y).backward()
            for optimizer in optimizers:
                optimizer.step()
    (read,) = [event for event in events if isinstance(event, PaceRead)]
    assert read.steps[:4] == (0, 1, 2, 3)
    assert len(set(read.steps)) == len(read.steps) < 24
    assert list(read.elapsed_s) == sorted(read.elapsed_s)
    if sys.platform == "linux":
        assert all(10_000_000 < size < 100_000_000_000 for size in read.resident_bytes)
    assert set(read.device_bytes) == {0}


def test_a_short_run_has_no_times_so_that_records_compare() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        train(model, optimizer, optimizer.zero_grad)
    assert not [event for event in events if isinstance(event, PaceRead)]


def test_of_many_layers_some_are_measured_from_the_first_to_the_last() -> None:
    model = nn.Sequential(*(nn.Linear(3, 3) for _ in range(100)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with capture_events() as events:
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    (measured,) = [event for event in events if isinstance(event, LayersMeasured)]
    names = {event.parameter: event.name for event in events if isinstance(event, ParameterMet)}
    shown = [names[number] for number in measured.parameters]
    assert len(shown) == len(set(shown)) == 48
    assert (shown[0], shown[-1]) == ("model.0.weight", "model.99.weight")


SCRIPT = """
import torch
weight = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(weight.parameters(), lr=0.1)
for step in range(3):
    for group in optimizer.param_groups:
        group["lr"] = 0.1 / (1 + step)
    weight(torch.ones(1, 3)).sum().backward()
    optimizer.step()
"""


def test_the_line_that_sets_a_rate_by_hand_is_read(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    with capture_events() as events:
        runpy.run_path(str(script))
    read = [event for event in events if isinstance(event, LearningRateRead)]
    assert [event.rates for event in read] == [(0.1,), (0.05,), (0.0333333,)]
    assert {event.site and event.site.line for event in read} == {7}
