from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from truestep.events import Event, GroupJoined, PartsClipped, Site
from truestep.findings import Finding, Severity
from truestep.rules._of_ranks import RankRule, place, site
from truestep.rules._rule import Progress

_MOST = 24
_LEAST_READS = 2
_APART = 1.02
"""Least ratio of a factor to the right one that counts as another one."""


class ClippedPerRank(RankRule):
    """Each rank clips its part of the gradients by the norm of this part.

    What it does
    ------------
    Reads, at sampled steps, the norm of the gradients that each rank passes to ``torch.nn.utils.clip_grad_norm_``, of
    parameters that ``FullyShardedDataParallel`` divides over ranks. Compares the factor by which each rank scales its
    part with the factor of the norm of all parts.

    Why it matters
    --------------
    A part is smaller than the whole: the clipped gradient has a norm of up to the limit times the root of the number of
    ranks, and ranks scale their parts by different factors. In the proof, with two ranks and a limit of 0.3, the norm
    is up to 0.42; the accuracy is 0.61, and 0.65 with the norm of all parts. On 64 ranks the limit is eight times as
    large.

    Example
    -------
    ::

        model = FullyShardedDataParallel(net)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)     # by the norm on this rank
        optimizer.step()

    Fix
    ---
    Call the method of the model, which adds up the norm over ranks::

        model.clip_grad_norm_(1.0)

    Under ``fully_shard`` (FSDP2) the function of torch does so itself.

    Known false alarms
    ------------------
    None known. Not reported: ``NO_SHARD``, with equal gradients on all ranks, norms below the limit, parameters of
    ``fully_shard``, and gradients that a program divides itself.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/fsdp.html#torch.distributed.fsdp.FullyShardedDataParallel.clip_grad_norm_
    """

    id = "clipped-per-rank"
    since = "0.1"
    severity = Severity.ERROR
    account = "gradients"
    watches = (PartsClipped,)
    needs = (GroupJoined, PartsClipped)

    def __init__(self) -> None:
        super().__init__()
        self._reads: list[tuple[int, float, float]] = []
        """Step, norm and limit of the clips that were read; the first one of a step."""
        self._site: Site | None = None

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, PartsClipped) and len(self._reads) < _MOST:
            if not self._reads or self._reads[-1][0] != run.step:
                self._reads.append((run.step, event.norm, event.max_norm))
                self._site = self._site or event.site

    def facts(self, run: Progress) -> dict[str, Any] | None:
        if run.group is None or len(self._reads) < _LEAST_READS:
            return None
        return {"reads": self._reads, "site": place(self._site), "world_size": run.group.world_size}

    @classmethod
    def compare(cls, facts: Mapping[int, Any]) -> list[Finding] | None:
        first = facts[min(facts)]
        size = first["world_size"]
        if any(fact["world_size"] != len(facts) for fact in facts.values()):
            return None
        reads = [{step: norm for step, norm, _ in fact["reads"]} for fact in facts.values()]
        limits = {step: limit for step, _, limit in first["reads"]}
        common = [step for step in limits if all(step in read for read in reads)]
        norms = {step: _distinct(read[step] for read in reads) for step in common}
        if len(common) < _LEAST_READS:
            return None
        if all(len(of) < 2 for of in norms.values()):
            return []  # whole gradients on each rank
        wrong = [step for step in common if _is_wrong(norms[step], limits[step])]
        if len(wrong) < _LEAST_READS:
            return None
        last = max(wrong, key=lambda step: _clipped(norms[step], limits[step]))
        limit = limits[last]
        return [
            cls.finding(
                site(first["site"]),
                f"each of {size} ranks clips its part of the gradients by the norm of this part",
                label=f"norms of {_listed(norms[last])}, and {_joint(norms[last]):.2g} together, at step {last}",
                help="call `model.clip_grad_norm_(max_norm)` of the FSDP model instead",
                ranks=len(facts),
                world_size=size,
                first_step=min(wrong),
                cost=f"the clipped gradient has a norm of {_clipped(norms[last], limit):.2g}; the limit is {limit:g}",
            )
        ]


def _distinct(norms: Iterable[float]) -> list[float]:
    """Return norms of parts; ranks with equal ones have the same part, as in ``HYBRID_SHARD``."""
    found: list[float] = []
    for norm in norms:
        if not any(abs(norm - other) <= 1e-5 * norm for other in found):
            found.append(norm)
    return found


def _joint(norms: list[float]) -> float:
    return float(sum(norm * norm for norm in norms) ** 0.5)


def _clipped(norms: list[float], limit: float) -> float:
    """Return the norm of all parts after each was clipped."""
    return _joint([min(norm, limit) for norm in norms])


def _is_wrong(norms: list[float], limit: float) -> bool:
    """Return True if a rank scales its part by another factor than that of the norm of all parts."""
    right = min(1.0, limit / _joint(norms)) if _joint(norms) else 1.0
    return any(min(1.0, limit / norm) > _APART * right for norm in norms if norm)


def _listed(norms: list[float]) -> str:
    return " and ".join(f"{norm:.2g}" for norm in norms[:2])
