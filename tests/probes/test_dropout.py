"""Dropout by a function: noted where it does not follow the mode, and of no effect on the program."""

import functools

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.functional import dropout as drop

from truestep.events import BackwardEnded, Event, ModelCalled, Site
from truestep.testing import capture_events

KEYWORD = "keyword beside one that follows"


def noted(net: nn.Module) -> list[Site | None]:
    """Train a net for a step, evaluate it twice; return the events of the evaluations."""
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    x = torch.randn(6, 4)
    with capture_events() as events:
        net(x).sum().backward()
        optimizer.step()
        net.eval()
        with torch.no_grad():
            net(x)
            net(x)
        net(x)
    return [event.dropout for event in calls(events) if not event.training]


def calls(events: list[Event]) -> list[ModelCalled]:
    return [event for event in events if isinstance(event, ModelCalled)]


def always_on(x: torch.Tensor) -> torch.Tensor:
    return F.dropout(x, 0.5, training=True)


def one_of_two(net: "Net", x: torch.Tensor) -> torch.Tensor:
    self = net
    return F.dropout(F.dropout(self.layer(x), 0.2, training=True), p=0.2, training=self.training)


def own_rate(net: "Net", x: torch.Tensor) -> torch.Tensor:
    self = net
    return F.dropout(F.dropout(self.layer(x), 0.5, training=True), 0.1, training=self.training)


def several(net: "Net", x: torch.Tensor) -> torch.Tensor:
    self = net
    x = F.dropout(F.dropout(self.layer(x), 0.5, training=True), 0.5, training=True)
    return F.dropout(x, 0.5, training=self.training)


class Net(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.layer = nn.Linear(4, 4)
        self.module = nn.Dropout(0.5)
        self.given = {"training": True}
        self.own = functools.partial(F.dropout, training=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        match self.kind:
            case "default":
                return F.dropout(self.layer(x), 0.5)
            case "imported":
                return drop(self.layer(x).relu(), p=0.3)
            case "longer":
                return nn.functional.dropout1d(self.layer(x))
            case "feature":
                return F.dropout1d(self.layer(x), 0.5)
            case "in place":
                return torch.nn.functional.dropout(self.layer(x).relu() + 1, 0.5, inplace=True)
            case "keyword":
                return always_on(self.layer(x))
            case kind if kind == KEYWORD:
                return one_of_two(self, x)
            case "own rate":
                return own_rate(self, x)
            case "several":
                return several(self, x)
            case "position":
                return F.dropout(self.layer(x), 0.5, True)
            case "follows":
                return F.dropout(self.layer(x), 0.5, self.training)
            case "unpacked":
                return F.dropout(self.layer(x), **self.given)
            case "alpha":
                return F.alpha_dropout(self.layer(x), 0.5)
            case "partial":
                return self.own(self.layer(x))
            case "rate":
                return F.dropout(self.layer(x), 0.0)
            case "input":
                return self.layer(F.dropout(x, 0.5))
            case "mask":
                return self.layer(x) * F.dropout(torch.ones(4), 0.5)
            case _:
                return self.module(self.layer(x))


@pytest.mark.parametrize("kind", ["default", "imported", "longer", "feature", "in place", KEYWORD])
def test_dropout_that_is_not_given_the_mode_is_noted(kind: str) -> None:
    one, two, with_gradients = noted(Net(kind))
    assert one is not None
    assert one is two
    assert one.path == __file__
    assert with_gradients is None


@pytest.mark.parametrize(
    "kind",
    [
        "keyword", "own rate", "several", "position", "follows", "unpacked", "alpha", "partial", "rate", "input",
        "mask", "module",
    ],
)  # fmt: skip
def test_all_the_other_ways_are_not(kind: str) -> None:
    assert noted(Net(kind)) == [None, None, None]


def test_a_part_in_train_mode_is_dropout_asked_for() -> None:
    net = Net("default")
    with capture_events() as events:
        net(torch.randn(6, 4)).sum().backward()
        net.eval()
        net.module.train()
        with torch.no_grad():
            net(torch.randn(6, 4))
    assert calls(events)[-1].dropout is None


def test_a_call_that_raises_leaves_nothing_behind() -> None:
    class Raising(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if len(x) == 1:
                F.dropout(self.layer(x))
                raise ValueError("too short")
            return F.dropout(self.layer(x)) if len(x) == 2 else self.layer(x)

    net = Raising("")
    with capture_events() as events:
        net(torch.randn(2, 4)).sum().backward()
        net.eval()
        with torch.no_grad():
            with pytest.raises(ValueError, match="too short"):
                net(torch.randn(1, 4))
            net(torch.randn(3, 4))
    assert calls(events)[-1].dropout is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:`torch.jit.:FutureWarning")
def test_compiling_scripting_and_tracing_work_as_ever() -> None:
    net = Net("default")
    x = torch.randn(2, 4)
    with capture_events():
        compiled = torch.compile(net, fullgraph=True, backend="eager")
        assert compiled(x).shape == (2, 4)
        scripted = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.AlphaDropout(0.5)))
        assert scripted(x).shape == (2, 4)
        traced = torch.jit.trace(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), x, check_trace=False)
        assert traced(x).shape == (2, 4)
    assert scripted(x).shape == (2, 4)
    assert "dropout" not in vars(torch._VF)


def test_an_evaluation_in_train_mode_shows_dropout_by_a_function_and_a_known_input() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.dropout(self.body(x), 0.5, training=self.training)

    net, inputs = Net(), torch.randn(8, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(3):
            net(torch.randn(8, 4)).sum().backward()
            optimizer.step()
            with torch.no_grad():
                net(inputs[:4])
        net.eval()
        with torch.no_grad():
            net(inputs)
    looked = [call for call in calls(events) if not call.grad]
    assert [call.sensitive for call in looked] == [("F.dropout",)] * 3 + [()]
    assert [call.known_input for call in looked] == [False, True, True, False]


def test_the_loss_of_the_pass_before_is_recognized() -> None:
    net, other = nn.Linear(3, 1), torch.ones(2, requires_grad=True)
    with capture_events() as events:
        loss = net(torch.randn(4, 3)).sum()
        loss.backward(retain_graph=True)
        loss.backward(retain_graph=True)
        (loss * 1).backward()
        (other * 1).backward(torch.ones(2), retain_graph=True)
    same = [event.same_loss for event in events if isinstance(event, BackwardEnded)]
    assert same == [False, True, False, False]


def test_a_function_that_gets_the_mode_is_a_layer_that_depends_on_it() -> None:
    net = Net("follows")
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with capture_events() as events:
        for training in (True, False):
            net.train(training)
            net(torch.randn(6, 4)).sum().backward()
            optimizer.step()
    on, off = calls(events)
    assert (on.sensitive, on.frozen_sensitive) == (("Dropout", "F.dropout"), False)
    assert (off.sensitive, off.frozen_sensitive) == ((), True)
