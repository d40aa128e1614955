"""The schedules against hand-written `LambdaLR`s: the same lr, to the last bit, at every step."""

import copy
import importlib.util
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from truestep import schedules
from truestep.errors import BadSchedule, UnboundSchedule
from truestep.loop.optim import schedule_length

TOTAL = 40


def optimizer(*lrs, tensors=False):
    groups = [
        {"params": [torch.nn.Parameter(torch.ones(1))], "lr": torch.tensor(lr) if tensors else lr}
        for lr in lrs or (0.3,)
    ]
    return torch.optim.SGD(groups, lr=1.0)


def lrs_of(scheduler, steps, start=0):
    """The lr of every group at each of the steps, in a plain loop."""
    seen = []
    for _ in range(start, steps):
        seen.append([float(group["lr"]) for group in scheduler.optimizer.param_groups])
        scheduler.optimizer.step()
        scheduler.step()
    return seen


def twin(factor, *lrs):
    return torch.optim.lr_scheduler.LambdaLR(optimizer(*lrs), factor)


def cosine_by_hand(step):
    if step < 4:
        return (step + 1) / 5
    if step >= TOTAL:
        return 0.1
    return 0.1 + (1 - 0.1) * (0.5 * (1 + math.cos(math.pi * ((step - 4) / (TOTAL - 4)))))


def linear_by_hand(step):
    if step < 4:
        return (step + 1) / 5
    return 0.0 if step >= TOTAL else 0.0 + 1.0 * (1 - (step - 4) / (TOTAL - 4))


def wsd_by_hand(fall):
    def factor(step):
        if step < 4:
            return (step + 1) / 5
        if step < TOTAL - 8:
            return 1.0
        return 0.0 if step >= TOTAL else 0.0 + 1.0 * fall((step - (TOTAL - 8)) / 8)

    return factor


def noam_by_hand(step):
    number, warmup = step + 1, 5
    return number / warmup if number < warmup else math.sqrt(warmup / number)


BY_HAND = {
    "cosine": (lambda o, **k: schedules.warmup_cosine(o, 4, min_lr_ratio=0.1, **k), cosine_by_hand),
    "cosine, fraction": (lambda o, **k: schedules.warmup_cosine(o, 0.1, min_lr_ratio=0.1, **k), cosine_by_hand),
    "linear": (lambda o, **k: schedules.warmup_linear(o, 4, **k), linear_by_hand),
    "wsd": (lambda o, **k: schedules.wsd(o, 4, decay=8, **k), wsd_by_hand(lambda p: 1 - math.sqrt(p))),
    "wsd, fraction": (
        lambda o, **k: schedules.wsd(o, 0.1, decay=0.2, shape="linear", **k),
        wsd_by_hand(lambda p: 1 - p),
    ),
    "wsd, cosine": (
        lambda o, **k: schedules.wsd(o, 4, decay=8, shape="cosine", **k),
        wsd_by_hand(lambda p: 0.5 * (1 + math.cos(math.pi * p))),
    ),
    "inverse_sqrt": (lambda o, **k: schedules.inverse_sqrt(o, 4, **k), noam_by_hand),
    "inverse_sqrt, fraction": (lambda o, **k: schedules.inverse_sqrt(o, 0.1, **k), noam_by_hand),
    "constant": (lambda o, **k: schedules.constant(o, 4, **k), lambda step: min(1.0, (step + 1) / 5)),
    "constant, fraction": (lambda o, **k: schedules.constant(o, 0.1, **k), lambda step: min(1.0, (step + 1) / 5)),
}
each_schedule = pytest.mark.parametrize(("made", "factor"), BY_HAND.values(), ids=BY_HAND.keys())


@each_schedule
def test_schedule_is_the_one_written_by_hand(made, factor):
    ours = lrs_of(made(optimizer(0.3, 0.02), total_steps=TOTAL), TOTAL + 5)
    assert ours == lrs_of(twin(factor, 0.3, 0.02), TOTAL + 5)


@each_schedule
def test_a_length_stated_at_the_start_is_as_good_as_one_given(made, factor):
    scheduler = made(optimizer(0.3, 0.02))
    schedule_length.bind(scheduler, TOTAL)
    assert scheduler.get_last_lr() == [0.3 * factor(0), 0.02 * factor(0)]
    assert lrs_of(scheduler, TOTAL + 5) == lrs_of(twin(factor, 0.3, 0.02), TOTAL + 5)


@each_schedule
@pytest.mark.parametrize("order", ["schedule first", "optimizer first"])
def test_a_resumed_schedule_goes_on_exactly(made, factor, order):
    first = made(optimizer(0.3, 0.02))
    schedule_length.bind(first, TOTAL)
    before = lrs_of(first, 17)
    saved = copy.deepcopy({"schedule": first.state_dict(), "optimizer": first.optimizer.state_dict()})

    fresh = optimizer(0.3, 0.02)
    if order == "optimizer first":
        fresh.load_state_dict(saved["optimizer"])
    resumed = made(fresh)
    resumed.load_state_dict(saved["schedule"])
    if order == "schedule first":
        fresh.load_state_dict(saved["optimizer"])
    schedule_length.bind(resumed, TOTAL)

    assert resumed.get_last_lr() == [group["lr"] for group in fresh.param_groups]
    assert before + lrs_of(resumed, TOTAL + 5, start=17) == lrs_of(twin(factor, 0.3, 0.02), TOTAL + 5)


def test_a_run_made_longer_goes_on_as_the_longer_one():
    short = schedules.warmup_cosine(optimizer(0.3), 4)
    schedule_length.bind(short, 20)
    lrs_of(short, 10)
    longer = schedules.warmup_cosine(optimizer(0.3), 4)
    longer.load_state_dict(short.state_dict())
    schedule_length.bind(longer, TOTAL)
    straight = lrs_of(schedules.warmup_cosine(optimizer(0.3), 4, total_steps=TOTAL), TOTAL)
    assert lrs_of(longer, TOTAL, start=10) == straight[10:]


def test_binding_takes_the_initial_lr_and_not_the_present_one():
    moved = optimizer(0.3)
    moved.param_groups[0]["initial_lr"] = 0.3
    moved.param_groups[0]["lr"] = 0.07
    scheduler = schedules.warmup_linear(moved, 0)
    schedule_length.bind(scheduler, 10)
    assert moved.param_groups[0]["lr"] == 0.3


def test_an_lr_that_is_a_tensor_stays_the_same_tensor():
    with_tensors = optimizer(0.3, 0.02, tensors=True)
    held = [group["lr"] for group in with_tensors.param_groups]
    scheduler = schedules.warmup_cosine(with_tensors, 4, min_lr_ratio=0.1)
    schedule_length.bind(scheduler, TOTAL)
    assert [group["lr"] for group in with_tensors.param_groups] == held
    assert all(group["lr"] is lr for group, lr in zip(with_tensors.param_groups, held, strict=True))
    assert float(held[0]) == float(torch.tensor(0.3) * cosine_by_hand(0))
    held[0].fill_(9.0)
    assert float(scheduler.get_last_lr()[0]) != 9.0


def test_a_length_that_was_given_is_not_overruled():
    scheduler = schedules.warmup_linear(optimizer(0.3), 0, total_steps=10)
    assert not schedule_length.bind(scheduler, 99)
    assert lrs_of(scheduler, 11)[-1] == [0.0]


def test_other_schedulers_are_left_alone():
    foreign = torch.optim.lr_scheduler.LambdaLR(optimizer(0.3), lambda step: 0.5)
    assert not schedule_length.bind(foreign, 10)
    assert foreign.get_last_lr() == [0.15]
    assert not schedule_length.bind(torch.optim.lr_scheduler.StepLR(optimizer(0.3), 3), 10)
    assert not schedule_length.bind(object(), 10)


@pytest.mark.parametrize("made", [schedules.warmup_cosine, schedules.warmup_linear, schedules.wsd])
@pytest.mark.parametrize("warmup", [0, 3, 0.0, 0.05, 0.5])
def test_no_step_is_made_with_an_lr_of_zero(made, warmup):
    lrs = [lr for (lr,) in lrs_of(made(optimizer(0.3), warmup, total_steps=TOTAL), TOTAL)]
    assert min(lrs) > 0
    assert max(lrs) == 0.3


@pytest.mark.parametrize("made", [schedules.warmup_cosine, schedules.warmup_linear, schedules.wsd])
def test_after_its_end_the_lr_stays_at_the_minimum(made):
    after = lrs_of(made(optimizer(0.3), 4, min_lr_ratio=0.1, total_steps=10), 30)[10:]
    assert {lr for (lr,) in after} == {0.3 * 0.1}


def test_a_training_shorter_than_the_warm_up_is_the_warm_up():
    scheduler = schedules.warmup_cosine(optimizer(1.0), 100, total_steps=5)
    assert lrs_of(scheduler, 6) == [[1 / 101], [2 / 101], [3 / 101], [4 / 101], [5 / 101], [0.0]]


def test_the_decay_does_not_cut_the_warm_up():
    scheduler = schedules.wsd(optimizer(1.0), 4, decay=1.0, shape="linear", total_steps=8)
    assert lrs_of(scheduler, 8) == [[0.2], [0.4], [0.6], [0.8], [1.0], [0.75], [0.5], [0.25]]


def test_a_fraction_is_rounded_to_whole_steps():
    assert 0.29 * 100 < 29
    lrs = lrs_of(schedules.constant(optimizer(1.0), 0.29, total_steps=100), 30)
    assert lrs[27:] == [[28 / 30], [29 / 30], [1.0]]


def test_a_schedule_of_unknown_length_is_built_with_the_lr_that_was_given():
    scheduler = schedules.warmup_cosine(optimizer(0.3, 0.02))
    assert scheduler.get_last_lr() == [0.3, 0.02]
    assert schedule_length.horizon_of(scheduler).needs_total


@pytest.mark.parametrize(
    "made",
    [schedules.warmup_cosine, schedules.warmup_linear, schedules.wsd, schedules.inverse_sqrt, schedules.constant],
)
def test_stepping_a_schedule_of_unknown_length_says_what_to_pass(made):
    scheduler = made(optimizer())
    scheduler.optimizer.step()
    with pytest.raises(UnboundSchedule) as raised:
        scheduler.step()
    assert f"{made.__name__} was stepped" in str(raised.value)
    assert "pass total_steps=" in str(raised.value)


@pytest.mark.parametrize("made", [schedules.inverse_sqrt, schedules.constant])
def test_a_schedule_without_an_end_and_with_counted_warm_up_needs_no_length(made):
    scheduler = made(optimizer(), 3)
    assert not schedule_length.horizon_of(scheduler).needs_total
    assert len(lrs_of(scheduler, 10)) == 10


def test_the_state_holds_no_function_and_loads_with_weights_only(tmp_path):
    scheduler = schedules.warmup_cosine(optimizer(), total_steps=10)
    assert scheduler.state_dict()["lr_lambdas"] == [None]
    assert "horizon" not in str(scheduler.state_dict())
    torch.save(scheduler.state_dict(), tmp_path / "schedule.pt")
    assert torch.load(tmp_path / "schedule.pt", weights_only=True) == scheduler.state_dict()


@pytest.mark.parametrize(
    ("made", "given"),
    [
        (schedules.warmup_cosine, {"warmup": 1.0}),
        (schedules.warmup_cosine, {"warmup": -1}),
        (schedules.constant, {"warmup": True}),
        (schedules.warmup_linear, {"min_lr_ratio": 1.5}),
        (schedules.warmup_linear, {"total_steps": 0}),
        (schedules.wsd, {"shape": "square"}),
        (schedules.wsd, {"decay": 1.5}),
        (schedules.wsd, {"decay": -2}),
        (schedules.inverse_sqrt, {"timescale": 0}),
    ],
)
def test_an_argument_out_of_range_is_named(made, given):
    with pytest.raises(BadSchedule) as raised:
        made(optimizer(), **given)
    ((name, value),) = given.items()
    assert raised.value.happened.startswith(f"{name} must be ")
    assert raised.value.happened.endswith(f", got {value!r}")
    assert raised.value.remedy


def test_a_scheduler_inside_a_sequence_keeps_the_length_it_was_given():
    inner = optimizer(1.0)
    parts = [schedules.constant(inner, 0), schedules.warmup_linear(inner, 0, total_steps=4)]
    both = torch.optim.lr_scheduler.SequentialLR(inner, parts, milestones=[3])
    assert lrs_of(both, 8) == [[1.0], [1.0], [1.0], [1.0], [0.75], [0.5], [0.25], [0.0]]


@pytest.mark.program
def test_importing_the_schedules_imports_no_torch():
    code = "import sys, truestep; truestep.schedules.warmup_cosine; assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_how_to_shows_what_the_schedules_do():
    docs = Path(__file__).parents[2] / "docs"
    spec = importlib.util.spec_from_file_location("drawn_schedules", docs / "assets" / "schedules.py")
    drawn = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawn)
    assert drawn.table() in (docs / "how-to" / "schedules.md").read_text(encoding="utf-8")
    assert drawn.picture() == (docs / "assets" / "schedules.svg").read_text(encoding="utf-8")
