"""Directions in which losses move the scores of one number for each sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import ResultPushed
from truestep.testing import capture_events

Loss = Callable[[Tensor], Tensor]


def up(scores: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(scores, torch.ones_like(scores))


def down(scores: Tensor) -> Tensor:
    return scores.mean()


def mixed(scores: Tensor) -> Tensor:
    return (scores * torch.tensor([1.0, -1.0] * 8)[:, None]).mean()


def in_turns(real: Loss, own: Loss, other: Loss, *, columns: int = 1) -> list[ResultPushed]:
    """Return the events of two models that are trained in turns."""
    maker, judge = nn.Linear(3, 5), nn.Linear(5, columns)
    first, second = torch.optim.SGD(judge.parameters(), lr=0.01), torch.optim.SGD(maker.parameters(), lr=0.01)
    with capture_events() as events:
        made = maker(torch.randn(16, 3))
        loss = real(judge(torch.randn(16, 5))) + own(judge(made.detach()))
        loss.backward()
        first.step()
        second.zero_grad()
        other(judge(made)).backward()
        second.step()
    return [event for event in events if isinstance(event, ResultPushed)]


def facts(events: list[ResultPushed]) -> list[tuple[Any, ...]]:
    return [(event.scored > 0, event.tracked, event.up) for event in events]


def test_scores_of_the_result_of_another_model_are_told_from_others() -> None:
    found = in_turns(up, down, up)
    assert sorted(facts(found[:2])) == [(False, False, True), (True, False, False)]
    assert facts(found[2:]) == [(True, True, True)]
    assert all(event.size > 0 and event.loss is not None for event in found)


def test_scores_that_are_moved_both_ways_are_told_only_for_results() -> None:
    assert facts(in_turns(mixed, mixed, mixed)) == [(True, False, None), (True, True, None)]


def test_several_scores_for_each_sample_are_not_followed() -> None:
    assert in_turns(down, down, down, columns=3) == []


def test_a_result_that_was_detached_at_once_is_known_while_its_memory_is_in_use() -> None:
    maker, judge = nn.Linear(3, 5), nn.Linear(5, 1)
    optimizer = torch.optim.SGD([*maker.parameters(), *judge.parameters()], lr=0.01)
    with capture_events() as events:
        made = maker(torch.randn(16, 3)).detach()
        place = made.data_ptr()
        judge(made).sum().backward()
        optimizer.step()
        del made
        others = [torch.randn(16, 5) for _ in range(50)]
        again = [one for one in others if one.data_ptr() == place]
        judge((again or others)[0]).sum().backward()
        optimizer.step()
    pushes = [event for event in events if isinstance(event, ResultPushed)]
    assert [event.scored > 0 for event in pushes] == [True, False]


def test_the_rows_of_a_result_in_another_order_are_those_of_its_model() -> None:
    maker, judge = nn.Linear(3, 5), nn.Linear(5, 1)
    optimizer = torch.optim.SGD([*maker.parameters(), *judge.parameters()], lr=0.01)
    with capture_events() as events:
        judge(torch.randn(16, 5))  # sums are taken once a second model is known
        made = maker(torch.randn(16, 3)).detach()
        judge(made[torch.randperm(16)]).sum().backward()
        optimizer.step()
        judge(made + 0.01).sum().backward()
        optimizer.step()
    assert [event.scored > 0 for event in events if isinstance(event, ResultPushed)] == [True, False]
