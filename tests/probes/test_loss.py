"""Losses: shapes, broadcasting, what made the input; scripting, compiling and pickling go on working."""

import pickle
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from truestep.events import Event, LossComputed
from truestep.testing import capture_events

LAYER = nn.Linear(4, 3)
X, Y = torch.randn(8, 4), torch.arange(8) % 3


def losses(events: list[Event]) -> list[LossComputed]:
    return [event for event in events if isinstance(event, LossComputed)]


def test_functions_imported_early_and_modules_are_seen() -> None:
    with capture_events() as events:
        cross_entropy(LAYER(X), Y)
        nn.CrossEntropyLoss(reduction="sum")(LAYER(X), Y)
        F.nll_loss(LAYER(X).log_softmax(1), Y, reduction="none")
        mse_loss(LAYER(X), torch.zeros(8, 3))
        nn.L1Loss()(LAYER(X), torch.zeros(8, 3))
        F.smooth_l1_loss(LAYER(X), torch.zeros(8, 3))
        nn.HuberLoss()(LAYER(X), torch.zeros(8, 3))
        F.binary_cross_entropy(LAYER(X).sigmoid(), torch.zeros(8, 3))
    assert [event.kind for event in losses(events)] == [
        "cross_entropy", "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
        "binary_cross_entropy",
    ]  # fmt: skip
    assert [event.reduction for event in losses(events)[:3]] == ["mean", "sum", "none"]
    assert losses(events)[0].classes == 3


@pytest.mark.parametrize(
    ("make", "origin", "dim", "sums"),
    [
        (lambda x: x, "AddmmBackward0", None, False),
        (lambda x: x.softmax(1), "SoftmaxBackward0", -1, True),
        (lambda x: nn.Softmax(dim=-1)(x), "SoftmaxBackward0", -1, True),
        (lambda x: x.softmax(0), "SoftmaxBackward0", -2, False),
        (lambda x: x.log_softmax(1), "LogSoftmaxBackward0", None, False),
        (lambda x: x.softmax(1).detach(), "", None, True),
    ],
    ids=["logits", "softmax", "module", "other dim", "log", "detached"],
)
def test_what_made_the_input(make: object, origin: str, dim: int | None, sums: bool) -> None:
    with capture_events() as events:
        cross_entropy(make(LAYER(X)), Y)  # type: ignore[operator]
    (event,) = losses(events)
    assert (event.input_from, event.softmax_dim, event.sums_to_one) == (origin, dim, sums)


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(
    ("input", "target", "expected"),
    [
        ((8, 1), (8,), ((8, 1), (8,))),
        ((8,), (8, 1), ((8,), (8, 1))),
        ((8, 3), (8, 3), None),
        ((8, 3), (3,), None),
        ((8, 3), (1,), None),
        ((1, 1), (1,), None),
    ],
)
@pytest.mark.parametrize("function", [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss])
def test_broadcasting(function: object, input: tuple[int, ...], target: tuple[int, ...], expected: object) -> None:
    with capture_events() as events:
        function(torch.zeros(input), torch.zeros(target))  # type: ignore[operator]
    assert losses(events)[0].broadcast == expected


def test_expanded_inputs_of_one_shape_are_no_broadcast() -> None:
    with capture_events() as events:
        mse_loss(torch.zeros(8, 1).expand(8, 3), torch.zeros(3).expand(8, 3))
    assert losses(events)[0].broadcast is None


def test_scripting_and_pickling_go_on_working() -> None:
    class Holding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.function, self.loss = nn.Linear(4, 3), F.cross_entropy, nn.CrossEntropyLoss()

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return self.loss(self.layer(x), y)

    before = Holding()
    with capture_events(), warnings.catch_warnings(action="ignore"):
        scripted = torch.jit.script(nn.CrossEntropyLoss())
        inside = Holding()
        pickled = [pickle.dumps(nn.Sequential(nn.CrossEntropyLoss())), pickle.dumps((before.function, inside.function))]
        assert scripted(LAYER(X), Y).item() == cross_entropy(LAYER(X), Y).item()
    assert pickle.loads(pickled[1])[0] is F.cross_entropy
    assert scripted(LAYER(X), Y).item() == cross_entropy(LAYER(X), Y).item()


def test_a_loss_inside_a_backward_or_a_loader_is_not_told() -> None:
    class Data(torch.utils.data.Dataset[float]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> float:
            return mse_loss(torch.zeros(2), torch.ones(2)).item()

    with capture_events() as events:
        list(torch.utils.data.DataLoader(Data()))
        out = LAYER(X).sum()
        out.register_hook(lambda grad: grad * cross_entropy(LAYER(X), Y).item())
        out.backward()
    assert losses(events) == []
