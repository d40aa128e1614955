"""Padding of a batch is left out on a copy of the model: do the results of the samples change?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from truestep.events import InputsCompared, PaddingCompared
from truestep.supervision import Session

LENGTHS = torch.tensor([12, 9, 7, 5, 4, 11, 8, 6])


class Network(nn.Module):
    def __init__(self, use: Callable[[Any, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.use, self.embed = use, nn.Embedding(9, 6)
        self.lstm, self.head = nn.LSTM(6, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        return self.head(self.use(self, self.embed(tokens) if tokens.dim() == 2 else tokens, lengths))  # type: ignore[no-any-return]


def compared(
    use: Callable[[Any, Tensor, Tensor], Tensor],
    batch: Tensor,
    labels: Tensor | None = None,
    kind: Any = PaddingCompared,
    lengths: Tensor = LENGTHS,
) -> list[Any]:
    """Train a model on a padded batch, and return the comparisons."""
    torch.manual_seed(0)
    events: list[Any] = []
    model, labels = Network(use), torch.arange(8) % 3 if labels is None else labels
    with Session(also=events.append) as session:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(6):
            output = model(batch, lengths)
            nn.functional.cross_entropy(output.flatten(0, -2), labels.flatten()).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert session.stop().internal_errors == ()
    return [event for event in events if isinstance(event, kind)]


def tokens(padding: int = 0) -> Tensor:
    draw = torch.Generator().manual_seed(0)
    rows = [torch.randint(1, 9, (int(n),), generator=draw) for n in LENGTHS]
    return pad_sequence(rows, batch_first=True, padding_value=padding)


def packed(model: Any, x: Tensor, lengths: Tensor) -> Tensor:
    _, (last, _) = model.lstm(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    return last[0]  # type: ignore[no-any-return]


KERNEL = torch.randn(6, 6, 3, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("use", "pooled"),
    [
        (lambda model, x, lengths: nn.functional.conv1d(x.transpose(1, 2), KERNEL).amax(2), True),
        (lambda model, x, lengths: nn.functional.conv1d(x.transpose(1, 2), KERNEL).mean(2), False),
        (lambda model, x, lengths: nn.functional.conv1d(x.transpose(1, 2), KERNEL).max(2)[0] + x.mean(1), False),
        (lambda model, x, lengths: model.lstm(x)[1][0][0], False),
    ],
)
def test_the_largest_values_of_convolutions_are_known(use: Any, pooled: bool) -> None:
    event = compared(use, tokens())[-1]
    assert event.changes
    assert event.pooled is pooled


def test_a_mean_over_padding_changes() -> None:
    event = compared(lambda model, x, lengths: x.mean(1), tokens())[-1]
    assert event.changes
    assert (event.argument, event.length, event.trimmed, event.samples) == ("tokens", 12, 7, 2)


def test_the_last_state_after_padding_changes() -> None:
    assert compared(lambda model, x, lengths: model.lstm(x)[0][:, -1], tokens())[-1].changes


def test_series_of_vectors_with_zeros_change() -> None:
    series = tokens()[..., None] * torch.rand(6)
    assert compared(lambda model, x, lengths: x.mean(1), series)[-1].changes


def test_lengths_that_count_the_padding_change() -> None:
    lengths = torch.full((8,), 12)
    assert compared(packed, tokens(), lengths=lengths)[-1].changes
    assert compared(lambda model, x, of: model.lstm(x)[0][torch.arange(len(x)), of - 1], tokens(), lengths=lengths)[
        -1
    ].changes


def test_outputs_at_each_position_are_not_compared() -> None:
    labels = torch.arange(96).reshape(8, 12) % 3
    assert compared(lambda model, x, lengths: model.lstm(x.flip(1))[0].flip(1), tokens(), labels) == []


@pytest.mark.parametrize(
    "use",
    [
        packed,
        lambda model, x, lengths: model.lstm(x)[0][torch.arange(len(x)), lengths - 1],
        lambda model, x, lengths: (x * (torch.arange(x.shape[1]) < lengths[:, None])[..., None]).sum(1),
    ],
    ids=["packed", "last real state", "masked"],
)
def test_padding_that_is_left_out_changes_nothing(use: Callable[[Any, Tensor, Tensor], Tensor]) -> None:
    event = compared(use, tokens())[-1]
    assert not event.changes
    assert event.share < 1e-3


def test_results_that_are_random_are_not_compared() -> None:
    assert compared(lambda model, x, lengths: packed(model, x + torch.rand_like(x), lengths), tokens()) == []


@pytest.mark.parametrize(
    "batch",
    [torch.randint(1, 9, (8, 12)), tokens().index_fill(1, torch.tensor([11]), 0), torch.ones(8, 12, dtype=torch.long)],
    ids=["no padding", "a fixed length", "one token"],
)
def test_batches_without_padding_to_the_longest_are_not_compared(batch: Tensor) -> None:
    assert compared(lambda model, x, lengths: x.mean(1), batch) == []


def states_of(network: Any, x: Tensor, lengths: Tensor) -> Tensor:
    """Return the states of packed sequences, padded again."""
    states, _ = network.lstm(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    return pad_packed_sequence(states, batch_first=True)[0]


def blank(use: Callable[[Any, Tensor, Tensor], Tensor]) -> set[int]:
    found = compared(use, tokens(), kind=InputsCompared)
    assert found
    assert all((one.read_at is not None) == bool(one.blank) for one in found)
    return {one.blank for one in found}


def test_the_last_position_of_packed_sequences_is_empty_for_all_but_the_longest() -> None:
    assert blank(lambda net, x, lengths: states_of(net, x, lengths)[:, -1]) == {7}
    assert blank(lambda net, x, lengths: states_of(net, x, lengths).transpose(0, 1)[-1]) == {7}
    masked = torch.arange(12) < LENGTHS[:, None]
    assert blank(lambda net, x, lengths: (net.lstm(x)[0] * masked.unsqueeze(2)).select(1, -1)) == {7}


def test_positions_with_values_or_beside_others_are_no_empty_ends() -> None:
    rows = torch.arange(8)
    assert blank(lambda net, x, lengths: states_of(net, x, lengths)[rows, lengths - 1]) == {0}
    assert blank(lambda net, x, lengths: states_of(net, x, lengths)[:, -1] + x.mean(1)) == {0}
    assert blank(lambda net, x, lengths: states_of(net, x, lengths)[:, 3]) == {0}
    assert blank(lambda net, x, lengths: states_of(net, x, lengths)[:, -1] * 0) == {0}


@pytest.mark.parametrize(
    ("uses", "index", "told"),
    [
        (lambda state, full: state, 0, True),
        (lambda state, full: state * 0, 0, False),
        (lambda state, full: torch.where(full[:, None], state, 0.0), 0, False),
        (lambda state, full: state, None, False),
    ],
    ids=["used by the loss", "dropped", "of full samples", "zeros that may be values"],
)
def test_a_state_that_padding_changes_counts_if_the_loss_uses_it(
    uses: Callable[[Tensor, Tensor], Tensor], index: int | None, told: bool
) -> None:
    torch.manual_seed(0)
    embed, gru = nn.Embedding(9, 6, padding_idx=index), nn.GRU(6, 5, batch_first=True)

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.gru = embed, gru

        def forward(self, tokens: Tensor) -> Any:
            return self.gru(self.embed(tokens))

    events: list[Any] = []
    model, batch = Encoder(), tokens()
    with Session(also=events.append):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(6):
            outputs, state = model(batch)
            loss = (outputs * (batch != 0)[..., None]).square().mean()
            (loss + uses(state, batch.all(1)).square().mean()).backward()
            optimizer.step()
            optimizer.zero_grad()
    found = [event for event in events if isinstance(event, PaddingCompared) and event.changes]
    assert bool(found) is told
    assert all(event.state == 1 for event in found)
