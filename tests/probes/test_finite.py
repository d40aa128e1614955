"""Where values are that are not finite, told at the loss that is not."""

import math

import pytest
import torch
from torch import nn

from truestep.events import GradientsRepaired, LossNotFinite
from truestep.testing import capture_events


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))


def train(net: nn.Module, optimizer: torch.optim.Optimizer, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    for batch in batches:
        x, y = batch
        optimizer.zero_grad()
        out = net(x)
        loss = (out - y).pow(2).mean()
        loss.backward()
        optimizer.step()


def first(net: nn.Module, optimizer: torch.optim.Optimizer, batches: list[tuple[torch.Tensor, torch.Tensor]]):
    with capture_events() as events:
        train(net, optimizer, batches)
    return next(event for event in events if isinstance(event, LossNotFinite))


def batches(count: int = 2) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [(torch.randn(8, 3, generator=generator), torch.zeros(8, 1)) for _ in range(count)]


def test_the_batch_that_holds_it_is_named_with_its_rows() -> None:
    data, net = batches(3), model()
    data[2][0][5, 1] = math.nan
    event = first(net, torch.optim.Adam(net.parameters()), data)
    assert (event.variable, event.variable_holds, event.variable_tracked) == ("batch[0]", "nan in 1 of 8 rows", False)
    assert event.parameters_finite
    assert event.before is not None


def test_targets_are_emitted_after_the_data_that_is_finite() -> None:
    data, net = batches(1), model()
    data[0][1][2:4] = math.inf
    event = first(net, torch.optim.SGD(net.parameters(), 0.1), data)
    assert (event.variable, event.variable_holds) == ("batch[1]", "inf in 2 of 8 rows")
    assert event.variables_finite == ("batch[0]",)
    assert event.variable_site is not None
    assert event.variable_site.function == "train"


def test_an_output_that_overflowed_is_the_first() -> None:
    net = model()
    with torch.no_grad():
        net[2].bias.fill_(3e38)  # type: ignore[union-attr]
    event = first(net, torch.optim.SGD(net.parameters(), 0.1), batches(1))
    assert (event.variable, event.variable_tracked) == ("loss", True)
    assert event.variables_finite == ("batch[1]", "x", "y", "out")


def train_with_mask(net: nn.Module) -> None:
    mask = torch.full((4, 4), -math.inf).triu(1)
    weights = mask.softmax(1)
    for x, _ in batches(1):
        loss = (net(x).sum() * (mask.exp() * weights).sum()) / torch.zeros(())
        loss.backward()


def test_masks_of_minus_infinity_are_not_named() -> None:
    net = model()
    with capture_events() as events:
        train_with_mask(net)
    (event,) = [event for event in events if isinstance(event, LossNotFinite)]
    assert event.variable == "loss"
    assert event.variables_finite[-1] == "weights"
    assert "mask" not in event.variables_finite


class Distance(nn.Module):
    """The gradient of its square root is not finite where both inputs are equal."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.last = nn.Linear(1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first(x)
        return self.last((h - self.first(x)).pow(2).sum(1, keepdim=True).sqrt())


@pytest.mark.parametrize(
    ("build", "moment"),
    [
        (lambda p: torch.optim.Adam(p), "exp_avg"),
        (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), "momentum_buffer"),
        (lambda p: torch.optim.SGD(p, 0.1), ""),
    ],
)
def test_a_gradient_that_was_not_finite_is_placed_between_two_parameters(build, moment) -> None:
    torch.manual_seed(0)
    net = Distance()
    event = first(net, build(net.parameters()), batches(3))
    assert (event.first_parameter, event.bad_parameters) == ("net.first.weight", 2)
    assert event.nearest.startswith("net.first.")
    assert event.finite_nearer == 2
    assert (event.moment, event.moment_finite) == (moment, not moment)


def test_moments_stay_finite_where_the_update_itself_overflowed() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)).half()
    data = [(x.half(), y.half()) for x, y in batches(4)]
    event = first(net, torch.optim.Adam(net.parameters(), 1e-3), data)
    assert (event.moment, event.moment_finite) == ("exp_avg", True)


def test_a_loop_of_a_library_shows_no_variables() -> None:
    net = model()
    code = compile(
        "def fit(loss):\n    x = loss * 1\n    x.backward()\n", torch.__path__[0] + "/../library/fit.py", "exec"
    )
    names: dict[str, object] = {}
    exec(code, names)
    with capture_events() as events:
        names["fit"](net(torch.full((2, 3), math.nan)).sum())  # type: ignore[operator]
    (event,) = [event for event in events if isinstance(event, LossNotFinite)]
    assert event.variable == ""


def test_nothing_is_kept_of_the_variables() -> None:
    import gc
    import weakref

    data, net = batches(1), model()
    data[0][0][0, 0] = math.nan
    watched = weakref.ref(data[0][0])
    with capture_events():
        train(net, torch.optim.SGD(net.parameters(), 0.1), data)
        data.clear()
        gc.collect()
        assert watched() is None


@pytest.mark.parametrize(("change", "repaired"), [("replace", True), ("remove", False), ("leave", False)])
def test_gradients_are_repaired_if_all_that_are_left_are_finite(change: str, repaired: bool) -> None:
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with capture_events() as events:
        (net(torch.ones(8, 3)).mean() * math.nan).backward()
        for parameter in net.parameters():
            if change == "replace":
                parameter.grad = torch.zeros_like(parameter)
            elif change == "remove":
                parameter.grad = None
        optimizer.step()
    assert any(isinstance(event, GradientsRepaired) for event in events) is repaired
