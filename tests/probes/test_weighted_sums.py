"""The dimension of softmaxes whose use shows it, from the tape of a loss."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from truestep.events import SoftmaxRead
from truestep.testing import capture_events

Tensor = torch.Tensor
Attention = Callable[[Tensor, Tensor, Tensor], Tensor]
ROWS, PLACES, WIDTH, CLASSES = 6, 5, 8, 4


def heads(x: Tensor) -> Tensor:
    return x.view(ROWS, PLACES, 2, 4).transpose(1, 2)


def joined(x: Tensor) -> Tensor:
    return x.transpose(1, 2).reshape(ROWS, PLACES, WIDTH)


def attention(mix: Attention) -> list[SoftmaxRead]:
    """Return the events of two steps with attention."""
    torch.manual_seed(0)
    inner, all_three = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, 3 * WIDTH)
    optimizer = torch.optim.SGD([*inner.parameters(), *all_three.parameters()], lr=0.01)
    x, y = torch.randn(ROWS, PLACES, WIDTH), torch.randn(ROWS, WIDTH)
    with capture_events() as events:
        for _ in range(2):
            q, k, v = all_three(torch.tanh(inner(x))).chunk(3, -1)
            optimizer.zero_grad()
            F.mse_loss(mix(q, k, v).mean(1), y).backward()
            optimizer.step()
    return [event for event in events if isinstance(event, SoftmaxRead)]


def right(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.dropout((q @ k.transpose(1, 2)).softmax(-1), 0.1) @ v


def keys_first(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (k @ q.transpose(1, 2)).softmax(1).transpose(1, 2) @ v


def of_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.einsum("bhid,bhjd->bhij", heads(q), heads(k)).masked_fill(torch.ones(PLACES, PLACES).triu(1) > 0, -9)
    return joined(torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), heads(v)))


def over_queries(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.dropout((q @ k.transpose(1, 2)).softmax(1), 0.1) @ v


def weights_turned(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (v.transpose(1, 2) @ (q @ k.transpose(1, 2)).softmax(-1)).transpose(1, 2)


def over_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return joined((heads(q) @ heads(k).transpose(2, 3) / 2).softmax(1) @ heads(v))


def over_samples(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.transpose(1, 2)).softmax(0) @ v


def over_samples_of_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return joined((heads(q) @ heads(k).transpose(2, 3) / 2).softmax(0) @ heads(v))


@pytest.mark.parametrize(
    ("mix", "over"),
    [
        (right, "keys"), (keys_first, "keys"), (of_heads, "keys"), (over_queries, "queries"),
        (weights_turned, "queries"), (over_heads, "heads"),
        (over_samples, "samples"), (over_samples_of_heads, "samples"),
    ],
)  # fmt: skip
def test_the_dimension_of_attention_is_read(mix: Attention, over: str) -> None:
    found = attention(mix)
    assert [event.over for event in found] == [over] * len(found)
    assert len(found) == 2
    assert {event.use for event in found} == {"attention"}
    assert bool(found[0].files) is (over != "keys")


def competing(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = (q @ k.transpose(1, 2)).softmax(1)
    return (weights / weights.sum(-1, keepdim=True)) @ v


def in_both_directions(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(1, 2)
    return scores.softmax(2) @ scores.softmax(1).transpose(1, 2) @ v


def and_back(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    order = (q @ k.transpose(1, 2)).softmax(-1)
    return order.transpose(1, 2) @ (order @ v)


def clusters(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return k[..., :PLACES].softmax(-1).transpose(1, 2) @ v


def products(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(1, 2)
    return (scores.softmax(1) * scores.softmax(2)) @ v


@pytest.mark.parametrize("mix", [competing, and_back, clusters, products])
def test_other_uses_are_not_judged(mix: Attention) -> None:
    assert attention(mix) == []


def test_weights_times_weights_are_not_judged() -> None:
    assert {event.over for event in attention(in_both_directions)} <= {"keys"}


def picked(loss_of: Callable[[Tensor, Tensor], Tensor]) -> list[str]:
    torch.manual_seed(0)
    layer = torch.nn.Linear(WIDTH, CLASSES)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    x, y = torch.randn(ROWS, WIDTH), torch.arange(ROWS) % CLASSES
    with capture_events() as events:
        for _ in range(2):
            optimizer.zero_grad()
            loss_of(layer(x), y).mean().backward()
            optimizer.step()
    return [event.over for event in events if isinstance(event, SoftmaxRead)]


@pytest.mark.parametrize(
    ("loss_of", "over"),
    [
        (lambda z, y: -z.log_softmax(1).gather(1, y[:, None]), "classes"),
        (lambda z, y: -z.log_softmax(0).gather(1, y[:, None]), "samples"),
        (lambda z, y: -z.softmax(0)[torch.arange(ROWS), y], "samples"),
        (lambda z, y: -z.log_softmax(-2)[torch.arange(ROWS), y], "samples"),
    ],
)
def test_labels_pick_from_a_softmax(loss_of: Callable[[Tensor, Tensor], Tensor], over: str) -> None:
    assert picked(loss_of) == [over] * 2


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda z, y: -(z @ z.t()).log_softmax(0)[torch.arange(ROWS), torch.arange(ROWS).roll(1)],
        lambda z, y: -z.log_softmax(0)[z.argmax(0), torch.arange(CLASSES)],
        lambda z, y: -z.log_softmax(0).gather(0, y[None, :CLASSES]),
        lambda z, y: -z.log_softmax(0).sum(1),
    ],
)
def test_other_choices_are_not_judged(loss_of: Callable[[Tensor, Tensor], Tensor]) -> None:
    assert picked(loss_of) == []
