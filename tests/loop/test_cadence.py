"""Schedules with another cadence than the planned one say so; those that fit are quiet."""

import warnings

import pytest
import torch
from torch import nn

from truestep import schedules
from truestep.loop.optim.schedulers import HorizonWarning
from truestep.loop.run.run import Run

BATCHES = 6


def made(*, total_steps=None, accumulate=1, **settings):
    run = Run(**{"device": "cpu", "watch": False, "accumulate": accumulate, "max_epochs": 2, **settings})
    model = run.model(nn.Linear(3, 1))
    optimizer = run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    run.scheduler(schedules.warmup_cosine(optimizer, warmup=0, total_steps=total_steps))
    return run, lambda: (model(torch.ones(4, 3))).mean()


def trained(run, body):
    """Train by bodies `body(number)`; return the warnings."""
    loader = run.loader(range(BATCHES), batch_size=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in run.epochs():
            for number, _ in enumerate(run.train(loader)):
                body(number)
    return said(caught)


def said(caught):
    assert all(warning.category is HorizonWarning and warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


def times(run, loss, count):
    def body(number):
        for _ in range(count):
            run.step(loss())

    return body


def every_second(run, loss):
    return lambda number: run.step(loss()) if number % 2 == 0 else None


@pytest.mark.parametrize(
    ("accumulate", "count", "total"),
    [(4, 4, 12), (2, 2, 12), (1, 3, 36), (2, 1, 6), (4, 1, 4), (4, 2, 6)],
    ids=["chunks", "two losses", "three updates", "flat", "partial", "half a window"],
)
def test_a_length_that_fits_what_the_bodies_make_is_quiet(accumulate, count, total):
    run, loss = made(accumulate=accumulate, total_steps=total)
    assert trained(run, times(run, loss, count)) == []
    assert run.global_step == total


def test_bodies_that_update_more_often_than_planned_are_a_warning_that_names_the_length():
    run, loss = made(accumulate=4)
    assert trained(run, times(run, loss, 4)) == [
        'schedule "schedule": each batch makes 4 micro-steps: warmup_cosine stays at its minimum after 4 of 12 steps; '
        "pass total_steps=12",
        'schedule "schedule" is past its end: the run makes more than the 4 updates that follow from its batches and '
        "accumulate=; pass total_steps= with the number of updates",
    ]


def test_bodies_that_update_less_often_are_a_warning_after_the_first_epoch():
    run, loss = made()
    assert trained(run, every_second(run, loss)) == [
        'schedule "schedule": the first epoch made 3 updates: warmup_cosine is at 6 of its 12 steps when the run ends; '
        "pass total_steps=6"
    ]
    run, loss = made(total_steps=6)
    assert trained(run, every_second(run, loss)) == []


def test_windows_that_are_closed_by_hand_are_judged_by_the_epoch():
    def by_hand(run, loss):
        def body(number):
            run.backward(loss())
            if number % 3 == 2:
                run.optimizer_step()
                run.zero_grad()

        return body

    run, loss = made(total_steps=4)
    assert trained(run, by_hand(run, loss)) == []
    run, loss = made()
    assert len(trained(run, by_hand(run, loss))) == 1


def test_a_second_loop_of_an_epoch_counts():
    run, loss = made()
    loader = run.loader(range(BATCHES), batch_size=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in run.epochs():
            for _ in range(2):
                for _ in run.train(loader):
                    run.step(loss())
    assert said(caught)[0].startswith('schedule "schedule": the first epoch made 12 updates')


def test_max_steps_is_a_length_in_updates():
    for accumulate, count in ((1, 1), (4, 4), (4, 1), (1, 3)):
        run, loss = made(accumulate=accumulate, max_epochs=None, max_steps=9)
        assert trained(run, times(run, loss, count)) == []
        assert run.global_step == 9


@pytest.mark.parametrize("micro", [1, 4])
def test_a_loop_over_steps_is_as_long_as_it_says(micro):
    run, loss = made(accumulate=4, max_epochs=None)
    rates = []
    optimizer = next(iter(run._parts.updates.values())).optimizer
    optimizer.register_step_pre_hook(lambda *_: rates.append(optimizer.param_groups[0]["lr"]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in run.steps(8):
            for _ in range(micro):
                run.step(loss())
    assert said(caught) == []
    twin = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    schedule, expected = schedules.warmup_cosine(twin, warmup=0, total_steps=8), []
    for _ in range(8):
        expected.append(twin.param_groups[0]["lr"])
        twin.step(), schedule.step()
    assert rates == expected


def test_a_loop_over_steps_in_epochs_is_as_long_as_all_of_them():
    run, loss = made()
    for _ in run.epochs():
        for _ in run.steps(5):
            run.step(loss())
    assert run.global_step == 10
    assert next(iter(run._parts.updates.values())).optimizer.param_groups[0]["lr"] == 0


def test_steps_with_several_updates_or_too_few_say_so():
    run, loss = made(max_epochs=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in run.steps(8):
            for _ in range(3):
                run.step(loss())
    assert said(caught)[0].endswith(
        "each step makes 3 updates: warmup_cosine stays at its minimum after 8 of 24 steps; pass total_steps=24"
    )
    run, loss = made(max_epochs=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in run.steps(8):
            if step >= 4:
                run.step(loss())
    assert said(caught) == [
        'schedule "schedule": the loop has ended: warmup_cosine is at 4 of its 8 steps when the run ends; '
        "pass total_steps=4"
    ]


def test_a_resumed_run_keeps_the_length_that_it_was_planned_with(tmp_path):
    """The second loop of an epoch, or a loop of a later epoch, is not taken for the first."""

    def train(out, stop_at=None):
        run, loss = made(out=out, resume="auto", save_every_n_steps=1, max_epochs=3)
        short = run.loader(range(2), batch_size=1, name="short")
        long = run.loader(range(5), batch_size=1, name="long")
        rates = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for epoch in run.epochs():
                for _ in run.train(short if epoch == 0 else long):
                    run.step(loss())
                    rates.append(next(iter(run._parts.updates.values())).optimizer.param_groups[0]["lr"])
                    if run.global_step == stop_at:
                        run.close()
                        return rates
        run.close()
        return rates

    straight = train(tmp_path / "straight")
    first = train(tmp_path / "run", stop_at=4)
    assert first[:3] + train(tmp_path / "run") == straight
