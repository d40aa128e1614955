"""Check: padding changes the result of a model, so that a sample gets another result beside longer samples.

Samples of a batch that end in padding are run again without a part of that padding, which a batch of shorter samples
would not have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from truestep.probes.active.influence import same
from truestep.probes.active.trial import Trial
from truestep.probes.copies.call import Path, name_of
from truestep.probes.copies.objects import Refused

_SEED, _OTHER_SEED = 5_678_911, 1_198_765
_LEAST_LENGTH = 4
_LEAST_ROWS = 2
_LEAST_SHARE = 0.05
"""Least difference that counts, as a share of those between samples: convolutions change a little at the border."""
_PART = 4
"""One sample of so many gives the length of the padding that is left out."""
_CONVOLUTIONS = frozenset({"conv1d", "conv2d"})
_LARGEST = frozenset({"max", "amax", "max_pool1d", "max_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d", "topk"})
_JOINS = frozenset({
    "mean", "sum", "avg_pool1d", "avg_pool2d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "lstm", "gru", "rnn_tanh",
    "rnn_relu", "scaled_dot_product_attention", "multi_head_attention_forward", "bmm", "baddbmm", "einsum",
    "matmul", "__matmul__", "softmax", "cumsum",
})  # fmt: skip
_STATE = 3
"""Dimensions of a state: layers, samples and features."""
_WHOLE = 2
"""Dimensions of a batch of tokens; batches of vectors have one more."""


@dataclass(frozen=True, slots=True)
class Padding:
    """Result of the check."""

    argument: str
    length: int
    """Length of the samples in this batch."""
    trimmed: int
    """Number of positions of padding that were left out."""
    samples: int
    """Number of samples that end in so much padding."""
    share: float = 0.0
    """Largest difference of a result, as a share of the largest difference between two samples."""
    state: int | None = None
    """Number of the result that changes, if that is a state with the samples in its second dimension, and no other."""
    pooled: bool = False
    """Whether the model joins positions by convolutions and their largest values only, as is the convention."""

    @property
    def changes(self) -> bool:
        return self.share >= _LEAST_SHARE


def padding(trial: Trial) -> Padding | None:
    """Return the effect of padding on the results; None for arguments without padding.

    Raises:
        Refused: the copy cannot be called, or its results are random.
    """
    torch, call = trial.scene.torch, trial.call
    tensors = call.tensors(torch)
    for path, value in tensors.items():
        ends = _ends(value, torch)
        trimmed = 0 if ends is None else _trimmed(ends)
        if ends is None or not trimmed:
            continue
        rows = (ends >= trimmed).nonzero().flatten()
        samples, length = value.shape[:2]
        alike = {path: one for path, one in tensors.items() if one.dim() and one.shape[0] == samples}
        if _is_ambiguous(tensors, samples, length):
            raise Refused("its arguments have the positions in different dimensions")
        whole = {path: one.index_select(0, rows.to(one.device)) for path, one in alike.items()}
        shorter = {path: _shorter(one, length, trimmed) for path, one in whole.items()}
        shorter |= {path: whole[path] - trimmed for path, one in alike.items() if _counts_padding(one, length)}
        before, after = (trial.run(_SEED, call.replaced(values)) for values in (whole, shorter))
        if not same(before, trial.run(_SEED, call.replaced(whole))):
            raise Refused("its results for the same batch and seed differ")
        if not same(before, trial.run(_OTHER_SEED, call.replaced(whole))):
            raise Refused("its results are random, and there are fewer draws for shorter samples")
        every = trial.run(_SEED)
        found, state = _differences(every, before, after, len(rows)), None
        if not found:
            state, share = _of_states(every, before, after, len(rows))
            found = [share] if state is not None else []
        if not found:
            raise Refused("its result has no row for each sample")
        share = float(f"{max(found):.2g}")
        pooled = _is_largest_of_convolutions(trial)
        return Padding(name_of(path, trial.copy), int(length), trimmed, len(rows), share, state, pooled)
    return None


def _is_largest_of_convolutions(trial: Trial) -> bool:
    """Return True if a model joins positions by convolutions and their largest values, and by nothing else."""
    names: set[str] = set()

    class Names(trial.scene.torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.add(getattr(func, "__name__", ""))
            return func(*args, **(kwargs or {}))

    trial.run(_SEED, mode=Names())
    return not names.isdisjoint(_CONVOLUTIONS) and not names.isdisjoint(_LARGEST) and names.isdisjoint(_JOINS)


def _ends(value: Any, torch: Any) -> Any:
    """Return the number of positions of padding at the end of each row; None for other tensors than padded sequences.

    Padding is one token, or vectors of zeros, which is nowhere else; it begins at different positions of the rows, the
    longest row has none, and no row consists of it.
    """
    if value.layout is not torch.strided or value.dim() < _WHOLE or value.shape[1] < _LEAST_LENGTH:
        return None
    if value.dim() == _WHOLE and value.dtype in (torch.int64, torch.int32):
        last = value[:, -1]
        is_padding = value == last.mode().values
    elif value.dim() == _WHOLE + 1 and value.is_floating_point():
        is_padding = (value == 0).all(2)
    else:
        return None
    ends = _runs(is_padding)
    return ends if _are_padded(ends, value.shape[1]) and int(is_padding.sum()) == int(ends.sum()) else None


def _runs(same: Any) -> Any:
    """Return the number of True at the end of each row."""
    return same.flip(1).int().cumprod(1).sum(1)


def _are_padded(ends: Any, length: int) -> bool:
    """Return True if the padding begins at different positions, a row has none, and no row consists of it."""
    return int(ends.max()) < length and not int(ends.min()) and len(ends.unique()) > _LEAST_ROWS


def _trimmed(ends: Any) -> int:
    """Return the number of positions to leave out: the padding of a quarter of the rows, of at least two."""
    ordered = ends.sort(descending=True).values
    return int(ordered[max(_LEAST_ROWS, len(ordered) // _PART) - 1]) if len(ordered) >= _LEAST_ROWS else 0


def _is_ambiguous(tensors: dict[Path, Any], samples: int, length: int) -> bool:
    """Return True if a tensor can have its positions elsewhere than in the second dimension."""
    return samples == length or any(
        length in (*one.shape[:1], *one.shape[2:])
        or (one.dim() > 1 and length in one.shape and one.shape[0] != samples)
        for one in tensors.values()
    )


def _counts_padding(value: Any, length: int) -> bool:
    """Return True for lengths of samples that are all that of the batch: the padding counts, and is cut from them."""
    return value.dim() == 1 and not value.is_floating_point() and bool((value == length).all())


def _shorter(value: Any, length: int, trimmed: int) -> Any:
    """Return a tensor without its last positions, if it has them."""
    if value.dim() < _WHOLE or value.shape[1] != length:
        return value
    return value.narrow(1, 0, length - trimmed)


def _differences(every: list[Any], before: list[Any], after: list[Any], rows: int) -> list[float]:
    """Return the largest difference of each result with a row for each sample, and none for each position.

    Layers that read in both directions change results at each position a little, and are used without masks.

    Args:
        every: results for the whole batch, for samples that differ by more.
        before: results of the samples with their padding.
        after: results without a part of it.
        rows: number of these samples.
    """
    found = []
    for whole, one, two in zip(every, before, after, strict=False):
        spread = float((whole - whole.mean(0)).abs().max())
        if one.dim() and one.shape == two.shape and one.shape[0] == rows and 0 < spread < math.inf:
            found.append(float((one - two).abs().max()) / spread)
    return found


def _of_states(every: list[Any], before: list[Any], after: list[Any], rows: int) -> tuple[int | None, float]:
    """Return the state of a recurrent network that changes most, with its samples in the second dimension."""
    found: dict[int, float] = {}
    for place, (whole, one, two) in enumerate(zip(every, before, after, strict=False)):
        if one.dim() != _STATE or one.shape != two.shape or one.shape[1] != rows or one.shape[0] == rows:
            continue
        spread = float((whole - whole.mean(1, keepdim=True)).abs().max())
        if 0 < spread < math.inf:
            found[place] = float((one - two).abs().max()) / spread
    worst = max(found, key=lambda place: found[place], default=None)
    return worst, found.get(worst, 0.0) if worst is not None else 0.0
