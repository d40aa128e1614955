"""Reading the tape disturbs nothing: no saved tensor is touched, nothing is kept."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from truestep.events import BroadcastOnTape, Event, LossComputed, TapeRead
from truestep.testing import capture_events

X = torch.randn(16, 4)


def reads(events: list[Event]) -> list[TapeRead]:
    return [event for event in events if isinstance(event, TapeRead)]


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpointed_block_runs_as_often_as_without_us(reentrant: bool) -> None:
    def run() -> tuple[object, ...]:
        torch.manual_seed(0)
        ran = 0

        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                nonlocal ran
                ran += 1
                return nn.functional.dropout(torch.relu(self.norm(self.layer(x))), 0.3)

        block, head = Block(), nn.Linear(4, 3)
        optimizer = torch.optim.SGD([*block.parameters(), *head.parameters()], 0.1)
        for _ in range(12):
            optimizer.zero_grad()
            out = head(checkpoint(block, X.clone().requires_grad_(), use_reentrant=reentrant))
            nn.functional.cross_entropy(out, torch.arange(16) % 3).backward()
            optimizer.step()
        return ran, int(block.norm.num_batches_tracked), block.norm.running_mean.tolist(), block.layer.weight.tolist()

    plain = run()
    with capture_events() as events:
        assert run() == plain
    assert plain[:2] == (24, 24)
    assert reads(events)


def test_one_shot_hooks_of_saved_tensors_are_unharmed() -> None:
    store: dict[int, torch.Tensor] = {}
    unpacked = 0

    def pack(tensor: torch.Tensor) -> int:
        store[len(store)] = tensor
        return len(store) - 1

    def unpack(key: int) -> torch.Tensor:
        nonlocal unpacked
        unpacked += 1
        value = store[key]
        store[key] = None  # type: ignore[assignment]
        assert value is not None
        return value

    layer = nn.Linear(4, 3)
    with capture_events() as events:
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            loss = nn.functional.cross_entropy(layer(X).softmax(1), torch.arange(16) % 3)
        loss.backward()
    assert unpacked == len(store)
    assert reads(events)


def test_reached_parameters_and_their_depth() -> None:
    used, unused = nn.Linear(4, 4), nn.Linear(4, 4)
    with capture_events() as events:
        torch.optim.SGD([*used.parameters(), *unused.parameters()], 0.1)
        used(X).relu().sum().backward()
    (read,) = reads(events)
    assert read.reached == (1, 2)
    assert len(read.depths) == 2
    assert not read.opaque
    assert not read.leaf_root


def test_parameters_are_reached_through_compiled_nodes() -> None:
    torch._dynamo.reset()
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    compiled = torch.compile(model, backend="aot_eager")
    with capture_events() as events:
        torch.optim.SGD(model.parameters(), 0.1)
        compiled(X).sum().backward()
    (read,) = reads(events)
    assert read.reached == (1, 2, 3, 4)
    assert read.opaque


def test_a_function_of_the_users_own_and_a_double_backward() -> None:
    backwards = 0

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: torch.autograd.function.FunctionCtx, grad: torch.Tensor) -> torch.Tensor:
            nonlocal backwards
            backwards += 1
            (x,) = ctx.saved_tensors  # type: ignore[attr-defined]
            return 3 * x**2 * grad

    weight = nn.Parameter(torch.tensor([1.0, 2.0]))
    with capture_events() as events:
        torch.optim.SGD([weight], 0.1)
        (slope,) = torch.autograd.grad(Cube.apply(weight).sum(), weight, create_graph=True)
        slope.sum().backward()
    assert backwards == 1
    assert weight.grad is not None
    assert weight.grad.tolist() == [6.0, 12.0]
    assert reads(events)[-1].reached == (1,)


def test_sparse_and_several_roots() -> None:
    embed = nn.Embedding(10, 3, sparse=True)
    with capture_events() as events:
        torch.optim.SparseAdam(embed.parameters())
        out = embed(torch.tensor([1, 2]))
        torch.autograd.backward([out.sum(), out.pow(2).sum()])
        torch.zeros(1, requires_grad=True).backward()
    first, second = reads(events)
    assert first.reached == (1,)
    assert second.leaf_root


def test_a_graph_that_is_freed_already_raises_what_it_always_raised() -> None:
    with capture_events():
        loss = nn.Linear(4, 1)(X).exp().sum()
        loss.backward()
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()


@pytest.mark.parametrize("wrong", [True, False])
def test_a_broadcast_before_a_loss_by_hand(wrong: bool) -> None:
    layer = nn.Linear(4, 1)
    target = torch.zeros(16) if wrong else torch.zeros(16, 1)
    with capture_events() as events:
        (layer(X) - target).pow(2).mean().backward()
    found = [(event.shape, event.wide) for event in events if isinstance(event, BroadcastOnTape)]
    assert found == ([((16, 1), (16, 16))] if wrong else [])


def test_a_broadcast_in_a_term_of_a_sum() -> None:
    actor, critic = nn.Linear(4, 3), nn.Linear(4, 1)
    returns = torch.zeros(16)
    with capture_events() as events:
        policy = -actor(X).log_softmax(1)[:, 0].mean()
        value = 0.5 * (critic(X) - returns).pow(2).mean()
        (policy - 0.01 * actor(X).mean() + value * 0.5).backward()
    assert [event.wide for event in events if isinstance(event, BroadcastOnTape)] == [(16, 16)]


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("reward", [(4,), (4, 1)], ids=["flat rewards", "columns"])
@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_targets_that_broadcast_in_a_rollout(reward: tuple[int, ...], joined: bool, named: bool) -> None:
    model = nn.Linear(4, 1)
    with capture_events() as events:
        values = [model(torch.randn(4, 4)) for _ in range(6)]
        returns = torch.cat([torch.ones(reward) + 0.9 * value for value in values]).detach()
        batch = torch.cat(values) if joined else model(torch.randn(24, 4))
        loss = nn.functional.mse_loss(batch, returns) if named else (returns - batch).pow(2).mean()
        loss.backward()
    wide = [event.wide for event in events if isinstance(event, BroadcastOnTape)]
    pairs = [event.broadcast for event in events if isinstance(event, LossComputed) and event.broadcast]
    assert bool(wide or pairs) == (reward == (4,))


def test_columns_of_targets_that_no_call_had_as_rows() -> None:
    model, other = nn.Linear(4, 1), nn.Linear(4, 1)
    levels = torch.linspace(0, 1, 5)
    with capture_events() as events:
        model(torch.randn(8, 4)), other(torch.randn(5, 4))
        value = model(X)
        quantiles = (value - levels).abs().mean()
        ensemble = (torch.randn(16, 3) - value).pow(2).mean()
        centred = (torch.randn(16, 8) * (value - value.mean())).mean()
        (quantiles + ensemble + centred).backward()
    assert not [event for event in events if isinstance(event, BroadcastOnTape)]


def test_batches_of_many_sizes_tell_nothing_about_columns() -> None:
    model = nn.Linear(4, 1)
    with capture_events() as events:
        for rows in range(2, 16):
            model(torch.randn(rows, 4))
        (model(X) - torch.randn(8)).relu().mean().backward()
    assert not [event for event in events if isinstance(event, BroadcastOnTape)]


LOSSES = {
    "huber": lambda d: torch.where(d.abs() < 1, 0.5 * d**2, d.abs() - 0.5).mean(),
    "log-cosh": lambda d: (d + nn.functional.softplus(-2 * d) - 0.69).mean(),
    "log of cosh": lambda d: torch.log(torch.cosh(d)).mean(),
    "charbonnier": lambda d: torch.sqrt(d**2 + 1e-6).mean(),
    "root": lambda d: d.pow(2).mean().sqrt(),
    "norm": torch.norm,
    "pinball": lambda d: torch.max(0.3 * d, -0.7 * d).mean(),
    "clamped": lambda d: d.abs().clamp(max=3).mean(),
    "gaussian": lambda d: (0.5 * d**2 / 0.3 + 0.1).mean(),
    "cauchy": lambda d: torch.log1p(d**2).mean(),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("wrong", [True, False])
def test_a_broadcast_below_operations_on_each_difference(loss: Callable[[torch.Tensor], torch.Tensor], wrong: bool):
    layer = nn.Linear(4, 1)
    target = torch.zeros(16) if wrong else torch.zeros(16, 1)
    with capture_events() as events:
        loss(layer(X) - target).backward()
    assert [event.wide for event in events if isinstance(event, BroadcastOnTape)] == [(16, 16)] * wrong


def test_kernels_and_energies_of_pairs_are_no_broadcast() -> None:
    made = nn.Linear(4, 1)
    real = torch.randn(16)
    with capture_events() as events:
        fake = made(X)
        energy = (fake - real).abs().mean() - 0.5 * (fake - fake.t()).abs().mean()
        kernel = torch.exp(-((fake - real) ** 2)).mean()
        (energy - kernel).backward()
    assert not [event for event in events if isinstance(event, BroadcastOnTape)]


def test_differences_of_pairs_on_purpose_are_no_broadcast() -> None:
    layer = nn.Linear(4, 1)
    margin = torch.zeros(16)
    with capture_events() as events:
        scores = layer(X)
        ranking = (scores - scores.t() - 1).abs().mean()
        rows = (scores.squeeze(1).unsqueeze(1) - margin).abs().mean()
        (ranking + rows + scores.pow(2).mean()).backward()
    assert not [event for event in events if isinstance(event, BroadcastOnTape)]


@pytest.mark.parametrize("wrong", [True, False])
def test_masks_that_are_spread_over_the_samples(wrong: bool) -> None:
    model = nn.Conv2d(1, 1, 3, padding=1)
    masks = (torch.rand(6, 1, 8, 8) > 0.5).float()
    with capture_events() as events:
        shares = torch.sigmoid(model(torch.randn(6, 1, 8, 8)))
        (1 - (shares * (masks[:, 0] if wrong else masks)).sum((1, 2, 3)).mean()).backward()
    found = [(event.shape, event.wide) for event in events if isinstance(event, BroadcastOnTape)]
    assert found == ([((6, 1, 8, 8), (6, 6, 8, 8))] if wrong else [])
