"""Factors of a LambdaLR, from its first position to the end of the observation."""

from collections.abc import Callable
from typing import Any

import torch
from torch.optim.lr_scheduler import ExponentialLR, LambdaLR, SequentialLR

from truestep.events import FactorsFollowed
from truestep.testing import capture_events


def followed(make: Callable[[Any], Any], steps: int = 200) -> list[FactorsFollowed]:
    """Return the events of a loop with one parameter."""
    weight = torch.ones(1, requires_grad=True)
    with capture_events() as events:
        optimizer = torch.optim.SGD([weight], lr=0.02)
        schedule = make(optimizer)
        for _ in range(steps):
            optimizer.zero_grad()
            (weight**2).sum().backward()
            optimizer.step()
            schedule.step()
    return [event for event in events if isinstance(event, FactorsFollowed)]


def test_a_warm_up_and_a_decay() -> None:
    (event,) = followed(lambda one: LambdaLR(one, lambda step: 0.02 * min((step + 1) / 40, (200 - step) / 161)))
    assert (event.base, event.steps, event.since, event.values) == (0.02, 200, 161, 4)
    assert abs(event.largest - 0.02) < 1e-12
    assert event.last == 0


def test_a_constant_factor_has_one_value() -> None:
    (event,) = followed(lambda one: LambdaLR(one, lambda step: 0.015625))
    assert (event.values, event.since, event.largest) == (1, 200, 0.015625)


def test_a_factor_that_exceeds_the_rate_is_followed_no_further() -> None:
    (event,) = followed(lambda one: LambdaLR(one, lambda step: 1 - step / 400))
    assert (event.base, event.largest, event.steps) == (0.02, 1.0, 1)


def test_other_schedules_and_other_positions_are_not_followed() -> None:
    def resumed(optimizer: Any) -> Any:
        schedule = LambdaLR(optimizer, lambda step: 0.1 ** (step // 30))
        schedule.load_state_dict({**schedule.state_dict(), "last_epoch": 60, "_step_count": 61})
        return schedule

    def nested(optimizer: Any) -> Any:
        parts = [LambdaLR(optimizer, lambda step: (step + 1) / 9), ExponentialLR(optimizer, 0.9)]
        return SequentialLR(optimizer, parts, [9])

    assert followed(resumed) == []
    assert followed(nested) == []
    assert followed(lambda one: ExponentialLR(one, 0.9)) == []
