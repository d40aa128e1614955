"""Whether a schedule's length matches the run: said at the start, and only when it does not."""

import pytest
import torch
from torch.optim import lr_scheduler as torch_schedules

from truestep import schedules
from truestep.loop.optim import schedule_length

STEPS, EPOCHS = 9380, 10


def sgd():
    return torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1, momentum=0.9)


def warmup_then_cosine(optimizer, warmup, cosine, milestone):
    parts = [
        torch_schedules.LinearLR(optimizer, 0.1, total_iters=warmup),
        torch_schedules.CosineAnnealingLR(optimizer, T_max=cosine),
    ]
    return torch_schedules.SequentialLR(optimizer, parts, milestones=[milestone])


def constant_then_decay(optimizer):
    parts = [
        torch_schedules.ConstantLR(optimizer, factor=0.1, total_iters=20),
        torch_schedules.ExponentialLR(optimizer, gamma=0.999),
    ]
    return torch_schedules.SequentialLR(optimizer, parts, milestones=[20])


def in_chain(optimizer, *parts):
    return torch_schedules.ChainedScheduler([part(optimizer) for part in parts], optimizer)


EVERY_STEP_FITS = {
    "cosine": lambda o: torch_schedules.CosineAnnealingLR(o, T_max=STEPS),
    "cosine over all but the warm-up": lambda o: torch_schedules.CosineAnnealingLR(o, T_max=STEPS - 469),
    "cosine a little long": lambda o: torch_schedules.CosineAnnealingLR(o, T_max=STEPS + 469),
    "cosine down and up once": lambda o: torch_schedules.CosineAnnealingLR(o, T_max=STEPS // 2),
    "cosine per epoch": lambda o: torch_schedules.CosineAnnealingLR(o, T_max=938),
    "cosine many times, not a whole number": lambda o: torch_schedules.CosineAnnealingLR(o, T_max=1000),
    "warm restarts": lambda o: torch_schedules.CosineAnnealingWarmRestarts(o, T_0=1000),
    "warm restarts growing": lambda o: torch_schedules.CosineAnnealingWarmRestarts(o, T_0=1000, T_mult=2),
    "one cycle": lambda o: torch_schedules.OneCycleLR(o, 0.1, total_steps=STEPS),
    "one cycle with one step to spare": lambda o: torch_schedules.OneCycleLR(o, 0.1, total_steps=STEPS + 1),
    "linear warm-up": lambda o: torch_schedules.LinearLR(o, 0.1, total_iters=500),
    "linear warm-up of as many steps as epochs": lambda o: torch_schedules.LinearLR(o, 0.1, total_iters=EPOCHS),
    "linear decay": lambda o: torch_schedules.LinearLR(o, 1.0, 0.0, total_iters=STEPS),
    "linear decay to a floor that is kept": lambda o: torch_schedules.LinearLR(o, 1.0, 0.1, total_iters=STEPS // 2),
    "polynomial": lambda o: torch_schedules.PolynomialLR(o, total_iters=STEPS, power=0.9),
    "constant": lambda o: torch_schedules.ConstantLR(o, 0.1, total_iters=500),
    "constant that is none": lambda o: torch_schedules.ConstantLR(o, 1.0, total_iters=99999),
    "milestones": lambda o: torch_schedules.MultiStepLR(o, [4000, 8000]),
    "milestones in the first epoch and later": lambda o: torch_schedules.MultiStepLR(o, [5, 8000]),
    "milestones that raise": lambda o: torch_schedules.MultiStepLR(o, [2, 4], gamma=2.0),
    "no milestones": lambda o: torch_schedules.MultiStepLR(o, []),
    "steps": lambda o: torch_schedules.StepLR(o, 99999),
    "exponential": lambda o: torch_schedules.ExponentialLR(o, 0.999),
    "lambda": lambda o: torch_schedules.LambdaLR(o, lambda step: 1.0),
    "plateau": lambda o: torch_schedules.ReduceLROnPlateau(o, patience=99999),
    "cyclic": lambda o: torch_schedules.CyclicLR(o, 0.01, 0.1, step_size_up=STEPS // 2),
    "warm-up, then cosine": lambda o: warmup_then_cosine(o, 469, STEPS - 469, 469),
    "warm-up, then cosine of the whole run": lambda o: warmup_then_cosine(o, 469, STEPS, 469),
    "constant, then decay": constant_then_decay,
    "chain": lambda o: in_chain(
        o,
        lambda o: torch_schedules.ConstantLR(o, 0.1, total_iters=10),
        lambda o: torch_schedules.ExponentialLR(o, 0.999),
    ),
    "ours": lambda o: schedules.warmup_cosine(o, total_steps=STEPS),
    "ours without end": lambda o: schedules.constant(o, 100),
    "not a scheduler": lambda o: object(),
}


@pytest.mark.parametrize("made", EVERY_STEP_FITS.values(), ids=EVERY_STEP_FITS.keys())
def test_a_schedule_that_fits_is_quiet(made):
    assert schedule_length.mismatch(made(sgd()), STEPS, "step", EPOCHS) is None


EVERY_EPOCH_FITS = {
    "cosine": lambda o: torch_schedules.CosineAnnealingLR(o, T_max=EPOCHS),
    "one cycle": lambda o: torch_schedules.OneCycleLR(o, 0.1, total_steps=EPOCHS),
    "milestones": lambda o: torch_schedules.MultiStepLR(o, [3, 6]),
    "milestones of late": lambda o: torch_schedules.MultiStepLR(o, [9]),
    "warm-up, then cosine": lambda o: warmup_then_cosine(o, 2, EPOCHS - 2, 2),
    "warm-up": lambda o: torch_schedules.LinearLR(o),
}


@pytest.mark.parametrize("made", EVERY_EPOCH_FITS.values(), ids=EVERY_EPOCH_FITS.keys())
def test_a_schedule_that_fits_the_epochs_is_quiet(made):
    assert schedule_length.mismatch(made(sgd()), EPOCHS, "epoch", STEPS) is None


def said(scheduler, total=STEPS, every="step", other=EPOCHS):
    sentence = schedule_length.mismatch(scheduler, total, every, other)
    assert sentence is not None
    assert not sentence.endswith(".")
    return sentence


STEPPED_TOO_OFTEN = {
    "cosine": (
        lambda o: torch_schedules.CosineAnnealingLR(o, T_max=EPOCHS),
        'goes down and up every 20 of 9380 steps: T_max=10 counts epochs; pass T_max=9380 or every="epoch"',
    ),
    "one cycle": (
        lambda o: torch_schedules.OneCycleLR(o, 0.1, total_steps=EPOCHS),
        "raises a ValueError after 10 of 9380 steps: total_steps=10 counts epochs",
    ),
    "polynomial": (
        lambda o: torch_schedules.PolynomialLR(o, total_iters=EPOCHS),
        "is 0 after 10 of 9380 steps: total_iters=10 counts epochs",
    ),
    "linear decay": (
        lambda o: torch_schedules.LinearLR(o, 1.0, 0.1, total_iters=EPOCHS),
        "has fallen after 10 of 9380 steps: total_iters=10 counts epochs",
    ),
    "milestones": (
        lambda o: torch_schedules.MultiStepLR(o, [5, 8]),
        "has passed its last milestone, 8, in the first of 10 epochs",
    ),
    "warm-up, then cosine": (
        lambda o: warmup_then_cosine(o, 2, EPOCHS - 2, 2),
        "in SequentialLR from 2 to 9380, CosineAnnealingLR goes down and up every 16 of 9378 steps: T_max=8 "
        "counts epochs",
    ),
    "chain": (
        lambda o: in_chain(o, lambda o: torch_schedules.CosineAnnealingLR(o, T_max=EPOCHS)),
        "CosineAnnealingLR goes down and up",
    ),
    "ours": (
        lambda o: schedules.warmup_linear(o, total_steps=EPOCHS),
        "warmup_linear stays at its minimum after 10 of 9380 steps: total_steps=10 counts epochs",
    ),
}


@pytest.mark.parametrize(("made", "expected"), STEPPED_TOO_OFTEN.values(), ids=STEPPED_TOO_OFTEN.keys())
def test_a_schedule_for_epochs_that_is_stepped_every_step_is_reported(made, expected):
    assert expected in said(made(sgd()))


STEPPED_TOO_SELDOM = {
    "cosine": (
        lambda o: torch_schedules.CosineAnnealingLR(o, T_max=STEPS),
        'has 100% of its way left when the run ends: T_max=9380 counts steps; pass T_max=10 or every="step"',
    ),
    "warm restarts": (
        lambda o: torch_schedules.CosineAnnealingWarmRestarts(o, T_0=STEPS),
        "is at 10 of the 9380 steps of its first period when the run ends: T_0=9380 counts steps",
    ),
    "one cycle": (
        lambda o: torch_schedules.OneCycleLR(o, 0.1, total_steps=STEPS),
        "is at 10 of its 9380 steps when the run ends: total_steps=9380 counts steps",
    ),
    "linear": (lambda o: torch_schedules.LinearLR(o, 1.0, 0.0, total_iters=STEPS), "total_iters=9380 counts steps"),
    "polynomial": (lambda o: torch_schedules.PolynomialLR(o, total_iters=STEPS), "total_iters=9380 counts steps"),
    "milestones": (
        lambda o: torch_schedules.MultiStepLR(o, [3000, 6000]),
        'never comes to milestone 3000, 6000: the run has 10 epochs; pass milestones below 10 or every="step"',
    ),
    "warm-up, then cosine": (
        lambda o: warmup_then_cosine(o, 500, STEPS - 500, 500),
        "never comes to milestone 500, where CosineAnnealingLR begins: the run has 10 epochs; "
        'pass milestones below 10 or every="step"',
    ),
    "cyclic": (
        lambda o: torch_schedules.CyclicLR(o, 0.01, 0.1, step_size_up=469),
        "is at 10 of the 938 steps of its first cycle when the run ends",
    ),
    "ours": (
        lambda o: schedules.warmup_cosine(o, total_steps=STEPS),
        "warmup_cosine is at 10 of its 9380 steps when the run ends: total_steps=9380 counts steps",
    ),
}


@pytest.mark.parametrize(("made", "expected"), STEPPED_TOO_SELDOM.values(), ids=STEPPED_TOO_SELDOM.keys())
def test_a_schedule_for_steps_that_is_stepped_every_epoch_is_reported(made, expected):
    assert expected in said(made(sgd()), EPOCHS, "epoch", STEPS)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (
            lambda o: torch_schedules.CosineAnnealingLR(o, T_max=2 * STEPS),
            "CosineAnnealingLR has 50% of its way left when the run ends; pass T_max=9380",
        ),
        (
            lambda o: torch_schedules.CosineAnnealingLR(o, T_max=7000),
            "rises again after 7000 of 9380 steps, to 26% of its height; pass T_max=9380",
        ),
        (
            lambda o: torch_schedules.LinearLR(o, 0.1, total_iters=2 * STEPS),
            "LinearLR is at 9380 of its 18760 steps when the run ends; pass total_iters=9380",
        ),
        (
            lambda o: torch_schedules.LinearLR(o, 1.0, 0.0, total_iters=5000),
            "LinearLR is 0 after 5000 of 9380 steps; pass total_iters=9380",
        ),
        (
            lambda o: torch_schedules.PolynomialLR(o, total_iters=2 * STEPS, power=2.0),
            "PolynomialLR has 25% of its way left when the run ends",
        ),
        (
            lambda o: torch_schedules.ConstantLR(o, 0.1, total_iters=STEPS),
            "ConstantLR multiplies the lr by 0.1 for 9380 steps and the run has 9380",
        ),
        (
            lambda o: torch_schedules.MultiStepLR(o, [3000, 9380]),
            "never comes to milestone 9380: the run has 9380 steps",
        ),
        (
            lambda o: torch_schedules.OneCycleLR(o, 0.1, total_steps=STEPS - 1),
            "OneCycleLR raises a ValueError after 9379 of 9380 steps; pass total_steps=9380",
        ),
        (
            lambda o: warmup_then_cosine(o, 1000, STEPS - 500, 500),
            "in SequentialLR from 0 to 500, LinearLR is at 500 of its 1000 steps when the next one begins",
        ),
        (lambda o: schedules.warmup_cosine(o), "warmup_cosine has no length; pass total_steps=9380"),
        (
            lambda o: schedules.constant(o, STEPS),
            "the warm-up of constant takes 9380 of 9380 steps; pass warmup=0.05",
        ),
    ],
)
def test_a_length_that_is_neither_is_reported_with_the_one_to_pass(made, expected):
    assert expected in said(made(sgd()))


def test_milestones_of_a_short_run_are_not_taken_for_epochs():
    assert schedule_length.mismatch(torch_schedules.MultiStepLR(sgd(), [8]), 50, "step", 10) is None


def test_a_cycle_that_is_longer_than_the_run_is_reported():
    assert "OneCycleLR is at 20 of its 30 steps" in said(
        torch_schedules.OneCycleLR(sgd(), 0.1, total_steps=30), 20, "step", 2
    )


def test_a_bound_schedule_fits():
    scheduler = schedules.warmup_cosine(sgd())
    schedule_length.bind(scheduler, STEPS)
    assert schedule_length.mismatch(scheduler, STEPS, "step", EPOCHS) is None


def test_a_bound_warm_up_longer_than_the_run_is_reported():
    scheduler = schedules.warmup_cosine(sgd(), 100)
    schedule_length.bind(scheduler, 50)
    assert "the warm-up of warmup_cosine takes 100 of 50 steps" in said(scheduler, 50, "step", 1)


@pytest.mark.parametrize(("length", "raises"), [(20, False), (21, False), (19, True)])
def test_one_cycle_raises_in_mid_run_exactly_where_it_was_announced(length, raises):
    optimizer = sgd()
    scheduler = torch_schedules.OneCycleLR(optimizer, 0.1, total_steps=length)
    sentence = schedule_length.mismatch(scheduler, 20, "step", 2)
    assert "raises" in sentence if raises else sentence is None
    done = 0
    try:
        for _ in range(20):
            optimizer.step()
            scheduler.step()
            done += 1
    except ValueError:
        assert done == length
    assert (done < 20) is raises


@pytest.mark.parametrize(("total", "length"), [(30, 30), (30, 20), (30, 60), (20, 17), (100, 96), (100, 104)])
def test_a_cosine_of_a_known_length_is_that_of_torch(total, length):
    optimizer = sgd()
    scheduler = torch_schedules.CosineAnnealingLR(optimizer, T_max=length)
    sentence = schedule_length.mismatch(scheduler, total, "step", 1)
    for _ in range(total):
        optimizer.step()
        scheduler.step()
    left = scheduler.get_last_lr()[0] / 0.1
    assert (sentence is not None) is (left > 0.01)
    if sentence is not None:
        assert f"{left:.0%}" in sentence


def test_a_subclass_means_what_it_says_itself():
    class Mine(torch_schedules.CosineAnnealingLR):
        pass

    assert schedule_length.mismatch(Mine(sgd(), T_max=3 * STEPS), STEPS, "step", EPOCHS) is None
