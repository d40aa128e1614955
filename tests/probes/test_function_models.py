"""Functions of a program that are models, in the styles in which people write them.

The trainings have no `assert`: pytest replaces it by code that reads all variables, and such a frame is not read.
"""

from __future__ import annotations

import gc
import inspect
import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from truestep.events import (
    Event,
    FunctionCalled,
    FunctionMet,
    HandStepped,
    InputsRead,
    LoopRead,
    ResultCompared,
    RowsEvaluated,
    RowsRead,
    TargetsCompared,
    WeightsKept,
)
from truestep.testing import capture_events

Weights = dict[str, Tensor]
STEPS, ROWS = 12, 64
X = torch.randn(3 * ROWS, 6, generator=torch.Generator().manual_seed(0))
Y = X[:, :2].sum(1, keepdim=True)
X_TRAIN, Y_TRAIN, X_VAL, Y_VAL = X[ROWS:], Y[ROWS:], X[:ROWS], Y[:ROWS]


def weights_of(*sizes: int) -> Weights:
    torch.manual_seed(0)
    found: Weights = {}
    for place, (before, after) in enumerate(pairwise(sizes)):
        found[f"w{place}"] = (torch.randn(before, after) * before**-0.5).requires_grad_()
        found[f"b{place}"] = torch.zeros(after, requires_grad=True)
    return found


def layer(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return x @ w + b


def predict(weights: Weights, x: Tensor, drop: float = 0.0) -> Tensor:
    h = torch.tanh(layer(x, weights["w0"], weights["b0"]))
    if drop > 0:
        h = F.dropout(h, drop)
    return layer(h, weights["w1"], weights["b1"])


def mean_square(weights: Weights, x: Tensor, y: Tensor) -> Tensor:
    return ((predict(weights, x) - y) ** 2).mean()


@torch.no_grad()
def evaluate(weights: Weights, x: Tensor, y: Tensor) -> float:
    return float((predict(weights, x) - y).abs().mean())


def batches() -> list[Tensor]:
    torch.manual_seed(1)
    return [torch.randperm(len(X_TRAIN))[:32] for _ in range(STEPS)]


def by_optimizer() -> None:
    weights = weights_of(6, 16, 1)
    optimizer = torch.optim.Adam(weights.values(), lr=0.01)
    for rows in batches():
        loss = mean_square(weights, X_TRAIN[rows], Y_TRAIN[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        evaluate(weights, X_VAL, Y_VAL)


def by_taken_gradients() -> None:
    weights = weights_of(6, 16, 1)
    for rows in batches():
        loss = mean_square(weights, X_TRAIN[rows], Y_TRAIN[rows])
        slopes = torch.autograd.grad(loss, list(weights.values()))
        with torch.no_grad():
            for weight, slope in zip(weights.values(), slopes, strict=True):
                weight -= 0.05 * slope
        evaluate(weights, X_VAL, Y_VAL)


def by_new_tensors() -> None:
    weights = weights_of(6, 16, 1)
    for rows in batches():
        loss = mean_square(weights, X_TRAIN[rows], Y_TRAIN[rows])
        slopes = torch.autograd.grad(loss, list(weights.values()))
        pairs = zip(weights.items(), slopes, strict=True)
        weights = {name: (weight - 0.05 * slope).detach().requires_grad_() for (name, weight), slope in pairs}
        evaluate(weights, X_VAL, Y_VAL)


class Net:
    def __init__(self) -> None:
        self.weights = weights_of(6, 16, 1)

    def __call__(self, x: Tensor) -> Tensor:
        return predict(self.weights, x)


def by_class() -> None:
    net = Net()
    optimizer = torch.optim.SGD(net.weights.values(), lr=0.05)
    for rows in batches():
        loss = F.mse_loss(net(X_TRAIN[rows]), Y_TRAIN[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            float((net(X_VAL) - Y_VAL).abs().mean())


def by_closure() -> None:
    weights = weights_of(6, 16, 1)

    def net(x: Tensor) -> Tensor:
        return predict(weights, x)

    for rows in batches():
        loss = F.mse_loss(net(X_TRAIN[rows]), Y_TRAIN[rows])
        loss.backward()
        with torch.no_grad():
            for weight in weights.values():
                weight -= 0.05 * (0 if weight.grad is None else weight.grad)
                weight.grad = None
            float((net(X_VAL) - Y_VAL).abs().mean())


def of_batch(weights: Weights, batch: tuple[Tensor, Tensor]) -> Tensor:
    return predict(weights, batch[0])


def by_tuple() -> None:
    weights = weights_of(6, 16, 1)
    optimizer = torch.optim.Adam(weights.values(), lr=0.01)
    for rows in batches():
        batch = X_TRAIN[rows], Y_TRAIN[rows]
        loss = F.mse_loss(of_batch(weights, batch), batch[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            float((of_batch(weights, (X_VAL, Y_VAL)) - Y_VAL).abs().mean())


def events_of(train: Callable[[], object]) -> list[Event]:
    with capture_events() as events:
        train()
    return events


def of_kind(events: list[Event], *kinds: type[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kinds)]


@pytest.mark.parametrize(
    ("train", "name"),
    [
        (by_optimizer, "predict"),
        (by_taken_gradients, "predict"),
        (by_new_tensors, "predict"),
        (by_class, "__call__"),
        (by_closure, "net"),
        (by_tuple, "of_batch"),
    ],
)
def test_a_model_is_found_in_each_style(train: Callable[[], None], name: str) -> None:
    events = events_of(train)
    (met,) = of_kind(events, FunctionMet)
    assert met.name == name
    calls = of_kind(events, FunctionCalled)
    assert {(call.grad, call.tracked) for call in calls} == {(True, True), (False, False)}
    read = of_kind(events, RowsRead)
    assert {one.table for one in read} == {"X_TRAIN"}
    evaluated = of_kind(events, RowsEvaluated)
    assert evaluated
    assert {(one.hits, one.samples) for one in evaluated} == {(0, ROWS)}
    assert any(one.trained == "X_TRAIN" for one in evaluated)
    assert {one.how for one in of_kind(events, ResultCompared)} == {""}


@pytest.mark.parametrize("train", [by_taken_gradients, by_new_tensors])
def test_updates_with_taken_gradients_are_steps(train: Callable[[], None]) -> None:
    steps = of_kind(events_of(train), HandStepped)
    assert len(steps) in (STEPS - 1, STEPS)
    assert {step.mixed for step in steps} == {0}
    line = inspect.getsourcelines(train)[1] + 4
    assert {step.site.line for step in steps} == {line}


def test_the_functions_are_as_before() -> None:
    functions = predict, mean_square, evaluate, layer, Net.__call__
    before = [function.__code__ for function in functions]
    events_of(by_optimizer)
    events_of(by_class)
    assert [function.__code__ for function in functions] == before
    assert not any("__wrapped__" in vars(function) for function in (predict, mean_square, layer))


def test_only_the_model_stays_observed() -> None:
    own = predict.__code__, mean_square.__code__, layer.__code__
    seen: list[tuple[bool, ...]] = []

    def train() -> None:
        weights = weights_of(6, 16, 1)
        optimizer = torch.optim.Adam(weights.values(), lr=0.01)
        for rows in batches():
            mean_square(weights, X_TRAIN[rows], Y_TRAIN[rows]).backward()
            optimizer.step()
            optimizer.zero_grad()
            now = predict.__code__, mean_square.__code__, layer.__code__
            seen.append(tuple(one is not other for one, other in zip(now, own, strict=True)))

    events_of(train)
    assert (True, True, True) in seen
    assert seen[-1] == (True, False, False)


def test_no_tensor_of_a_call_stays_alive() -> None:
    kept: list[weakref.ref[Tensor]] = []

    def train() -> None:
        weights = weights_of(6, 16, 1)
        optimizer = torch.optim.Adam(weights.values(), lr=0.01)
        for rows in batches():
            x = X_TRAIN[rows]
            kept.append(weakref.ref(x))
            loss = mean_square(weights, x, Y_TRAIN[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            evaluate(weights, X_VAL.clone(), Y_VAL)
            del x, loss
            gc.collect()
            assert [ref() for ref in kept] == [None] * len(kept)

    events_of(train)
    assert len(kept) == STEPS


def test_the_seam_changes_no_number() -> None:
    def train() -> list[float]:
        weights = weights_of(6, 16, 1)
        optimizer = torch.optim.Adam(weights.values(), lr=0.01)
        values = []
        for rows in batches():
            loss = F.mse_loss(predict(weights, X_TRAIN[rows], drop=0.2), Y_TRAIN[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            values += [loss.item(), evaluate(weights, X_VAL, Y_VAL)]
        return values

    plain = train()
    with capture_events():
        assert train() == plain


def attacked() -> None:
    weights = weights_of(6, 16, 1)
    optimizer = torch.optim.Adam(weights.values(), lr=0.01)
    for rows in batches():
        x = X_TRAIN[rows].clone().requires_grad_()
        (slope,) = torch.autograd.grad(mean_square(weights, x + 0.01, Y_TRAIN[rows]), x)
        loss = F.mse_loss(predict(weights, (x + 0.01 * slope.sign()).detach()), Y_TRAIN[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test_calls_that_the_loss_did_not_go_through_do_not_count() -> None:
    (met,) = of_kind(events_of(attacked), FunctionMet)
    assert met.name == "predict"


def test_a_figure_that_each_pass_of_a_loop_overwrites_is_read() -> None:
    def train() -> None:
        weights = weights_of(6, 16, 1)
        optimizer = torch.optim.Adam(weights.values(), lr=0.01)
        for rows in batches():
            loss = mean_square(weights, X_TRAIN[rows], Y_TRAIN[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                total = 0.0
                for part in torch.arange(ROWS).split(16):
                    total = float((predict(weights, X_VAL[part]) - Y_VAL[part]).abs().sum())
                print(total / ROWS)

    loops = [loop for loop in of_kind(events_of(train), LoopRead) if loop.name]
    assert {(loop.name, loop.use) for loop in loops} == {("total", "divided")}


def measured_in_batches(end: str) -> list[tuple[str, str]]:
    def train() -> None:
        weights, kept = weights_of(6, 16, 1), []
        optimizer = torch.optim.Adam(weights.values(), lr=0.01)
        for rows in batches():
            loss = mean_square(weights, X_TRAIN[rows], Y_TRAIN[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                if end == "kept":
                    for i in range(0, ROWS, 16):
                        error = (predict(weights, X_VAL[i : i + 16]) - Y_VAL[i : i + 16]).abs().mean()
                        kept.append(error)
                    print(error)
                else:
                    for i in range(0, ROWS, 16):
                        error = (predict(weights, X_VAL[i : i + 16]) - Y_VAL[i : i + 16]).abs().mean()
                    print(error)

    return [(loop.name, loop.use) for loop in of_kind(events_of(train), LoopRead) if loop.name]


def test_a_figure_of_the_last_slice_is_read() -> None:
    assert measured_in_batches("overwritten") == [("error", "read")]
    assert measured_in_batches("kept") == []


def test_the_step_after_an_evaluation_is_sampled() -> None:
    """Two tasks of other samples, the second one between the steps that are sampled by their number."""

    def train() -> None:
        weights = weights_of(6, 16, 1)
        optimizer = torch.optim.Adam(weights.values(), lr=0.01)
        for part in (slice(0, 64), slice(64, 128)):
            x, y = X_TRAIN[part] * (100 if part.start else 1), Y_TRAIN[part]
            for step in range(26 if part.start == 0 else 20):
                loss = mean_square(weights, x[step : step + 32], y[step : step + 32])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            evaluate(weights, X_VAL, Y_VAL)

    read = [one for one in of_kind(events_of(train), InputsRead) if one.training]
    assert [one.spread > 10 for one in read] == [False] * (len(read) - 1) + [True]


def module_beside() -> None:
    weights, net = weights_of(6, 16, 1), torch.nn.Linear(6, 6)
    optimizer = torch.optim.Adam([*weights.values(), *net.parameters()], lr=0.01)
    for rows in batches():
        loss = mean_square(weights, net(X_TRAIN[rows]), Y_TRAIN[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def layers_in_a_row() -> None:
    weights = weights_of(6, 16, 1)
    optimizer = torch.optim.Adam(weights.values(), lr=0.01)
    for rows in batches():
        h = torch.tanh(layer(X_TRAIN[rows], weights["w0"], weights["b0"]))
        loss = F.mse_loss(layer(h, weights["w1"], weights["b1"]), Y_TRAIN[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def an_attack() -> None:
    weights = weights_of(6, 16, 1)
    attacked = X_VAL.clone().requires_grad_()
    for _ in range(STEPS):
        loss = -mean_square(weights, attacked, Y_VAL)
        (slope,) = torch.autograd.grad(loss, attacked)
        attacked = (attacked - 0.1 * slope.sign()).clamp(-3, 3).detach().requires_grad_()


def by_transformation() -> None:
    weights = {name: weight.detach() for name, weight in weights_of(6, 16, 1).items()}
    for rows in batches():
        slopes = torch.func.grad(mean_square)(weights, X_TRAIN[rows], Y_TRAIN[rows])
        weights = {name: weight - 0.05 * slopes[name] for name, weight in weights.items()}
        evaluate(weights, X_VAL, Y_VAL)


@pytest.mark.parametrize("train", [module_beside, layers_in_a_row, an_attack, by_transformation])
def test_other_programs_have_no_function_that_is_a_model(train: Callable[[], None]) -> None:
    assert not of_kind(events_of(train), FunctionMet, FunctionCalled)


def test_dropout_in_an_evaluation_is_seen_where_the_call_does_not_say_so() -> None:
    def train(evaluates: Callable[[Weights], Tensor]) -> list[FunctionCalled]:
        def run() -> None:
            weights = weights_of(6, 16, 1)
            optimizer = torch.optim.Adam(weights.values(), lr=0.01)
            for rows in batches():
                loss = F.mse_loss(noisy(weights, X_TRAIN[rows]), Y_TRAIN[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                with torch.no_grad():
                    evaluates(weights)

        return [call for call in of_kind(events_of(run), FunctionCalled) if not call.tracked]

    found = train(lambda weights: noisy(weights, X_VAL))
    assert found
    assert all(call.dropout is not None and not call.sampled for call in found)
    asked = train(lambda weights: noisy(weights, X_VAL, drop=0.2))
    assert asked
    assert all(call.dropout is None and call.sampled for call in asked)
    off = train(lambda weights: noisy(weights, X_VAL, drop=0.0))
    assert off
    assert all(call.dropout is None and not call.sampled for call in off)


def test_dropout_that_does_not_get_the_flag_of_its_call_is_seen() -> None:
    def predict(weights: Weights, x: Tensor, training: bool) -> Tensor:
        h = F.dropout(torch.relu(x @ weights["w0"] + weights["b0"]), 0.2)
        return F.dropout(h, 0.2, training=training) @ weights["w1"] + weights["b1"]

    def train() -> None:
        weights = weights_of(6, 16, 1)
        optimizer = torch.optim.Adam(weights.values(), lr=0.01)
        for rows in batches():
            loss = F.mse_loss(predict(weights, X_TRAIN[rows], training=True), Y_TRAIN[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                predict(weights, X_VAL, training=False)

    calls = [call for call in of_kind(events_of(train), FunctionCalled) if not call.tracked]
    assert calls
    assert all(call.dropout is not None and not call.sampled for call in calls)


def noisy(weights: Weights, x: Tensor, drop: float = 0.2) -> Tensor:
    h = torch.relu(x @ weights["w0"] + weights["b0"])
    if drop > 0:
        keep = (torch.rand(h.shape) > drop).float()
        h = h * keep / (1 - drop)
    return h @ weights["w1"] + weights["b1"]


def test_weights_that_are_kept_by_a_figure() -> None:
    def train() -> None:
        weights, best, best_weights = weights_of(6, 16, 1), float("inf"), None
        optimizer = torch.optim.Adam(weights.values(), lr=0.01)
        for rows in batches():
            loss = mean_square(weights, X_TRAIN[rows], Y_TRAIN[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            val_error = evaluate(weights, X_VAL, Y_VAL)
            if val_error < best:
                best, best_weights = val_error, {name: weight.detach().clone() for name, weight in weights.items()}
        evaluate(best_weights or weights, X_VAL, Y_VAL)

    kept = of_kind(events_of(train), WeightsKept)
    assert len(kept) > 1
    assert {(one.name, one.best, one.loss, one.greater) for one in kept} == {("val_error", "best", True, False)}


def test_inputs_are_read_in_training_and_evaluation() -> None:
    def train() -> None:
        weights = weights_of(6, 16, 1)
        optimizer = torch.optim.Adam(weights.values(), lr=0.01)
        for rows in batches():
            loss = F.mse_loss(predict(weights, X_TRAIN[rows] / 100), Y_TRAIN[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            evaluate(weights, X_VAL, Y_VAL)

    read = of_kind(events_of(train), InputsRead)
    spreads = {training: {one.spread for one in read if one.training is training} for training in (True, False)}
    assert all(spread < 0.02 for spread in spreads[True])
    assert all(spread > 0.5 for spread in spreads[False])


TOKENS = torch.randint(2, 30, (48, 9), generator=torch.Generator().manual_seed(2))


def attend(weights: Weights, tokens: Tensor, masked: bool) -> Tensor:
    h = weights["w0"][tokens]
    scores = h @ h.transpose(1, 2) / h.shape[2] ** 0.5
    if masked:
        scores = scores.masked_fill(torch.ones(scores.shape[1:], dtype=torch.bool).triu(1), float("-inf"))
    return (h + scores.softmax(-1) @ h) @ weights["w1"] + weights["b1"]


@pytest.mark.parametrize("masked", [True, False])
def test_a_copy_shows_if_attention_reads_the_targets(masked: bool) -> None:
    def train() -> None:
        weights = weights_of(30, 16, 30)
        optimizer = torch.optim.Adam(weights.values(), lr=0.01)
        for _ in range(STEPS):
            logits = attend(weights, TOKENS[:, :-1], masked)
            loss = F.cross_entropy(logits.flatten(0, 1), TOKENS[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    compared = of_kind(events_of(train), TargetsCompared)
    assert compared
    assert {one.reads for one in compared} == {not masked}
