"""Matrices of scores between the samples of a batch, with one partner for each as its class, as in contrastive losses."""

from __future__ import annotations

from typing import Any

from truestep.events import PartnersScored, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values

_LEAST = 8
_LARGEST = 1 << 22
_CLOSE = 1e-5
_APART = 1e-3
"""Least distance of a score from the largest one, relative to it, that shows another value."""
_MOST = 0.75
"""Least share of the samples that have a higher score with the usual partner, and do not by chance."""
_OTHERS = 0.7
"""Share of the scores that are clearly smaller than those of the partners."""


def score_partners(scene: Scene, site: Site | None, input: Any, target: Any) -> None:
    """Emit what the scores of the partners are beside the others, at a sampled step.

    Args:
        scene: the scene.
        site: place of the cross entropy.
        input: scores of each sample with others.
        target: the column of the partner of each row: one of its own in a square matrix, else the first one.
    """
    if input.dim() != 2 or target.dim() != 1 or len(target) != len(input) or min(input.shape) < _LEAST:
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
        itself, symmetric, other = _is_largest(scores, partner), square and _is_symmetric(scores), False
        if square and not itself:
            usual = (own + rows // 2) % rows if symmetric else own
            closer = int((scores[own, usual] > partner).sum())
            other = closer >= max(_MOST * rows, rows / 2 + 2 * rows**0.5)
    scene.tell(PartnersScored, site=site, rows=rows, itself=itself, other=other, symmetric=symmetric)


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
