"""Schedules: each step told once, construction never, warnings keep file and line."""

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler as schedules

from truestep.events import Event, SchedulerBuilt, SchedulerStepped
from truestep.testing import capture_events

KINDS: dict[str, Callable[[Any], Any]] = {
    "LambdaLR": lambda o: schedules.LambdaLR(o, lambda step: 0.9**step),
    "MultiplicativeLR": lambda o: schedules.MultiplicativeLR(o, lambda step: 0.9),
    "StepLR": lambda o: schedules.StepLR(o, 2),
    "MultiStepLR": lambda o: schedules.MultiStepLR(o, [2, 3]),
    "ConstantLR": lambda o: schedules.ConstantLR(o, 0.5, 2),
    "LinearLR": lambda o: schedules.LinearLR(o, 0.5, total_iters=2),
    "ExponentialLR": lambda o: schedules.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda o: schedules.PolynomialLR(o, 9),
    "CosineAnnealingLR": lambda o: schedules.CosineAnnealingLR(o, 9),
    "CosineAnnealingWarmRestarts": lambda o: schedules.CosineAnnealingWarmRestarts(o, 3),
    "CyclicLR": lambda o: schedules.CyclicLR(o, 0.01, 0.1, step_size_up=2),
    "OneCycleLR": lambda o: schedules.OneCycleLR(o, 0.1, total_steps=9),
    "ReduceLROnPlateau": lambda o: schedules.ReduceLROnPlateau(o),
    "SequentialLR": lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(o), schedules.StepLR(o, 1)], [2]),
    "ChainedScheduler": lambda o: schedules.ChainedScheduler(
        [schedules.ConstantLR(o), schedules.ExponentialLR(o, 0.9)]
    ),
    "SWALR": lambda o: torch.optim.swa_utils.SWALR(o, 0.05),
}


def told(events: list[Event]) -> list[SchedulerStepped]:
    return [event for event in events if isinstance(event, SchedulerStepped)]


def optimizer() -> torch.optim.Optimizer:
    return torch.optim.SGD(nn.Linear(2, 1).parameters(), 0.1, momentum=0.9)


def test_a_length_by_the_name_of_epochs() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    epochs, args = 4, {"num_epochs": 4}
    with capture_events() as events:
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args["num_epochs"])
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(args))
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
    assert [event.of_epochs for event in events if isinstance(event, SchedulerBuilt)] == [True, True, False, False]


@pytest.mark.parametrize("kind", KINDS)
def test_each_step_is_emitted_once_and_construction_is_not(kind: str) -> None:
    made = optimizer()
    with capture_events() as events:
        schedule = KINDS[kind](made)
        assert told(events) == []
        for _ in range(5):
            made.step()
            schedule.step(*([1.0] if kind == "ReduceLROnPlateau" else []))
    numbers = [event.scheduler for event in told(events)]
    assert len(numbers) == 5
    assert len(set(numbers)) == 1
    built = {event.scheduler: event.kind for event in events if isinstance(event, SchedulerBuilt)}
    assert built[numbers[0]] == kind
    assert [event.optimizer_steps for event in told(events)] == [1] * 5


def step_of_torch_2_8(schedule: Any, epoch: int | None = None) -> None:
    """Step as the base class of torch 2.8 does, without `_update_lr`."""
    schedule._step_count += 1
    schedule.last_epoch += 1
    with schedules._enable_get_lr_call(schedule):
        rates = schedule.get_lr()
    for group, lr in zip(schedule.optimizer.param_groups, rates, strict=True):
        group["lr"] = lr
    schedule._last_lr = [group["lr"] for group in schedule.optimizer.param_groups]


@pytest.mark.parametrize("kind", ["LambdaLR", "StepLR", "CosineAnnealingLR", "ChainedScheduler", "ReduceLROnPlateau"])
def test_each_step_is_emitted_once_where_the_base_class_is_that_of_torch_2_8(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(schedules.LRScheduler, "_update_lr", raising=False)
    monkeypatch.setattr(schedules.LRScheduler, "step", step_of_torch_2_8)
    test_each_step_is_emitted_once_and_construction_is_not(kind)
    assert vars(schedules.LRScheduler)["step"] is step_of_torch_2_8


@pytest.mark.parametrize("kind", KINDS)
def test_the_lr_is_the_same_to_the_last_bit(kind: str) -> None:
    def run() -> list[object]:
        made = optimizer()
        schedule = KINDS[kind](made)
        seen: list[object] = []
        for step in range(6):
            made.step()
            schedule.step(*([1.0 / (step + 1)] if kind == "ReduceLROnPlateau" else []))
            seen.append(made.param_groups[0]["lr"])
        return seen

    plain = run()
    with capture_events():
        assert run() == plain


def test_a_subclass_of_the_users_own_is_emitted_once() -> None:
    class Own(schedules.StepLR):
        def __init__(self, optimizer: torch.optim.Optimizer) -> None:
            super().__init__(optimizer, 2)

        def step(self, epoch: int | None = None) -> None:
            super().step()

    made = optimizer()
    with capture_events() as events:
        schedule = Own(made)
        made.step()
        schedule.step()
    assert len(told(events)) == 1
    assert [event.kind for event in events if isinstance(event, SchedulerBuilt)] == ["Own"]


def _too_early() -> None:
    schedules.StepLR(optimizer(), 3).step()


def _epoch() -> None:
    schedules.StepLR(optimizer(), 3).step(2)


def _plateau_epoch() -> None:
    schedules.ReduceLROnPlateau(optimizer()).step(1.0, epoch=2)


def _duplicates() -> None:
    weight = nn.Parameter(torch.ones(1))
    torch.optim.SGD([{"params": [weight, weight]}], 0.1)


@pytest.mark.parametrize("case", [_too_early, _epoch, _plateau_epoch, _duplicates])
def test_warnings_keep_their_file_and_line(case: Callable[[], None]) -> None:
    def shown() -> list[tuple[str, str, int]]:
        with warnings.catch_warnings(record=True, action="always") as caught:
            case()
        return [(str(one.message), one.filename, one.lineno) for one in caught]

    plain = shown()
    assert plain
    with capture_events():
        assert shown() == plain


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (1.0, "float"),
        (float("nan"), "nan"),
        (torch.tensor(1.0), "tensor"),
        (torch.ones((), requires_grad=True), "tensor with graph"),
    ],
    ids=["float", "nan", "tensor", "graph"],
)
def test_what_a_plateau_is_given(metric: Any, expected: str) -> None:
    made = optimizer()
    with capture_events() as events, warnings.catch_warnings(action="ignore"):
        schedule = schedules.ReduceLROnPlateau(made)
        made.step()
        schedule.step(metric)
    assert told(events)[0].metric == expected


def test_horizons() -> None:
    made = optimizer()
    with capture_events() as events:
        schedules.CosineAnnealingLR(made, 30)
        schedules.OneCycleLR(made, 0.1, total_steps=40)
        schedules.MultiStepLR(made, [5, 50])
        warm_up, total = 6, 60
        schedules.LambdaLR(made, lambda step: min(step / warm_up, 1 - step / total))
        schedules.SequentialLR(made, [schedules.ConstantLR(made), schedules.CosineAnnealingLR(made, 9)], [7])
        itself = [schedules.ConstantLR(made), schedules.PolynomialLR(made, 3)]
        itself.append(schedules.SequentialLR(made, itself, [7]))
        made.step()
        copy.copy(itself[-1]).step()
    sequential = [event for event in events if isinstance(event, SchedulerBuilt) and event.kind == "SequentialLR"]
    assert [event.horizon for event in sequential] == [16, 10, None]
    built = {event.kind: event.horizon for event in events if isinstance(event, SchedulerBuilt)}
    assert built["OneCycleLR"] == 40
    assert built["MultiStepLR"] == 50
    (function,) = [event for event in events if isinstance(event, SchedulerBuilt) and event.kind == "LambdaLR"]
    assert function.counts == (6, 60)


PLANNED = sorted(
    set(KINDS) - {"MultiplicativeLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ReduceLROnPlateau", "SWALR"}
)


@pytest.mark.parametrize("kind", PLANNED)
def test_the_rates_that_a_schedule_was_asked_for_are_those_that_its_steps_set(kind: str) -> None:
    made = optimizer()
    before = dict(made.param_groups[0])
    with capture_events() as events:
        schedule = KINDS[kind](made)
        after = dict(made.param_groups[0])
    asked = next(
        dict(zip(event.asked_steps, event.asked_rates, strict=True))
        for event in events
        if isinstance(event, SchedulerBuilt) and event.kind == kind
    )
    plain = optimizer()
    KINDS[kind](plain)
    assert {name: value for name, value in after.items() if name != "params"} == {
        name: value for name, value in plain.param_groups[0].items() if name != "params"
    }
    assert before["momentum"] == 0.9 or kind == "OneCycleLR"
    rates = [made.param_groups[0]["lr"]]
    for _ in range(8):
        made.step()
        schedule.step()
        rates.append(made.param_groups[0]["lr"])
    compared = [step for step in range(9) if step in asked]
    assert len(compared) >= 6
    assert [asked[step] for step in compared] == pytest.approx([rates[step] for step in compared], rel=1e-5)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(PLANNED)))
def test_a_schedule_without_a_formula_has_no_plan(kind: str) -> None:
    with capture_events() as events:
        KINDS[kind](optimizer())
    assert [event.asked_rates for event in events if isinstance(event, SchedulerBuilt) and event.kind == kind] == [()]


def test_functions_that_do_more_than_compute_are_not_called() -> None:
    made, seen, table = optimizer(), [], dict.fromkeys(range(9), 0.5)

    def noted(step: int) -> float:
        seen.append(step)
        return 1.0

    with capture_events() as events:
        schedules.LambdaLR(made, noted)
        schedules.LambdaLR(made, lambda step: table[step])
        schedules.LambdaLR(made, lambda step: print(step) or 1.0)
        schedules.LambdaLR(made, lambda step: max(map(abs, (part for part in (0.5, 1.0)))))
    assert [event.asked_rates for event in events if isinstance(event, SchedulerBuilt)] == [(), (), (), ()]
    assert seen == [0]


def test_a_plan_goes_past_the_end_of_a_cosine_and_ends_with_one_cycle() -> None:
    made = optimizer()
    with capture_events() as events:
        schedules.CosineAnnealingLR(made, 1000)
        schedules.OneCycleLR(made, 0.1, total_steps=1000)
        schedules.StepLR(made, 300, gamma=0.1)
    cosine, cycle, stairs = (
        dict(zip(event.asked_steps, event.asked_rates, strict=True))
        for event in events
        if isinstance(event, SchedulerBuilt)
    )
    assert cosine[1000] == 0.0
    assert cosine[2000] == pytest.approx(0.1)
    assert max(cycle) == 1000
    assert stairs[299] == pytest.approx(10 * stairs[300])
    assert max(map(len, (cosine, cycle, stairs))) < 300


@pytest.mark.parametrize(
    ("factor", "rates"),
    [
        (lambda step: 0.0005**step, ["", "vanished", "vanished", "vanished"]),
        (lambda step: 1 - step / 2, ["", "vanished", "negative", "negative"]),
        (lambda step: float(step < 2), ["", "", "", ""]),
        (lambda step: step / 21, ["warming", "warming", "", ""]),
        (lambda step: 0.01, ["", "", "", ""]),
        (lambda step: abs(2 - step) / 4, ["", "vanished", "", ""]),
    ],
    ids=["power", "line", "switched off", "warm-up", "constant", "wave"],
)
def test_where_the_learning_rate_stands_is_emitted(factor: Callable[[int], float], rates: list[str]) -> None:
    made = optimizer()
    with capture_events() as events:
        schedule = schedules.LambdaLR(made, factor)
        for _ in range(4):
            made.step()
            schedule.step()
    assert [event.rate for event in told(events)] == rates


@pytest.mark.parametrize(
    ("loaded", "position", "jump"),
    [(0.02, 0, (0.02, 0.09)), (0.2, 0, (0.2, 0.09)), (0.1, 0, ()), (0.08, 0, ()), (0.02, 5, ()), (0.0, 0, ())],
    ids=["lower", "higher", "as built", "near", "at its position", "zero"],
)
def test_a_first_step_that_changes_the_loaded_rate_shows(loaded: float, position: int, jump: tuple[float, ...]) -> None:
    made = optimizer()
    with capture_events() as events:
        schedule = schedules.LambdaLR(made, lambda step: 0.9 if step == 1 else 1.0)
        state = made.state_dict()
        state["param_groups"][0]["lr"] = loaded
        made.load_state_dict(state)
        schedule.last_epoch = position
        for _ in range(3):
            made.step()
            schedule.step()
    assert [event.jump for event in told(events)] == [pytest.approx(jump), (), ()]


def test_a_learning_rate_that_is_a_tensor_is_not_read() -> None:
    made = torch.optim.SGD(nn.Linear(2, 1).parameters(), torch.tensor(0.1))
    with capture_events() as events:
        schedule = schedules.LambdaLR(made, lambda step: -1.0)
        made.step()
        schedule.step()
    assert [event.rate for event in told(events)] == [""]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5.0, 4.0, 3.0, 2.5, 2.0, 1.5], "falling"),
        ([5.0, 4.0, 4.5, 2.5, 2.0, 1.5], "falling"),
        ([5.0, 4.0, 3.0, 2.5, 2.0, 1.5, 1.6, 1.5, 1.6, 1.5, 1.6], "falling"),
        ([5.0, 4.0, 3.0, 2.5, 2.0, 1.5, 4.5], "float"),
        ([5.0, 4.0, 3.0, 2.5, 2.0], "float"),
        ([5.0, 4.9, 4.8, 4.7, 4.6, 4.5], "float"),
        ([5.0, 4.0, 5.0, 4.0, 5.0, 1.5], "float"),
        ([-1.0, -2.0, -3.0, -4.0, -5.0, -6.0], "float"),
    ],
)
def test_a_metric_that_falls_in_nearly_all_steps(values: list[float], expected: str) -> None:
    optimizer = torch.optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1)
    with capture_events() as events:
        schedule = schedules.ReduceLROnPlateau(optimizer, mode="max")
        for value in values:
            optimizer.step()
            schedule.step(value)
    assert told(events)[-1].metric == expected
