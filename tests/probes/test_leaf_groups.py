"""Tensors of a list or a dict that no optimizer holds, in programs without modules."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from truestep.events import LeavesGrouped
from truestep.findings import Confidence, Finding
from truestep.rules.parameters_not_optimized import ParametersNotOptimized
from truestep.testing import capture_events, judge

STEPS = 60
X = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
Y = X.sum(1) + 1


class Line(NamedTuple):
    w: Tensor
    b: Tensor


class Net:
    def __init__(self) -> None:
        self.params = leaves()


def leaves() -> dict[str, Tensor]:
    return {
        "w": torch.zeros(4, 3).normal_(0, 0.1).requires_grad_(),
        "b": torch.zeros(3, requires_grad=True),
        "v": torch.full((3,), 0.1, requires_grad=True),
    }


def output(P: dict[str, Tensor], x: Tensor = X) -> Tensor:
    return torch.tanh(x @ P["w"] + P["b"]) @ P["v"]


def train(optimizer: torch.optim.Optimizer, loss: Callable[[], Tensor]) -> None:
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


def error(P: dict[str, Tensor], x: Tensor = X) -> Tensor:
    return (output(P, x) - Y).pow(2).mean()


def found(program: Callable[[], None]) -> list[Finding]:
    with capture_events() as events:
        program()
    return judge(ParametersNotOptimized, events)


def a_dict() -> None:
    P = leaves()
    train(torch.optim.Adam([P["w"], P["v"]]), lambda: error(P))


def a_list() -> None:
    P = leaves()
    params = list(P.values())
    train(torch.optim.SGD(params[:2], lr=0.1), lambda: error(dict(zip("wbv", params, strict=True))))


def an_attribute() -> None:
    net = Net()
    train(torch.optim.Adam([net.params["w"], net.params["v"]]), lambda: error(net.params))


def layers() -> None:
    P = leaves()
    stack = [(P["w"], P["b"]), (P["v"],)]
    train(torch.optim.Adam(stack[0]), lambda: error({"w": stack[0][0], "b": stack[0][1], "v": stack[1][0]}))


def a_tuple_with_names() -> None:
    line = Line(torch.zeros(4, requires_grad=True), torch.zeros((), requires_grad=True))
    train(torch.optim.SGD([line.w], lr=0.1), lambda: (X @ line.w + line.b - Y).pow(2).mean())


def all_held() -> None:
    P = leaves()
    train(torch.optim.Adam(P.values()), lambda: error(P))


def two_optimizers() -> None:
    P = leaves()
    first, second = torch.optim.Adam([P["w"], P["v"]]), torch.optim.SGD([P["b"]], lr=0.1)
    for _ in range(STEPS):
        error(P).backward()
        for optimizer in (first, second):
            optimizer.step()
            optimizer.zero_grad()


def points_in_a_dict() -> None:
    P = leaves()
    data = {"x": X.clone().requires_grad_(), "edge": X[:2].clone().requires_grad_()}
    train(torch.optim.Adam(P.values()), lambda: error(P, data["x"]) + output(P, data["edge"]).pow(2).mean())


def frozen_part() -> None:
    P = leaves()
    P["b"].requires_grad_(False)
    train(torch.optim.Adam([P["w"], P["v"]]), lambda: error(P))


def a_part_that_joins_later() -> None:
    P = leaves()
    optimizer = torch.optim.Adam([P["w"], P["v"]])
    for step in range(STEPS):
        if step == 20:
            optimizer.add_param_group({"params": [P["b"]]})
        optimizer.zero_grad()
        error(P).backward()
        optimizer.step()


def an_input_that_is_optimized() -> None:
    P, picture = leaves(), X.clone().requires_grad_()
    train(torch.optim.Adam([picture], lr=0.1), lambda: error(P, picture))


def inputs_beside_parameters() -> None:
    run = SimpleNamespace(P=leaves(), x=X.clone().requires_grad_())
    train(torch.optim.Adam(run.P.values()), lambda: error(run.P, run.x))


def teacher_and_student() -> None:
    nets = {"teacher": leaves(), "student": leaves()}
    optimizer = torch.optim.Adam(nets["student"].values())
    train(optimizer, lambda: (output(nets["student"]) - output(nets["teacher"])).pow(2).mean())


@pytest.mark.parametrize("program", [a_dict, a_list, an_attribute, layers, a_tuple_with_names])
def test_tensors_that_were_left_out_are_found(program: Callable[[], None]) -> None:
    (finding,) = found(program)
    assert finding.primary.site is not None
    assert finding.primary.site.path == __file__
    assert finding.seen.count == 1
    assert finding.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    "program",
    [
        all_held,
        two_optimizers,
        points_in_a_dict,
        frozen_part,
        a_part_that_joins_later,
        an_input_that_is_optimized,
        inputs_beside_parameters,
        teacher_and_student,
    ],
)
def test_healthy_programs_are_quiet(program: Callable[[], None]) -> None:
    assert found(program) == []


def test_the_collection_is_told_once_with_the_places_of_its_tensors() -> None:
    with capture_events() as events:
        a_dict()
    (group,) = [event for event in events if isinstance(event, LeavesGrouped)]
    assert (group.name, group.names) == ("P", ("P['w']", "P['b']", "P['v']"))


def heads(trunk: dict[str, Tensor], one: dict[str, Tensor], two: dict[str, Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    return output(trunk, x) * one["a"], output(trunk, x) * two["a"]


@pytest.mark.parametrize("both", [True, False])
def test_a_whole_dict_of_a_function_that_is_a_model(both: bool) -> None:
    trunk = leaves()
    one, two = {"a": torch.ones(1, requires_grad=True)}, {"a": torch.ones(1, requires_grad=True)}

    def loss() -> Tensor:
        first, second = heads(trunk, one, two, X)
        return (first - Y).pow(2).mean() + (second + Y).pow(2).mean()

    held = [*trunk.values(), *one.values(), *(two.values() if both else ())]
    findings = found(lambda: train(torch.optim.Adam(held), loss))
    assert len(findings) == (not both)
    assert all("tensors of `heads` are in no optimizer" in finding.message for finding in findings)
