"""Labels and targets of losses: those that are their input, and those that are counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import LabelsCounted, TargetsMatched
from truestep.testing import capture_events


def seen(kind: type[Any], loss: Callable[[Tensor], Tensor], out: int = 3, steps: int = 3) -> list[Any]:
    torch.manual_seed(0)
    net = nn.Linear(4, out)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(steps):
            optimizer.zero_grad()
            loss(net(torch.randn(16, 4))).backward()
            optimizer.step()
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize(
    ("loss", "how"),
    [
        (lambda out: F.cross_entropy(out, out.argmax(1)), "argmax"),
        (lambda out: F.nll_loss(out.log_softmax(1), out.argmax(1)), "argmax"),
        (lambda out: F.mse_loss(out, out.detach()), "detach"),
        (lambda out: F.l1_loss(out, out.detach().round()), "round"),
        (lambda out: F.binary_cross_entropy_with_logits(out, (out > 0).float()), "threshold"),
        (lambda out: F.binary_cross_entropy(out.sigmoid(), (out > 0).float()), "threshold"),
        (lambda out: F.cross_entropy(out, out.detach().softmax(1)), "softmax"),
        (lambda out: F.kl_div(out.log_softmax(1), out.detach().softmax(1), reduction="batchmean"), "softmax"),
    ],
)
def test_own_targets_are_told_at_each_sampled_step(loss: Callable[[Tensor], Tensor], how: str) -> None:
    events = seen(TargetsMatched, loss)
    assert [event.how for event in events] == [how] * 3
    assert all(event.varied for event in events)


def test_labels_of_the_data_that_are_right_from_the_first_step_are_not_told() -> None:
    net = nn.Linear(2, 2)
    net.load_state_dict({"weight": torch.eye(2), "bias": torch.zeros(2)})
    labels = torch.arange(16) % 2
    x = F.one_hot(labels).float()
    made = torch.arange(16) % 2
    with capture_events() as events:
        for part in torch.arange(16).split(16):
            F.cross_entropy(net(x[part]), labels[part]).backward()
        for inputs, wanted in zip(x.split(16), labels.split(16), strict=True):
            inputs, wanted = inputs.float(), wanted.long()
            F.cross_entropy(net(inputs), wanted).backward()
        for part in torch.arange(16).split(16):
            out = net(x[part])
            made = out.argmax(1)
            F.cross_entropy(out, made).backward()
    assert [event.how for event in events if isinstance(event, TargetsMatched)] == ["", "", "argmax"]


def test_places_of_pairs_in_a_matrix_of_scores_are_other_targets() -> None:
    (event,) = seen(TargetsMatched, lambda out: F.cross_entropy(9 * torch.eye(16) + 0 * out.sum(), torch.arange(16)))
    assert event.how == ""


def test_other_targets_are_told_once() -> None:
    events = seen(TargetsMatched, lambda out: F.cross_entropy(out, torch.randint(3, (16,))))
    assert [event.how for event in events] == [""]


def test_equal_labels_have_the_layer_of_their_classes() -> None:
    events = seen(LabelsCounted, lambda out: F.cross_entropy(out, torch.full((16,), 2)), steps=6)
    assert [(event.only, event.rows) for event in events] == [(2.0, 16)] * 6
    assert None not in {event.weight for event in events}


def test_differences_of_scores_have_no_layer_of_classes() -> None:
    events = seen(
        LabelsCounted, lambda out: F.binary_cross_entropy_with_logits(out[:, :1] - out[:, 1:2], torch.ones(16, 1))
    )
    assert {(event.only, event.weight) for event in events} == {(1.0, None)}


def test_labels_that_differ_are_read_once() -> None:
    events = seen(LabelsCounted, lambda out: F.cross_entropy(out, torch.arange(16) % 3))
    assert [event.only for event in events] == [None]


def test_ignored_labels_do_not_count() -> None:
    label = torch.where(torch.arange(16) % 2 == 0, 1, -100)
    events = seen(LabelsCounted, lambda out: F.cross_entropy(out, label))
    assert {(event.only, event.labels) for event in events} == {(1.0, 8)}


def test_labels_of_weighted_losses_are_counted_by_class() -> None:
    label, weight = torch.arange(16) % 3, torch.tensor([3.0, 2.0, 1.0])
    events = seen(LabelsCounted, lambda out: F.cross_entropy(out, label, weight=weight))
    assert [(event.counts, event.weights) for event in events] == [((6, 5, 5), (3.0, 2.0, 1.0))] * 3


def test_positive_labels_are_counted_by_column() -> None:
    label = torch.zeros(16, 3)
    label[:4, 0] = label[:2, 1] = label[:1, 2] = 1
    factor = torch.tensor([3.0, 7.0, 15.0])
    events = seen(LabelsCounted, lambda out: F.binary_cross_entropy_with_logits(out, label, pos_weight=factor))
    assert {(event.counts, event.weights) for event in events} == {((4, 2, 1), (3.0, 7.0, 15.0))}
