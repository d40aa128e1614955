from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from truestep.events import CollectiveCalled, Event, GroupJoined, ModelCalled, Site, WeightsRead
from truestep.findings import Confidence, Finding, Mark, Severity
from truestep.rules._of_ranks import RankRule, place, site
from truestep.rules._published import printed_by_one_rank
from truestep.rules._rule import Progress

_COMBINES = ("reduce", "gather")


class MetricsNotReduced(RankRule):
    """Rank 0 prints the metric of its part of the evaluation samples.

    What it does
    ------------
    Reads which loaders an evaluation uses, and the operations over ranks that the program calls. Reports an evaluation
    on a loader with a sampler that divides the samples over the ranks, if no result is reduced or gathered, and if only
    one rank prints a value computed from it.

    Why it matters
    --------------
    The printed metric is that of one part of the samples: with N ranks, N times fewer. In the proof the accuracy of an
    epoch differs by 3.7 points from that of all samples, and so do the choice of the best epoch and an early stop.

    Example
    -------
    ::

        validation = DataLoader(data, 40, sampler=DistributedSampler(data, shuffle=False))
        for inputs, targets in validation:
            hits += (model(inputs).argmax(1) == targets).sum()
        if rank == 0:
            print(hits / len(validation.sampler))       # of the samples of rank 0

    Fix
    ---
    Add up counts over ranks before they are divided::

        counts = torch.stack([hits, torch.tensor(len(validation.sampler))])
        dist.all_reduce(counts)
        if rank == 0:
            print(counts[0] / counts[1])

    Known false alarms
    ------------------
    Results that are combined by other means than operations of ``torch.distributed``, such as files. Not reported:
    programs in which each rank prints its result, or none does, and evaluations of all samples on one rank.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_reduce
    """

    id = "metrics-not-reduced"
    since = "0.1"
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    alone = "no evaluation on a loader that divides its samples over ranks, with a known use of the result"
    account = "calls"
    watches = (CollectiveCalled, ModelCalled, WeightsRead)
    needs = (GroupJoined, ModelCalled)

    def __init__(self) -> None:
        super().__init__()
        self._evaluated: dict[int, Site | None] = {}
        """Loader to the first line that calls a model with its batches, without gradients."""
        self._evaluating = False
        """True from a call of an evaluation to the next call in training."""
        self._reduced = self._unknown = False
        """True if a result of an evaluation is combined over ranks, and if it may be."""

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case CollectiveCalled(of="") if event.operation in _COMBINES:
                self._reduced |= self._evaluating
                self._unknown = True
            case WeightsRead(sharded=True):
                self._unknown = True  # operations on divided tensors are not seen
            case ModelCalled(grad=False):
                self._evaluating = True
                if event.loader is not None:
                    self._evaluated.setdefault(event.loader, event.site)
            case ModelCalled():
                self._evaluating = False

    def facts(self, run: Progress) -> dict[str, Any] | None:
        if run.group is None or not run.step:
            return None
        size = run.group.world_size
        divided = [
            (called, run.loaders[loader])
            for loader, called in self._evaluated.items()
            if called is not None and loader in run.loaders and run.loaders[loader].parts == size
            and loader not in run.samples.trained
        ]  # fmt: skip
        if divided and self._reduced:
            return {"world_size": size, "printed": None}
        for called, met in () if self._unknown else divided:
            printed = printed_by_one_rank(called)
            if printed is not None:
                return {
                    "world_size": size,
                    "printed": place(printed),
                    "called": place(called),
                    "made": place(met.site),
                    "name": met.name,
                }
        return None

    @classmethod
    def compare(cls, facts: Mapping[int, Any]) -> list[Finding] | None:
        if any(len(facts) < fact["world_size"] for fact in facts.values()):
            return None
        if any(fact["printed"] is None for fact in facts.values()):
            return []
        first = facts[min(facts)]
        size = first["world_size"]
        return [
            cls.finding(
                site(first["called"]),
                f"the metric that one rank prints is that of 1/{size} of the samples of `{first['name']}`",
                label="each rank evaluates its own part",
                help="reduce the counts over ranks before they are divided: `dist.all_reduce(counts)`",
                related=(
                    Mark(site(first["made"]), f"divided over {size} ranks"),
                    Mark(site(first["printed"]), "printed on one rank, without a reduction"),
                ),
                ranks=len(facts),
                world_size=size,
            )
        ]
