"""Follow the inputs of loss functions: does a backward pass go through them? Marks on the tape, no tensor is kept."""

from __future__ import annotations

import functools
from typing import Any

from truestep import source
from truestep.events import LossFollowed, Site
from truestep.probes.context.losses import FOLLOWED, Call, Followed
from truestep.probes.context.scene import Scene

_MOST = 32
_DEEPEST = 8
"""Operations before a loss that may be left out by the one that is differentiated: scaling, a sigmoid, a selection."""
_LEAF = "torch::autograd::AccumulateGrad"


def follow(scene: Scene, kind: str, site: Site | None, node: Any) -> None:
    """Mark the input of a loss, and emit the fate of the one before at this line, if that was in an earlier step."""
    losses, step = scene.losses.followed, scene.sampling.step
    before = losses.get(id(site))
    if before is None and (len(losses) >= _MOST or (site is not None and _is_read_at_once(site))):
        return
    if before is None or before.step != step:
        if before is not None:
            found = [call.differentiated for call in before.calls]
            only_last = len(found) > 1 and found[-1] and not any(found[:-1])
            scene.tell(LossFollowed, kind=kind, site=site, differentiated=any(found), only_last=only_last)
        before = losses[id(site)] = Followed(step)
    call = Call(site)
    before.calls.append(call)
    for _ in range(_DEEPEST):
        node.metadata.setdefault(FOLLOWED, []).append(call)
        inner = [following for following, _ in node.next_functions if following is not None]
        if len(inner) != 1 or inner[0].name() == _LEAF:
            return
        node = inner[0]


def line_of(node: Any) -> Site | None:
    """Return the line of the loss function that is near below an operation; None if it is unknown."""
    for _ in range(_DEEPEST):
        sites = {call.site for call in node.metadata.get(FOLLOWED, ())}
        if sites:
            return sites.pop() if len(sites) == 1 else None
        inner = [following for following, _ in node.next_functions if following is not None]
        if len(inner) != 1:
            return None
        node = inner[0]
    return None


@functools.lru_cache(maxsize=256)
def _is_read_at_once(site: Site) -> bool:
    """Return True if the source makes a number of the loss where it is computed, as in ``loss_of(x, y).item()``."""
    lines = source.read(site.path).lines
    if not 0 < site.end_line <= len(lines):
        return False
    rest = lines[site.end_line - 1].encode()[max(site.end_column, 0) :].decode(errors="ignore").lstrip()
    return rest.startswith((".item(", ".detach(", ".tolist("))
