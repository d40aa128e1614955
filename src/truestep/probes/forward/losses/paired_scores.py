"""Scores of each sample with others, and its partner as the class, as in contrastive losses."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from truestep.events import PartnersScored, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, saved

_LEAST = 8
_LARGEST = 1 << 22
_CLOSE = 1e-5
_APART = 1e-3
"""Least distance of a score from the largest one, relative to it, that shows another value."""
_MOST = 0.75
"""Least share of the samples that have a higher score with the usual partner, and do not by chance."""
_MOST_NODES = 40
"""Operations between the products and the loss that are looked at."""
_PRODUCTS = ("MmBackward0",)
_TRANSPOSITIONS = ("TBackward0", "TransposeBackward0", "PermuteBackward0")
_LAYERS = ("Addmm", "Convolution", "Bmm", "Embedding")
_UNIT, _OTHER = 1e-3, 0.1
"""Largest distance of a squared norm from one, and least distance of another norm."""
_OTHERS = 0.7
"""Share of the scores that are clearly smaller than those of the partners."""


def score_partners(scene: Scene, kind: str, site: Site | None, input: Any, target: Any) -> None:
    """Compare the scores of the partners with the others, at a sampled step, and emit the result.

    Args:
        scene: the scene.
        kind: the loss function, of which only the cross entropy is looked at.
        site: place of the call.
        input: scores of each sample with others.
        target: the column of the partner of each row: a different one for each in a square matrix, else the first one.
    """
    if kind != "cross_entropy" or input.dim() != 2 or target.dim() != 1:
        return
    if len(target) != len(input) or min(input.shape) < _LEAST:
        return
    if target.is_floating_point() or input.numel() > _LARGEST or not (has_values(input) and has_values(target)):
        return
    with scene.sampling.timed(input):
        scores, rows = input.detach().float(), len(target)
        own = scene.torch.arange(rows, device=target.device)
        square = rows == scores.shape[1] and bool((target.sort().values == own).all())
        if not square and bool(target.any()):
            return
        partner = scores[own, target]
        symmetric, other = square and _is_symmetric(scores), False
        # Words of a query that are words of its document too have the largest score as well, in a table of two sides.
        itself = (symmetric or not square) and _is_largest(scores, partner)
        if square and not itself:
            usual = (own + rows // 2) % rows if symmetric else own
            closer = int((scores[own, usual] > partner).sum())
            other = closer >= max(_MOST * rows, rows / 2 + 2 * rows**0.5)
        columns = any(_has_unit_columns(one) for one in _vectors(input.grad_fn, rows))
    scene.tell(PartnersScored, site=site, rows=rows, itself=itself, other=other, symmetric=symmetric, columns=columns)


def _vectors(node: Any, rows: int) -> Iterator[Any]:
    """Yield the vectors of which scores are the products, one in each row; none that a hook would have to restore."""
    queue, seen = deque([node]), {node}
    while queue and len(seen) < _MOST_NODES:
        node = queue.popleft()
        if node.name() in _PRODUCTS:
            turned = [made is not None and made.name() in _TRANSPOSITIONS for made, _ in node.next_functions]
            first = saved(node, "self") if not turned[0] else None  # else the rows are features, not samples
            second = saved(node, "mat2") if turned[1] else None
            yield from (
                one for one in (first, None if second is None else second.T) if one is not None and len(one) == rows
            )
        elif not node.name().startswith(_LAYERS):
            fresh = {following for following, _ in node.next_functions if following is not None} - seen
            seen |= fresh
            queue += fresh


def _has_unit_columns(vectors: Any) -> bool:
    """Return True if the columns of vectors have a norm of one, and the rows have others."""
    if vectors.dim() != 2 or vectors.shape[1] < 2 or not has_values(vectors):
        return False
    squares = vectors.detach().float().square()
    columns, rows = squares.sum(0), squares.sum(1)
    return bool(((columns - 1).abs() <= _UNIT).all()) and bool(((rows - 1).abs() > _OTHER).float().mean() >= _MOST)


def _is_symmetric(scores: Any) -> bool:
    finite = scores[scores.isfinite()]
    apart = (scores - scores.T).nan_to_num().abs()
    return len(finite) > 0 and bool((apart <= _CLOSE * finite.abs().max()).all())


def _is_largest(scores: Any, partner: Any) -> bool:
    """Return True if the partners have one score, the largest of all, and most others are clearly smaller."""
    largest = float(partner.max())
    near, apart = _CLOSE * abs(largest), _APART * abs(largest)
    one = bool((partner >= largest - near).all()) and bool((scores <= largest + near).all())
    return one and float((scores < largest - apart).float().mean()) >= _OTHERS
