"""Active checks: the answers for a model and for a data set, and the reasons for a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from truestep.config import Options
from truestep.events import CheckSkipped, DerivativeCompared, Event, SampleReadAgain, SamplesCompared
from truestep.probes.active.data_sets.reads import shared
from truestep.supervision import Session

COUNTS = {"calls": 0}
SEEN: list[float] = []


class Network(nn.Module):
    """A healthy model; `beside` is called in its forward."""

    def __init__(self, beside: Callable[[Any], object] = lambda model: None) -> None:
        super().__init__()
        self.beside = beside
        self.layer, self.head = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.beside(self)
        return self.head(self.layer(x)[0][:, -1])  # type: ignore[no-any-return]


def checked(
    model: nn.Module, data: Dataset[Any] | None = None, call: Callable[..., Any] | None = None, active: bool = True
) -> list[Event]:
    """Train and evaluate a model; return the events of the checks."""
    torch.manual_seed(0)
    events: list[Event] = []
    data = data or TensorDataset(torch.randn(12, 5, 3), torch.randint(0, 2, (12,)))
    call = call or (lambda model, x: model(x))
    with Session(Options(active=active), also=events.append) as session:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for x, y in DataLoader(data, 6, shuffle=True):
            nn.functional.cross_entropy(call(model, x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            for x, _ in DataLoader(data, 4):
                call(model, x)
    assert session.stop().internal_errors == ()
    return [event for event in events if isinstance(event, SamplesCompared | SampleReadAgain | CheckSkipped)]


def reasons(told: list[Event], check: str = "samples") -> set[str]:
    return {event.reason for event in told if isinstance(event, CheckSkipped) and event.check == check}


def test_nothing_is_checked_unless_asked_for() -> None:
    assert checked(Network(), active=False) == []


def test_a_healthy_model_and_its_data_are_checked_once() -> None:
    compared, read = checked(Network())
    assert isinstance(compared, SamplesCompared)
    assert isinstance(read, SampleReadAgain)
    assert (compared.mixed, compared.cause, compared.samples) == (False, "", 4)
    assert (read.differ, read.beside) == (False, ())


def _count(model: Any) -> None:
    COUNTS["calls"] += 1


def _sum(model: Any) -> None:
    SEEN.append(1.0)


def _print(model: Any) -> None:
    print("forward")


def _on_the_class(model: Any) -> None:
    type(model).others = 1


def _import(model: Any) -> None:
    import colorsys

    colorsys.rgb_to_hsv(0, 0, 0)


def _own_counter(model: Any) -> None:
    model.calls = getattr(model, "calls", 0) + 1


@pytest.mark.parametrize("beside", [_count, _sum, _print, _on_the_class, _import])
def test_code_with_effects_outside_is_not_called_again(beside: Callable[[Any], object]) -> None:
    before = dict(COUNTS), list(SEEN)
    plain = checked(Network(beside), active=False), dict(COUNTS), list(SEEN)
    COUNTS.update(before[0])
    SEEN[:] = before[1]
    told = checked(Network(beside))
    assert (dict(COUNTS), list(SEEN)) == plain[1:]
    assert all("its code" in reason for reason in reasons(told))
    assert reasons(told)


def test_a_counter_of_the_model_itself_is_no_effect() -> None:
    model = Network(_own_counter)
    assert isinstance(checked(model)[0], SamplesCompared)
    assert model.calls == 5


def test_hooks_keep_a_model_from_being_called_again() -> None:
    model = Network()
    model.head.register_forward_hook(lambda *_: None)
    assert reasons(checked(model)) == {"the model was not checked: it has hooks"}


def test_a_part_in_train_mode_is_no_evaluation() -> None:
    def call(model: Any, x: torch.Tensor) -> Any:
        model.head.train()
        return model(x)

    assert reasons(checked(Network(), call=call)) == {"the model was not checked: a part of it is in train mode"}


def test_arguments_by_name_are_checked() -> None:
    told = checked(Network(), call=lambda model, x: model(x=x))
    assert reasons(told) == set()
    assert isinstance(told[0], SamplesCompared)


def test_an_input_that_is_not_the_batch_is_passed_over() -> None:
    told = checked(Network(), call=lambda model, x: model(torch.cat([x, x])[: len(x) + 1])[: len(x)])
    assert reasons(told) == {"the model was not checked: its input is not a batch of several samples"}


class Holding(Dataset[Any]):
    """Samples with a label, beside something."""

    def __init__(self, held: object) -> None:
        self.held = held
        self.x = torch.randn(12, 5, 3)

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.x[index], index % 2


@pytest.mark.parametrize(
    "held", [lambda: SEEN.append(1.0), (number for number in range(3)), print], ids=["function", "generator", "builtin"]
)
def test_data_that_hold_something_shared_are_not_read_again(held: object) -> None:
    (reason,) = reasons(checked(Network(), Holding(held)), "reads")
    assert reason.startswith("the evaluation data were not checked: ")


def test_a_list_of_samples_is_no_data_set_to_copy() -> None:
    samples: Any = [(torch.randn(5, 3), number % 2) for number in range(12)]
    told = checked(Network(), samples)
    assert isinstance(told[0], SamplesCompared)
    (reason,) = reasons(told, "reads")
    assert reason == "the evaluation data were not checked: the data set has no indices or no length"


def test_data_that_share_nothing_are_read_again() -> None:
    told = checked(Network(), Holding({"scale": 2.0, "parts": [1, 2], "rate": torch.ones(1)}))
    assert isinstance(told[-1], SampleReadAgain)


class Flagged(Dataset[Any]):
    """Samples with noise where the flag of the training is set."""

    def __init__(self, held: Any) -> None:
        self.train = held

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        x = torch.full((5, 3), index / 12)
        if self.train and index >= 0:
            x = x + torch.rand(5, 3)
        return (x, 0) if not self.train else (x, index % 2)


class Calling(Flagged):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.full((5, 3), self.train(index)), index % 2


def test_a_flag_with_the_name_of_a_method_is_read_and_a_call_is_not() -> None:
    read = checked(Network(), Flagged(held=True))[-1]
    assert isinstance(read, SampleReadAgain)
    assert read.differ
    (reason,) = reasons(checked(Network(), Calling(float)), "reads")
    assert "its code names `train`" in reason


class Gated(nn.Module):
    """Gates features by a softmax over a dimension, or swaps dimensions of each sample by a view."""

    def __init__(self, dim: int = 1, swap: bool = False) -> None:
        super().__init__()
        self.gate, self.head, self.dim, self.swap = nn.Linear(15, 7), nn.Linear(7, 2), dim, swap

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.view(len(x), 3, 5) if self.swap else x
        return self.head(torch.softmax(self.gate(x.flatten(1)), dim=self.dim))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("model", "cause"),
    [(Gated(), ""), (Gated(0), "softmax"), (Gated(-2), "softmax"), (Gated(swap=True), "view")],
)
def test_a_softmax_over_the_samples_and_a_view_within_them_are_causes(model: nn.Module, cause: str) -> None:
    told = [event for event in checked(model) if isinstance(event, SamplesCompared)]
    assert {event.cause for event in told} == {cause}
    assert all(event.mixed == (cause == "softmax") for event in told)


class Switched(Dataset[Any]):
    """Samples that change at random while the switch is on."""

    def __init__(self, augment: bool, always: bool = False) -> None:
        self.x, self.augment, self.always = torch.randn(12, 5, 3), augment, always

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        changes = self.augment or self.always
        return self.x[index] + (torch.randn(5, 3) if changes else 0.0), index % 2


@pytest.mark.parametrize(
    ("train", "evaluation", "beside"),
    [
        (Switched(True), Switched(True), True),
        (Switched(True), Switched(False), False),
        (Switched(False), Switched(True), False),
        (Switched(True, always=True), Switched(True, always=True), False),
    ],
    ids=["both", "training", "evaluation", "without effect"],
)
def test_data_sets_with_the_same_switch_on_are_related(train: Switched, evaluation: Switched, beside: bool) -> None:
    events: list[Event] = []
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Session(Options(active=True), also=events.append) as session:
        for x, y in DataLoader(train, 6, shuffle=True):
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for x, _ in DataLoader(evaluation, 4):
                model(x)
    assert session.stop().internal_errors == ()
    (read,) = [event for event in events if isinstance(event, SampleReadAgain)]
    assert bool(read.beside) is beside
    assert evaluation.augment or not read.differ


class Noise:
    """A random transform."""

    def __init__(self, size: float) -> None:
        self.size = size

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.size * torch.randn(x.shape)


class Flip(Noise):
    """Another one."""


class Changed(Dataset[Any]):
    """Samples that transforms change."""

    def __init__(self, *transforms: Noise) -> None:
        self.x = torch.randn(12, 5, 3)
        for place, transform in enumerate(transforms):
            setattr(self, f"transform{place}", transform)

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        x = self.x[index]
        for name, transform in vars(self).items():
            x = transform(x) if name.startswith("transform") else x
        return x, index % 2


@pytest.mark.parametrize(
    ("train", "evaluation", "beside"),
    [
        ((Noise(1.0),), (Noise(1.0),), (1,)),
        ((Noise(1.0), Flip(0.5)), (Noise(1.0),), (1,)),
        ((Noise(1.0),), (Noise(0.5),), ()),
        ((Noise(1.0),), (Flip(1.0),), ()),
        ((Noise(1.0),), (Noise(1.0), Flip(0.5)), ()),
    ],
    ids=["alike", "a part", "other settings", "another class", "more"],
)
def test_transforms_that_were_built_alike_are_one(train: Any, evaluation: Any, beside: tuple[int, ...]) -> None:
    data = Changed(*evaluation)
    assert shared(data, [(1, Changed(*train))]) == beside
    own = Changed(*evaluation)
    own.__dict__ |= {"x": data.x, "transform0": data.__dict__["transform0"]}
    assert shared(data, [(1, own)]) == (1,)


class Scaled(torch.autograd.Function):
    """Multiplies a hyperbolic tangent by a number, which its backward pass leaves out."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
        ctx.save_for_backward(x.tanh())
        return factor * x.tanh()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad * (1 - ctx.saved_tensors[0] ** 2), None


class Right(Scaled):
    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return 4 * grad * (1 - ctx.saved_tensors[0] ** 2), None


@pytest.mark.parametrize(("function", "ratio", "wrong"), [(Scaled, 0.25, True), (Right, 1.0, False)])
def test_the_backward_pass_of_a_function_with_a_number_is_compared(function: Any, ratio: float, wrong: bool) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return function.apply(self.layer(x), 4.0)  # type: ignore[no-any-return]

    events: list[Event] = []
    with Session(Options(active=True), also=events.append) as session:
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(4):
            model(torch.randn(6, 3)).square().mean().backward()
            optimizer.step()
    assert session.stop().internal_errors == ()
    (found,) = [event for event in events if isinstance(event, DerivativeCompared)]
    assert (found.function, found.ratio, found.wrong) == (function.__name__, ratio, wrong)


class Attentive(nn.Module):
    """Attention by the last states of a recurrent layer in two directions, which a view scrambles."""

    def __init__(self, dim: int, scrambles: bool = True) -> None:
        super().__init__()
        torch.manual_seed(dim)  # with other weights the influence of a softmax can be too small
        self.layer, self.head = nn.GRU(3, 4, batch_first=True, bidirectional=True), nn.Linear(8, 2)
        self.dim, self.scrambles = dim, scrambles

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, last = self.layer(x)
        last = last.view(-1, 8, 1) if self.scrambles else last.transpose(0, 1).reshape(-1, 8, 1)
        weights = torch.softmax((10 * out @ last).squeeze(2), self.dim)
        return self.head((out * weights.unsqueeze(2)).sum(1))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("model", "causes"),
    [
        (Attentive(0), ["view", "softmax"]),
        (Attentive(1), ["view"]),
        (Attentive(0, scrambles=False), ["softmax"]),
        (Attentive(1, scrambles=False), [""]),
    ],
)
def test_a_softmax_over_the_samples_is_found_behind_a_view_that_scrambles_them(
    model: nn.Module, causes: list[str]
) -> None:
    told = [event for event in checked(model) if isinstance(event, SamplesCompared)]
    assert [event.cause for event in told] == causes
    assert all(event.mixed == bool(event.cause) for event in told)
