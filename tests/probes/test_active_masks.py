"""Attention of a copy of the model: does it give weight to the padding, and none to the tokens?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import CheckSkipped, InputsCompared
from truestep.supervision import Session

LENGTHS = torch.tensor([11, 9, 7, 5, 4, 11, 8, 6])
PADDED = torch.arange(12) >= LENGTHS[:, None]
Attend = Callable[["Network", Tensor, Tensor], Tensor]


class Network(nn.Module):
    def __init__(self, attend: Attend, padding: int | None = None) -> None:
        super().__init__()
        self.use, self.embed = attend, nn.Embedding(9, 8, padding_idx=padding)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 1), nn.Linear(8, 3)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        x = self.embed(tokens) if tokens.dim() == 2 else tokens
        return self.head((x + self.use(self, x, mask)).mean(1))  # type: ignore[no-any-return]


def attention_of_module(model: Any, x: Tensor, mask: Tensor) -> Tensor:
    return model.attention(x, x, x, key_padding_mask=mask)[0]  # type: ignore[no-any-return]


def encoder(model: Any, x: Tensor, mask: Tensor) -> Tensor:
    return model.encoder(x, src_key_padding_mask=mask)  # type: ignore[no-any-return]


def fused(model: Any, x: Tensor, mask: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x, x, x, attn_mask=~mask[:, None, :].expand(-1, x.shape[1], -1))


def fused_heads(model: Any, x: Tensor, mask: Tensor) -> Tensor:
    q = x.unflatten(2, (2, 4)).transpose(1, 2)
    scores = torch.zeros(mask.shape).masked_fill(mask, -1e9)[:, None, None, :]
    return F.scaled_dot_product_attention(q, q, q, attn_mask=scores).transpose(1, 2).flatten(2)


def by_hand(model: Any, x: Tensor, mask: Tensor) -> Tensor:
    scores = (x @ x.transpose(1, 2)).masked_fill(mask[:, None, :], float("-inf"))
    return scores.softmax(-1) @ x


def one_query(model: Any, x: Tensor, mask: Tensor) -> Tensor:
    scores = x.sum(2).masked_fill(mask, -1e10)
    return F.softmax(scores, dim=1).unsqueeze(1) @ x


def found(attend: Attend, mask: Tensor, padding: int | None = 0, batch: Tensor | None = None) -> set[tuple[str, bool]]:
    """Train a model on a padded batch; return the arguments with padding that attention reads, and the side."""
    torch.manual_seed(0)
    events: list[Any] = []
    model, draw = Network(attend, padding), torch.Generator().manual_seed(0)
    tokens = torch.randint(1, 9, (8, 12), generator=draw).masked_fill(PADDED, padding or 0) if batch is None else batch
    with Session(also=events.append) as session:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(6):
            F.cross_entropy(model(tokens, mask), torch.arange(8) % 3).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert session.stop().internal_errors == ()
    compared = [event for event in events if isinstance(event, InputsCompared)]
    assert compared, [event.reason for event in events if isinstance(event, CheckSkipped)]
    assert all((event.attends_at is not None) == bool(event.attends) for event in compared)
    return {(event.attends, event.turned) for event in compared}


EVERY = [attention_of_module, encoder, fused, fused_heads, by_hand, one_query]


@pytest.mark.parametrize("attend", EVERY)
def test_an_inverted_mask_is_found_in_each_kind_of_attention(attend: Attend) -> None:
    assert found(attend, ~PADDED) == {("tokens", False)}


@pytest.mark.parametrize("attend", EVERY)
def test_a_mask_for_padding_on_the_other_side_is_found(attend: Attend) -> None:
    assert found(attend, PADDED.flip(1)) == {("tokens", True)}


@pytest.mark.parametrize("attend", EVERY)
def test_a_mask_of_the_padding_is_right(attend: Attend) -> None:
    assert found(attend, PADDED) == {("", False)}


def test_padding_is_known_without_an_index_on_either_side_and_in_vectors() -> None:
    assert found(by_hand, ~PADDED, padding=None) == {("tokens", False)}
    left = torch.randint(1, 9, (8, 12)).masked_fill(PADDED.flip(1), 0)
    assert found(by_hand, ~PADDED.flip(1), batch=left) == {("tokens", False)}
    assert found(by_hand, PADDED.flip(1), batch=left) == {("", False)}
    vectors = torch.rand(8, 12, 8).masked_fill(PADDED[..., None], 0)
    assert found(fused, ~PADDED, batch=vectors) == {("tokens", False)}
    assert found(fused, PADDED, batch=vectors) == {("", False)}


@pytest.mark.parametrize(
    "mask",
    [torch.zeros(8, 12, dtype=torch.bool), torch.arange(12).expand(8, 12) % 3 == 0, torch.arange(12).expand(8, 12) < 3],
    ids=["none", "strides", "a prefix"],
)
def test_masks_that_are_not_those_of_padding_are_not_judged(mask: Tensor) -> None:
    assert found(by_hand, mask) == {("", False)}


def test_a_causal_mask_beside_that_of_the_padding_is_right() -> None:
    def causal(model: Any, x: Tensor, mask: Tensor) -> Tensor:
        later = torch.ones(12, 12, dtype=torch.bool).triu(1)
        return model.attention(x, x, x, key_padding_mask=mask, attn_mask=later)[0]  # type: ignore[no-any-return]

    assert found(causal, PADDED) == {("", False)}


def test_batches_without_padding_have_no_mask_to_judge() -> None:
    assert found(by_hand, PADDED, batch=torch.randint(1, 9, (8, 12))) == {("", False)}


@pytest.mark.parametrize("kept", [True, False])
def test_a_mask_of_ones_is_no_row_of_tokens(kept: bool) -> None:
    def whole(model: Any, x: Tensor, mask: Tensor) -> Tensor:
        return attend(model, x, mask != kept)

    for attend in (by_hand, fused_heads):
        assert found(whole, (~PADDED if kept else PADDED).long()) == {("", False)}
        assert found(whole, (PADDED if kept else ~PADDED).long()) == {("tokens", False)}
