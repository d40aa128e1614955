"""Averages of plain tensors: those that are the weights themselves, and those that have memory of their own."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from truestep.events import AverageOfItself
from truestep.testing import capture_events

X = torch.randn(64, 5, generator=torch.Generator().manual_seed(0))
Y = X @ torch.tensor([1.0, -2.0, 0.5, 1.0, 0.3]) + 3
STEPS = 12
D = 0.9


def start() -> list[torch.Tensor]:
    return [torch.zeros(5, requires_grad=True), torch.zeros((), requires_grad=True)]


def update(params: Any, lr: float = 0.05) -> None:
    parts = list(params.values() if isinstance(params, dict) else params)
    F.mse_loss(X @ parts[0] + parts[1], Y).backward()
    with torch.no_grad():
        for p in parts:
            p -= lr * p.grad
            p.grad = None


def mix(averages: Any, params: Any, decay: float = D) -> None:
    for a, p in zip(averages, params, strict=True):
        a.mul_(decay).add_(p.detach(), alpha=1 - decay)


def a_view() -> Any:
    w, b = start()
    average = w.detach()  # begins
    for _ in range(STEPS):
        update([w, b])
        average.mul_(D).add_(w.detach(), alpha=1 - D)
    return average


def the_data_of_a_running_mean() -> Any:
    w, b = start()
    average, count = w.data, 0  # begins
    for step in range(STEPS):
        update([w, b])
        if step >= 6:
            count += 1
            average += (w.detach() - average) / count
    return average


def a_list_in_a_loop() -> Any:
    params = start()
    averages = [p.data for p in params]  # begins
    for _ in range(STEPS):
        update(params)
        for a, p in zip(averages, params, strict=True):
            a.lerp_(p.detach(), 1 - D)
    return averages


def a_dict_by_key() -> Any:
    params = dict(zip("wb", start(), strict=True))
    shadow = {name: p.detach() for name, p in params.items()}  # begins
    for _ in range(STEPS):
        update(params)
        with torch.no_grad():
            for name, p in params.items():
                shadow[name].copy_(D * shadow[name] + (1 - D) * p)
    return shadow


def a_function() -> Any:
    params = start()
    averages = [p.detach() for p in params]  # begins
    for _ in range(STEPS):
        update(params)
        mix(averages, params)
    return averages


def many_at_once() -> Any:
    params = start()
    averages = [p.detach() for p in params]  # begins
    for _ in range(STEPS):
        update(params)
        with torch.no_grad():
            torch._foreach_lerp_(averages, params, 1 - D)
    return averages


BROKEN = [a_view, the_data_of_a_running_mean, a_list_in_a_loop, a_dict_by_key, a_function, many_at_once]


@pytest.mark.parametrize("program", BROKEN)
def test_an_average_of_itself_is_found_where_it_begins(program: Callable[[], Any]) -> None:
    with capture_events() as events:
        program()
    (found,) = [event for event in events if isinstance(event, AverageOfItself)]
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert found.site is not None
    assert lines[found.site.line - 1].endswith("# begins")


def copies() -> Any:
    params = start()
    averages = [p.detach().clone() for p in params]
    for _ in range(STEPS):
        update(params)
        mix(averages, params)
    return averages


def new_tensors_in_each_update() -> Any:
    w, b = start()
    average = w.detach()
    for _ in range(STEPS):
        update([w, b])
        average = D * average + (1 - D) * w.detach()
    return average


def a_late_start_with_a_copy() -> Any:
    w, b = start()
    average = w.detach()
    for step in range(STEPS):
        update([w, b])
        if step == 6:
            average = w.detach().clone()
        if step > 6:
            average.lerp_(w.detach(), 1 - D)
    return average


def zeros() -> Any:
    w, b = start()
    average = torch.zeros_like(w)
    for step in range(STEPS):
        update([w, b])
        average += (w.detach() - average) / (step + 1)
    return average


def without_an_average(use_average: bool = False) -> Any:
    params = start()
    averages = params
    for _ in range(STEPS):
        update(params)
        if use_average:
            mix(averages, params)
    return averages


def with_a_choice(decay: float = 0.0) -> Any:
    params = start()
    averages = [p.detach().clone() for p in params] if decay else params
    for _ in range(STEPS):
        update(params)
        if decay > 0:
            mix(averages, params, decay)
    return averages


def weight_decay_and_momentum() -> Any:
    params = start()
    velocity = [torch.zeros_like(p) for p in params]
    for _ in range(STEPS):
        F.mse_loss(X @ params[0] + params[1], Y).backward()
        with torch.no_grad():
            for p, v in zip(params, velocity, strict=True):
                v.mul_(D).add_(p.grad)
                p.mul_(1 - 1e-4)
                p.add_(v, alpha=-0.01)
                p.grad = None
    return params


def slow_and_fast_weights() -> Any:
    fast = start()
    slow = [p.detach().clone() for p in fast]
    for step in range(STEPS):
        update(fast)
        if step % 4 == 3:
            with torch.no_grad():
                for s, f in zip(slow, fast, strict=True):
                    s.add_(f - s, alpha=0.5)
                    f.copy_(s)
    return slow


def tied_parts_of_a_target() -> Any:
    params = dict(zip("wb", start(), strict=True))
    target = {"w": params["w"].detach().clone(), "b": params["b"]}
    for _ in range(STEPS):
        update(params)
        with torch.no_grad():
            for name, p in params.items():
                target[name].mul_(D).add_((1 - D) * p)
    return target


def running_statistics() -> Any:
    params = start()
    mean, rows = torch.zeros(5), X
    for _ in range(STEPS):
        update(params)
        batch = rows.mean(0)
        mean.mul_(D).add_(batch, alpha=1 - D)
    return mean


HEALTHY = [
    copies, new_tensors_in_each_update, a_late_start_with_a_copy, zeros, without_an_average, with_a_choice,
    weight_decay_and_momentum, slow_and_fast_weights, tied_parts_of_a_target, running_statistics,
]  # fmt: skip


@pytest.mark.parametrize("program", HEALTHY)
def test_healthy_averages_are_quiet(program: Callable[[], Any]) -> None:
    with capture_events() as events:
        program()
    assert [event for event in events if isinstance(event, AverageOfItself)] == []
