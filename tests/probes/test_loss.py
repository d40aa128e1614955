"""Losses: shapes, broadcasting, the origin of the input; scripting, compiling and pickling work as before."""

import pickle
import warnings
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from truestep.events import Event, LossComputed
from truestep.testing import capture_events

LAYER = nn.Linear(4, 3)
X, Y = torch.randn(8, 4), torch.arange(8) % 3
WEIGHT, BIAS = nn.Parameter(torch.randn(3, 3)), nn.Parameter(torch.randn(3))


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
        nn.BCEWithLogitsLoss()(LAYER(X), torch.zeros(8, 3))
        F.kl_div(LAYER(X).log_softmax(1), torch.ones(8, 3) / 3, reduction="batchmean")
    assert [event.kind for event in losses(events)] == [
        "cross_entropy", "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
        "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div",
    ]  # fmt: skip
    assert [event.reduction for event in losses(events)[:3]] == ["mean", "sum", "none"]
    assert losses(events)[0].classes == 3
    assert losses(events)[-1].reduction == "batchmean"


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


@pytest.mark.parametrize(
    ("make", "origin"),
    [
        (lambda x: x.sigmoid(), "SigmoidBackward0"),
        (lambda x: x.sigmoid().squeeze(1).view(-1), "SigmoidBackward0"),
        (lambda x: x.sigmoid()[:5].clone().reshape(1, -1), "SigmoidBackward0"),
        (lambda x: x.sigmoid() * 2, "MulBackward0"),
        (lambda x: x, "AddmmBackward0"),
        (lambda x: x @ WEIGHT + BIAS, "MmBackward0"),
        (lambda x: torch.sparse.mm(torch.eye(8).to_sparse(), x) + BIAS, "MmBackward0"),
        (lambda x: (x[None] @ WEIGHT + BIAS)[0, 2:], "MmBackward0"),
        (lambda x: x @ WEIGHT + x, "AddBackward0"),
        (lambda x: x.log_softmax(1) + BIAS, "AddBackward0"),
        (lambda x: x.sigmoid().detach(), ""),
    ],
    ids=[
        "sigmoid",
        "squeezed",
        "selected",
        "scaled",
        "logits",
        "by hand",
        "sparse",
        "several",
        "sum",
        "shifted",
        "detached",
    ],
)
def test_what_made_the_values(make: object, origin: str) -> None:
    with capture_events() as events:
        input = make(LAYER(X))  # type: ignore[operator]
        F.binary_cross_entropy_with_logits(input, torch.zeros_like(input))
    assert losses(events)[0].made_by == origin


CUBE = torch.randn(5, 3, 4)


@pytest.mark.parametrize(
    ("make", "target", "over"),
    [
        (lambda x: x.log_softmax(1), Y, "classes"),
        (lambda x: x.log_softmax(0), Y, "batch"),
        (lambda x: x.t().log_softmax(0).t(), Y, "classes"),
        (lambda x: x[:3].log_softmax(0), Y[:3], "classes"),
        (lambda x: x, Y, ""),
        (lambda x: x.log_softmax(1)[:, :2], Y % 2, ""),
        (lambda x: x.log_softmax(0)[Y[0] == Y], Y[Y[0] == Y], "batch"),
        (lambda x: x.log_softmax(1)[Y[0] == Y], Y[Y[0] == Y], "classes"),
        (lambda x: x.log_softmax(0)[:4][:, :2], Y[:4] % 2, ""),
        (lambda x: LAYER(CUBE.transpose(1, 2)[:, :, [0, 1, 2, 0]]).log_softmax(-1).flatten(0, 1), 20, "classes"),
        (lambda x: LAYER(CUBE.transpose(1, 2)[:, :, [0, 1, 2, 0]]).log_softmax(0).flatten(0, 1), 20, "batch"),
        (lambda x: LAYER(CUBE).transpose(1, 2).log_softmax(1), (5, 3), "classes"),
    ],
    ids=[
        "classes",
        "batch",
        "transposed",
        "square",
        "logits",
        "sliced",
        "nodes",
        "nodes by classes",
        "sliced nodes",
        "flattened",
        "flattened batch",
        "positions",
    ],
)
def test_what_a_softmax_ran_over(make: object, target: object, over: str) -> None:
    with capture_events() as events:
        wanted = target if isinstance(target, torch.Tensor) else torch.zeros(target, dtype=torch.long)  # type: ignore[call-overload]
        F.nll_loss(make(LAYER(X)), wanted)  # type: ignore[operator]
    assert losses(events)[0].softmax_over == over


def test_a_softmax_over_one_number_is_emitted_for_every_loss() -> None:
    with capture_events() as events:
        F.binary_cross_entropy(nn.Linear(4, 1)(X).softmax(1).squeeze(1), torch.zeros(8))
        F.binary_cross_entropy(LAYER(X).softmax(0), torch.zeros(8, 3))
    assert [event.softmax_over for event in losses(events)] == ["one", "classes"]


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (lambda x: x * 10, "unbounded"),
        (lambda x: x.log_softmax(1), "log-probabilities"),
        (lambda x: x.softmax(1), "probabilities"),
        (lambda x: (x.softmax(1) + 1e-8).log(), "log-probabilities"),
    ],
    ids=["logits", "log_softmax", "softmax", "log"],
)
def test_the_values_of_the_first_inputs(make: object, values: str) -> None:
    with capture_events() as events:
        F.nll_loss(make(LAYER(X)), Y)  # type: ignore[operator]
        F.kl_div(make(LAYER(X)), torch.ones(8, 3) / 3, reduction="sum")  # type: ignore[operator]
    assert [event.values for event in losses(events)] == [values, values]


def test_the_classes_of_images_and_of_sequences_are_where_each_loss_has_them() -> None:
    maps = torch.randn(2, 4, 5, 3)
    with capture_events() as events:
        F.nll_loss(LAYER(maps.movedim(1, -1)).softmax(-1).movedim(-1, 1), torch.zeros(2, 5, 3, dtype=torch.long))
        F.kl_div(LAYER(maps.movedim(1, -1)).softmax(-1), torch.ones(2, 5, 3, 3) / 3, reduction="sum")
        F.kl_div(LAYER(maps.movedim(1, -1)).abs() * 10, torch.ones(2, 5, 3, 3) / 3, reduction="sum")
    assert [event.values for event in losses(events)] == ["probabilities", "probabilities", "unbounded"]


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


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("swapped", [True, False])
def test_a_target_that_had_broadcast_before(flat: bool, grad: bool, swapped: bool) -> None:
    critic = nn.Linear(4, 1)
    value = critic(X).squeeze(1) if grad else critic(X).detach().squeeze(1)
    target = torch.ones(8, 1) + 0.9 * value
    prediction = critic(X).squeeze(1) if flat else critic(X)
    with capture_events() as events:
        F.mse_loss(*((target, prediction) if swapped else (prediction, target)))
    shapes = (tuple(prediction.shape), (8, 8))
    assert losses(events)[0].broadcast == (shapes[::-1] if swapped else shapes)


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(
    ("input", "target"),
    [
        (nn.Linear(4, 8)(X).mean(1, keepdim=True), nn.Linear(4, 8)(X)),
        (nn.Linear(4, 8)(X).mean(0), nn.Linear(4, 8)(X)),
        (nn.Linear(4, 8)(X).mean(0, keepdim=True), torch.ones(8, 8)),
        (nn.Parameter(torch.zeros(8)), torch.ones(8, 8)),
        (nn.Linear(4, 8)(X), torch.ones(8)),
        (nn.Linear(4, 1)(X), X[:, :1] - nn.Linear(4, 8)(X)),
        (nn.Linear(4, 1)(X), nn.Linear(4, 1)(X) - nn.Linear(4, 1)(X).t()),
        (nn.Linear(4, 1)(X), nn.Linear(4, 1)(X)[:, 0].unsqueeze(1) - nn.Linear(4, 1)(X)[:, 0][None]),
    ],
    ids=["mean feature", "mean sample", "mean row", "a parameter", "a centre", "features", "transposed", "pairs"],
)
def test_square_features_and_pairs_had_not_broadcast(input: torch.Tensor, target: torch.Tensor) -> None:
    with capture_events() as events:
        F.mse_loss(input, target)
    assert losses(events)[0].broadcast is None


def test_expanded_inputs_of_one_shape_are_no_broadcast() -> None:
    with capture_events() as events:
        mse_loss(torch.zeros(8, 1).expand(8, 3), torch.zeros(3).expand(8, 3))
    assert losses(events)[0].broadcast is None


def test_expanded_inputs_of_a_function_below_those_of_torch_are_a_broadcast() -> None:
    with capture_events() as events:
        torch._C._nn.mse_loss(torch.zeros(8, 1).expand(8, 8), torch.zeros(1, 8).expand(8, 8))
    assert losses(events)[0].broadcast == ((8, 1), (1, 8))


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


@pytest.mark.parametrize("name", ["binary_cross_entropy_with_logits", "kl_div"])
def test_functions_taken_from_torch_while_watching_are_pickled_by_name(name: str) -> None:
    with capture_events():
        held = pickle.dumps(getattr(torch, name))
    assert pickle.loads(held) is getattr(torch, name)
    assert type(getattr(torch, name)) is type(torch.relu)


def test_losses_that_torch_itself_holds_are_scripted_and_compiled() -> None:
    target = torch.full((8, 3), 0.3)
    expected = F.binary_cross_entropy_with_logits(LAYER(X), target).item()
    with capture_events(), warnings.catch_warnings(action="ignore"):
        scripted = torch.jit.script(nn.BCEWithLogitsLoss())
        assert scripted(LAYER(X), target).item() == expected
        compiled = torch.compile(lambda x: F.kl_div(x.log_softmax(1), target), fullgraph=True, backend="eager")
        assert compiled(LAYER(X)).item() == F.kl_div(LAYER(X).log_softmax(1), target).item()
    assert scripted(LAYER(X), target).item() == expected


def test_a_loss_inside_a_backward_or_a_loader_is_not_emitted() -> None:
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


@pytest.mark.parametrize(
    ("activation", "targets", "beyond"),
    [
        (torch.relu, torch.tensor([-1.0, 1.0]), 50),
        (torch.relu, torch.tensor([0.0, 0.1, 3.0, 5.0, -0.01]), 0),
        (torch.sigmoid, torch.tensor([-1.0, 0.2, 0.9, 1.0]), 25),
        (torch.sigmoid, torch.tensor([0.0, 1.2, 0.7, 1.0]), 0),
        (torch.tanh, torch.tensor([-1.0, 1.0, 255.0, 128.0]), 50),
        (torch.abs, torch.tensor([-1.0, -2.0]), None),
    ],
)
def test_targets_beyond_an_activation_are_counted(
    activation: Callable[[torch.Tensor], torch.Tensor], targets: torch.Tensor, beyond: int | None
) -> None:
    output = torch.zeros(len(targets), requires_grad=True)
    with capture_events() as events:
        F.mse_loss(activation(output), targets)
    assert [event.beyond for event in losses(events)] == [beyond]


@pytest.mark.parametrize(("rows", "beyond"), [(40, 50), (20, 12)], ids=["of one column", "of few rows"])
def test_targets_beyond_an_activation_in_one_column_are_counted(rows: int, beyond: int) -> None:
    output = torch.zeros(rows, 4, requires_grad=True)
    targets = torch.full((rows, 4), 0.5)
    targets[::2, 2] = -0.5
    with capture_events() as events:
        F.mse_loss(output.sigmoid(), targets)
    assert [event.beyond for event in losses(events)] == [beyond]


def test_targets_are_looked_at_once_in_a_step_and_in_a_few_steps_only() -> None:
    output = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.SGD([output], 0.1)
    with capture_events() as events:
        for _ in range(5):
            for _ in range(2):
                F.mse_loss(output.relu(), -torch.ones(2)).backward()
            optimizer.step()
    assert [event.beyond for event in losses(events)] == [100, None, 100, None, 100, None, None, None, None, None]


SCORES = torch.randn(16, 9, 4, requires_grad=True)


@pytest.mark.parametrize(
    ("make", "viewed"),
    [
        (lambda scores: scores.view(16, 4, 9), ((16, 9, 4), (16, 4, 9))),
        (lambda scores: (scores * 2).reshape(len(scores), 4, -1), ((16, 9, 4), (16, 4, 9))),
        (lambda scores: scores.transpose(1, 2), None),
        (lambda scores: scores.permute(0, 2, 1).contiguous(), None),
        (lambda scores: scores.flatten(1).view(16, 9, 4).view(16, 4, 9), None),
    ],
)
def test_a_view_that_a_transpose_was_intended_for_is_named(make: object, viewed: object) -> None:
    with capture_events() as events:
        nn.functional.cross_entropy(make(SCORES * 1), torch.zeros(16, 9, dtype=torch.long))  # type: ignore[operator]
    assert [event.viewed for event in losses(events)] == [viewed]


@pytest.mark.parametrize("right", [True, False])
def test_flattened_maps_of_classes_are_named(right: bool) -> None:
    maps = torch.randn(2, 5, 3, 4, requires_grad=True) * 1
    rows = maps.permute(0, 2, 3, 1).reshape(-1, 5) if right else maps.reshape(-1, 5)
    with capture_events() as events:
        nn.functional.cross_entropy(rows, torch.zeros(24, dtype=torch.long))
    assert [event.viewed for event in losses(events)] == [None if right else ((2, 5, 3, 4), (24, 5))]


@pytest.mark.parametrize("right", [True, False])
def test_flattened_maps_of_which_some_positions_are_chosen_are_named(right: bool) -> None:
    maps, chosen = torch.randn(2, 5, 3, 4, requires_grad=True) * 1, torch.arange(24) % 3 > 0
    rows = maps.permute(0, 2, 3, 1).reshape(-1, 5) if right else maps.reshape(-1, 5)
    with capture_events() as events:
        nn.functional.cross_entropy(rows[chosen], torch.zeros(16, dtype=torch.long))
    assert [event.viewed for event in losses(events)] == [None if right else ((2, 5, 3, 4), (24, 5))]
