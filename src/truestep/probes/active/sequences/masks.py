"""Check: attention reads the padding of its sequences, and not their tokens.

A mask that is inverted, or made for padding on the other side, raises no error. The weights that attention gives show
it, whether the mask is an argument of the model, made from its tokens, or written as scores of -1e9.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from truestep.events import Site
from truestep.probes.active.trial import Trial
from truestep.probes.context.scene import Scene
from truestep.probes.copies.call import Path, name_of

_SEED = 4_567_811
_LEAST_ROWS = 2
"""Least number of rows with padding, and of different lengths among them."""
_LEAST_PADDED = 4
_MOST_READS = 64
_MASKED = -1e4
"""Score from which on a position gets no weight, also in 16 bits."""
_NO_WEIGHT = 1e-9
_MOST_MASKED = 0.9
_LEAST_READ = 0.5
"""Least share of the padding with a weight; an end token that is also the padding has one."""
_WHOLE = 2
"""Dimensions of a batch of tokens; batches of vectors have one more."""
_MASK_AT = 3
"""Place of the mask among the arguments of `scaled_dot_product_attention`."""


@dataclass(frozen=True, slots=True)
class Masks:
    """Attention that reads the padding."""

    attends: str = ""
    """Name of the argument with the padding; empty if no attention reads it in place of tokens."""
    turned: bool = False
    """True for a mask of padding on the other side, False for one that is inverted."""
    attends_at: Site | None = None
    """Line of the attention."""


def masks(trial: Trial) -> Masks:
    """Return the first attention with weights for the padding, and none for tokens.

    Raises:
        Refused: the copy cannot be called.
    """
    padded = dict(_padded(trial))
    if not padded:
        return Masks()
    record = _Weights(trial.scene, {len(pads) for found in padded.values() for pads in found})
    trial.run(_SEED, mode=record.functions())
    for masked, site in record.found:
        for path, found in padded.items():
            for pads in found:
                if masked.shape == pads.shape and (how := _wrong(masked, pads.to(masked.device))):
                    return Masks(name_of(path, trial.copy), how == "turned", site)
    return Masks()


def _padded(trial: Trial) -> Iterator[tuple[Path, list[Any]]]:
    """Yield the arguments with padding, and its places by rows of sequences: one token, or vectors of zeros."""
    torch = trial.scene.torch
    embeddings = [one for one in trial.copy.modules() if isinstance(one, torch.nn.Embedding)]
    known = {one.padding_idx for one in embeddings if one.padding_idx is not None}
    for path, value in trial.call.tensors(torch).items():
        if value.layout is not torch.strided or value.dim() < _WHOLE or min(value.shape[:2]) < _LEAST_ROWS:
            continue
        found: list[Any] = []
        if value.dim() == _WHOLE and value.dtype in (torch.int64, torch.int32):
            if bool(((value == 0) | (value == 1)).all()):
                continue  # a mask of zeros and ones: either of them can mark the padding
            for rows in (value, value.t()):
                ends = {int(rows[:, place].mode().values) for place in (0, -1)}
                found += [pads for token in sorted(known | ends) if _is_padding(pads := rows == token)]
        elif value.dim() == _WHOLE + 1 and value.is_floating_point():
            zero = (value == 0).all(2)
            found += [pads for pads in (zero, zero.t()) if _is_padding(pads)]
        if found:
            yield path, found


def _is_padding(pads: Any) -> bool:
    """Return True if the places are those of padding at one end of rows of different lengths, and no row is empty."""
    counts = pads.sum(1)
    several = int((counts > 0).sum()) >= _LEAST_ROWS <= len(counts.unique())
    if not several or int(counts.sum()) < _LEAST_PADDED or int(counts.max()) == pads.shape[1]:
        return False
    return any(bool((side[:, 1:] <= side[:, :-1]).all()) for side in (pads, pads.flip(1)))


def _wrong(masked: Any, pads: Any) -> str:
    """Return "inverted" or "turned" for a mask of tokens; "" for others, such as one of padding and no mask."""
    rows = pads.any(1)
    masked, pads = masked[rows], pads[rows]
    if not bool(masked.any(1).all()):
        return ""
    tokens = ~pads
    if int((masked & tokens).sum()) >= _MOST_MASKED * int(tokens.sum()):
        return "inverted" if int((pads & ~masked).sum()) >= _LEAST_READ * int(pads.sum()) else ""
    return "turned" if bool((masked == pads.flip(1)).all()) else ""


class _Weights:
    """Finds the positions that get no weight from any other, in each attention of a run.

    Args:
        scene: the scene.
        rows: numbers of sequences that a batch can have.
    """

    def __init__(self, scene: Scene, rows: set[int]) -> None:
        self._scene = scene
        self._rows = rows
        self.found: list[tuple[Any, Site | None]] = []
        """Positions without weight, by rows of sequences, and the line of the attention."""

    def functions(self) -> Any:
        """Return a torch function mode that records attention."""
        torch, me = self._scene.torch, self
        functional = torch.nn.functional
        softmax = {torch.softmax, functional.softmax, torch.Tensor.softmax}

        class Attention(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
            def __torch_function__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
                kwargs = kwargs or {}
                result = function(*args, **kwargs)
                if len(me.found) < _MOST_READS:
                    if function in softmax:
                        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
                        me._weights(result, dim)
                    elif function is functional.scaled_dot_product_attention:
                        me._scores(kwargs.get("attn_mask", args[_MASK_AT] if len(args) > _MASK_AT else None))
                    elif function is functional.multi_head_attention_forward:
                        me._scores(kwargs.get("key_padding_mask"), inverted=True)
                return result

        return Attention()

    def _weights(self, weights: Any, dim: Any) -> None:
        """Record the weights of attention that is written by hand; several heads can be in the first dimension."""
        if type(dim) is not int or weights.dim() < _WHOLE:
            return
        last = weights.movedim(dim, -1)
        for rows in self._rows:
            if not last.shape[0] % rows and last.shape[-1] > 1:
                self._take((last <= _NO_WEIGHT).reshape(rows, -1, last.shape[-1]).all(1))

    def _scores(self, mask: Any, *, inverted: bool = False) -> None:
        """Record the mask of attention: bool or scores; ``inverted`` says that True leaves a position out."""
        if type(mask) is not self._scene.torch.Tensor or mask.dim() < _WHOLE or mask.shape[0] not in self._rows:
            return
        left_out = (mask if inverted else ~mask) if mask.dtype is self._scene.torch.bool else mask <= _MASKED
        self._take(left_out.reshape(mask.shape[0], -1, mask.shape[-1]).all(1))

    def _take(self, masked: Any) -> None:
        if bool(masked.any()) and not bool(masked.all()):
            self.found.append((masked, self._scene.site()))
