"""Trained tensors in variables: kept in a branch for the best figure without a copy, in every style and none alike."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from truestep.events import KeptTensorsChanged
from truestep.probes.context.guards import names_best_of_self
from truestep.testing import capture_events

X = torch.randn(64, 5, generator=torch.Generator().manual_seed(0))
Y = X @ torch.tensor([1.0, -2.0, 0.5, 1.0, 0.3]) + 3
X_TEST = X[:16] * 3
EPOCHS = 30


def start() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.zeros(5, requires_grad=True), torch.zeros((), requires_grad=True)


def predict(params: Any, x: torch.Tensor) -> torch.Tensor:
    w, b = params.values() if isinstance(params, dict) else params
    return x @ w + b


def error(params: Any, epoch: int) -> float:
    """Return a figure that is best in the third epoch."""
    with torch.no_grad():
        return abs(epoch - 2) + float(F.mse_loss(predict(params, X), Y)) * 1e-6


def update(params: Any, lr: float = 0.05) -> None:
    parts = list(params.values() if isinstance(params, dict) else params)
    grads = torch.autograd.grad(F.mse_loss(predict(params, X), Y), parts)
    with torch.no_grad():
        for p, g in zip(parts, grads, strict=True):
            p -= lr * g


def the_same_list() -> Any:
    params = list(start())
    best, best_params = float("inf"), None
    for epoch in range(EPOCHS):
        update(params)
        val = error(params, epoch)
        if val < best:
            best, best_params = val, list(params)  # kept
    return predict(best_params, X_TEST)


def a_list_of_the_tensors() -> Any:
    params = list(start())
    best, best_params = float("inf"), None
    for epoch in range(EPOCHS):
        loss = F.mse_loss(predict(params, X), Y)
        loss.backward()
        with torch.no_grad():
            for p in params:
                p -= 0.05 * p.grad
                p.grad.zero_()
        val = error(params, epoch)
        if best > val + 1e-4:
            best = val
            best_params = [p for p in params]  # noqa: C416  # kept
    return predict(best_params, X_TEST)


def views_in_a_dict() -> Any:
    params = dict(zip("wb", start(), strict=True))
    optimizer = torch.optim.Adam(params.values(), lr=0.05)
    best = {"error": float("inf"), "params": None}
    for epoch in range(EPOCHS):
        optimizer.zero_grad()
        F.mse_loss(predict(params, X), Y).backward()
        optimizer.step()
        val = error(params, epoch)
        if val < best["error"]:
            best["error"] = val
            best["params"] = {name: p.detach() for name, p in params.items()}  # kept
    return predict(best["params"], X_TEST)


def a_tuple_with_the_figure() -> Any:
    w, b = start()
    best: Any = (float("inf"), None)
    for epoch in range(EPOCHS):
        update((w, b))
        val = error((w, b), epoch)
        if val < best[0]:
            best = (val, (w.data, b.data))  # kept
    return predict(best[1], X_TEST)


def single_tensors() -> Any:
    w, b = start()
    optimizer = torch.optim.SGD([w, b], lr=0.05)
    best_score, best_w, best_b, worse = -1e9, None, None, 0
    for epoch in range(EPOCHS):
        optimizer.zero_grad()
        F.mse_loss(predict((w, b), X), Y).backward()
        optimizer.step()
        score = -error((w, b), epoch)
        if score <= best_score:
            worse += 1
        else:
            best_score, best_w, best_b = score, w.detach(), b.detach()  # kept
    return predict((best_w, best_b), X_TEST)


class Stopper:
    def __init__(self) -> None:
        self.best, self.params = float("inf"), None

    def see(self, val: float, params: Any) -> None:
        if val < self.best:
            self.best = val
            self.params = list(params)  # kept


def an_object() -> Any:
    params, stopper = list(start()), Stopper()
    for epoch in range(EPOCHS):
        update(params)
        stopper.see(error(params, epoch), params)
    return predict(stopper.params, X_TEST)


BROKEN = [the_same_list, a_list_of_the_tensors, views_in_a_dict, a_tuple_with_the_figure, single_tensors, an_object]


@pytest.mark.parametrize("program", BROKEN)
def test_tensors_kept_without_a_copy_are_found_at_their_line(program: Callable[[], Any]) -> None:
    with capture_events() as events:
        program()
    found = {(event.name, event.site) for event in events if isinstance(event, KeptTensorsChanged)}
    assert found
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert all(site is not None and lines[site.line - 1].endswith("# kept") for _, site in found)


def copies() -> Any:
    params = list(start())
    best, best_params = float("inf"), None
    for epoch in range(EPOCHS):
        update(params)
        val = error(params, epoch)
        if val < best:
            best, best_params = val, [p.detach().clone() for p in params]
    return predict(best_params, X_TEST)


def copies_after_the_first_weights() -> Any:
    params = list(start())
    best, best_params = 1e9, params
    for epoch in range(EPOCHS):
        update(params)
        if epoch % 10 == 9 and (val := error(params, epoch)) < best:
            best, best_params = val, copy.deepcopy(params)
    return predict(best_params, X_TEST)


def new_tensors_in_each_update() -> Any:
    w, b = start()
    best, best_params = float("inf"), None
    for epoch in range(EPOCHS):
        grads = torch.autograd.grad(F.mse_loss(predict((w, b), X), Y), (w, b))
        w, b = ((p - 0.05 * g).detach().requires_grad_() for p, g in zip((w, b), grads, strict=True))
        val = error((w, b), epoch)
        if val < best:
            best, best_params = val, (w, b)
    return predict(best_params, X_TEST)


def new_data_in_each_update() -> Any:
    w, b = start()
    best, best_w, best_b = float("inf"), None, None
    for epoch in range(EPOCHS):
        grads = torch.autograd.grad(F.mse_loss(predict((w, b), X), Y), (w, b))
        for p, g in zip((w, b), grads, strict=True):
            p.data = p.data - 0.05 * g
        val = error((w, b), epoch)
        if val < best:
            best, best_w, best_b = val, w.detach(), b.detach()
    return predict((best_w, best_b), X_TEST)


def used_in_the_branch() -> Any:
    params, files = list(start()), []
    best = float("inf")
    for epoch in range(EPOCHS):
        update(params)
        val = error(params, epoch)
        if val < best:
            best, best_params = val, params
            files.append([p.tolist() for p in best_params])
    return files


def used_under_a_flag() -> Any:
    params, files = list(start()), []
    best, best_params = float("inf"), None
    for epoch in range(EPOCHS):
        update(params)
        improved = False
        val = error(params, epoch)
        if val < best:
            best, best_params, improved = val, params, True
        if improved:
            files.append([p.tolist() for p in best_params or ()])
    return files


def restarts() -> Any:
    best, best_params = float("inf"), None
    for seed in range(EPOCHS):
        params = list(start())
        for _ in range(3):
            update(params)
        val = error(params, seed)
        if val < best:
            best, best_params = val, params
    return predict(best_params, X_TEST)


def the_best_member_of_each_generation() -> Any:
    members = [list(start()) for _ in range(3)]
    for _ in range(EPOCHS):
        for member in members:
            update(member)
        best, best_member = float("inf"), members[0]
        for place, member in enumerate(members):
            val = error(member, place)
            if val < best:
                best, best_member = val, member
        for other in members:
            if other is not best_member:
                with torch.no_grad():
                    for mine, theirs in zip(other, best_member, strict=True):
                        mine.copy_(theirs)
    return members


def the_largest_one_before_the_training() -> Any:
    params = [torch.rand(5, requires_grad=True), torch.rand((), requires_grad=True)]
    best_size, best_p = -1.0, params[0]
    for p in params:
        if float(p.detach().norm()) > best_size:
            best_size, best_p = float(p.detach().norm()), p
    for _ in range(EPOCHS):
        update(params)
    return best_p.sum()


def better_in_each_epoch() -> Any:
    params = list(start())
    best, best_params = float("inf"), None
    for epoch in range(EPOCHS):
        update(params)
        val = error(params, 2) / (epoch + 1)
        if val < best:
            best, best_params = val, params
    return predict(best_params, X_TEST)


def an_equal_figure_is_as_good() -> Any:
    params = list(start())
    best_accuracy, best_params = 0.0, None
    for _ in range(EPOCHS):
        update(params)
        accuracy = 1.0
        if accuracy >= best_accuracy:
            best_accuracy, best_params = accuracy, params
    return predict(best_params, X_TEST)


def a_history_of_figures() -> Any:
    params, history = list(start()), []
    best, best_rows = float("inf"), None
    for epoch in range(EPOCHS):
        update(params)
        val = error(params, epoch)
        history.append(val)
        if val < best:
            best, best_rows = val, (history, X, predict(params, X).detach())
    return best_rows


def arrays_of_numpy() -> Any:
    params = list(start())
    best, best_params = float("inf"), []
    for epoch in range(EPOCHS):
        update(params)
        val = error(params, epoch)
        if val < best:
            best, best_params = val, [p.detach().numpy().copy() for p in params]
    return best_params[0].sum()


def a_second_training_with_new_tensors() -> Any:
    best, best_params = float("inf"), None
    params = list(start())
    for epoch in range(3):
        update(params)
        val = error(params, epoch)
        if val < best:
            best, best_params = val, params
    others = list(start())
    for _ in range(EPOCHS):
        update(others)
    return predict(best_params, X_TEST)


def gradients_of_functions() -> Any:
    params = tuple(p.detach() for p in start())
    slope = torch.func.grad(lambda parts: F.mse_loss(predict(parts, X), Y))
    best, best_params = float("inf"), None
    for epoch in range(EPOCHS):
        params = tuple(p - 0.05 * g for p, g in zip(params, slope(params), strict=True))
        val = error(params, epoch)
        if val < best:
            best, best_params = val, params
    return predict(best_params, X_TEST)


def trials_that_are_undone() -> Any:
    params, best, best_params = list(start()), float("inf"), []
    for epoch in range(EPOCHS):
        backup = [p.detach().clone() for p in params]
        for _ in range(3):
            update(params)
        val = error(params, epoch)
        if val < best:
            best, best_params = val, [p.detach() for p in params]
        else:
            for p, kept in zip(params, backup, strict=True):
                p.data.copy_(kept)
    return predict(best_params, X_TEST)


HEALTHY = [
    trials_that_are_undone,
    gradients_of_functions,
    copies, copies_after_the_first_weights, new_tensors_in_each_update, new_data_in_each_update, used_in_the_branch,
    used_under_a_flag, restarts, the_best_member_of_each_generation, the_largest_one_before_the_training,
    better_in_each_epoch, an_equal_figure_is_as_good, a_history_of_figures, arrays_of_numpy,
    a_second_training_with_new_tensors,
]  # fmt: skip


@pytest.mark.parametrize("program", HEALTHY)
def test_healthy_programs_are_quiet(program: Callable[[], Any]) -> None:
    with capture_events() as events:
        program()
    assert [event for event in events if isinstance(event, KeptTensorsChanged)] == []


@pytest.mark.parametrize(
    ("place", "is_named"),
    [
        ("self.best_loss", True),
        ("self.of['the lowest']", True),
        ("self.loss", False),
        ("bestow", False),
        ("self.minute", False),
    ],
)
def test_only_files_that_name_a_best_figure_of_self_are_parsed(place: str, is_named: bool, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(f"class Trainer:\n    def fit(self, bestow):\n        print({place})\n")
    assert names_best_of_self(str(path)) == is_named
