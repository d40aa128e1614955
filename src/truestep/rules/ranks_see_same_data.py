from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from truestep.events import (
    BatchRead,
    CollectiveCalled,
    Event,
    GroupJoined,
    InputsRead,
    LoaderMet,
    LossRead,
    ModelCalled,
    ReplicaWrapped,
    Site,
    WeightsRead,
)
from truestep.findings import Confidence, Finding, Severity
from truestep.rules._of_ranks import RankRule, grouped, place, site
from truestep.rules._rule import Progress

_MOST = 12
_LEAST_READS = 3
_LEAST_DIFFERENT = 2
_LEAST_SAMPLES = 64


class RanksSeeSameData(RankRule):
    """Each rank trains on all of the data, or on the very same batches.

    What it does
    ------------
    Compares the inputs of the model in training and the losses of the ranks that average their gradients, at sampled
    steps. Reports ranks with the same inputs and losses in each of them. With other orders on each rank, it compares
    the data sets: reports loaders that read all samples of equal data sets on each rank.

    Why it matters
    --------------
    The average of equal gradients is the gradient of one rank: N ranks do the work of one, in at least its time. In the
    proof two ranks reach an accuracy of 0.63 in 200 steps, and 0.68 with different batches. If only the order differs,
    each epoch is N epochs, and schedules that count epochs are N times as long as planned.

    Example
    -------
    ::

        torch.manual_seed(0)                                         # on each rank
        loader = DataLoader(data, batch_size=32, shuffle=True)       # the same order on each rank
        model = DistributedDataParallel(net)

    Fix
    ---
    Give each rank its part of the data::

        sampler = DistributedSampler(data, shuffle=True)
        loader = DataLoader(data, batch_size=32, sampler=sampler)

    Random inputs that a program generates need a seed that depends on the rank.

    Known false alarms
    ------------------
    None known. Not reported: ranks that do not average gradients, tensor-parallel ranks, one batch for the whole run,
    and data sets with values that cannot be read. All samples on each rank, in different orders, on purpose: reported
    with medium confidence.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
    """

    id = "ranks-see-same-data"
    since = "0.1"
    severity = Severity.ERROR
    account = "samples"
    watches = (BatchRead, CollectiveCalled, InputsRead, LossRead, ModelCalled, ReplicaWrapped, WeightsRead)
    needs = (GroupJoined, WeightsRead)

    def __init__(self) -> None:
        super().__init__()
        self._inputs: list[list[Any]] = []
        self._losses: list[float] = []
        self._batches: dict[int, list[str]] = {}
        self._together: tuple[int, ...] | None = None
        """Ranks that average their gradients; empty for all."""
        self._called: Site | None = None

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case InputsRead(training=True) if len(self._inputs) < _MOST and event.spread > 0:
                self._inputs.append([list(event.shape), event.mean, event.spread, event.least, event.most])
                self._called = self._called or event.site
            case LossRead() if len(self._losses) < _MOST:
                self._losses.append(event.value)
            case BatchRead() if event.fingerprint:
                read = self._batches.setdefault(event.loader, [])
                if len(read) < _MOST:
                    read.append(event.fingerprint)
            case ReplicaWrapped():
                self._together = event.ranks
            case CollectiveCalled(of="gradient"):
                self._together = self._together or ()
            case WeightsRead(sharded=True):
                self._together = self._together or ()
            case ModelCalled(grad=True, training=True, loader=None):
                self._called = self._called or event.site

    def facts(self, run: Progress) -> dict[str, Any] | None:
        if self._together is None or run.group is None:
            return None
        loaders = [(number, met) for number, met in run.loaders.items() if number in run.samples.trained]
        return {
            "ranks": list(self._together or range(run.group.world_size)),
            "inputs": self._inputs,
            "losses": self._losses,
            "batches": [self._batches.get(number, []) for number, _ in loaders],
            "loaders": [_whole(met) for _, met in loaders],
            "site": place(loaders[0][1].site if loaders else self._called),
            "name": loaders[0][1].name if loaders else "",
        }

    @classmethod
    def compare(cls, facts: Mapping[int, Any]) -> list[Finding] | None:
        read = [group for group in grouped(facts, "ranks") if _is_read(list(group.values()))]
        for group in read:
            found = cls._compare(list(group.values()))
            if found:
                return found
        return [] if read else None

    @classmethod
    def _compare(cls, together: list[Any]) -> list[Finding]:
        """Return the findings for ranks that average their gradients."""
        here = together[0]
        inputs = _equal([fact["inputs"] for fact in together])
        losses = _equal([fact["losses"] for fact in together])
        batches = any(
            _equal(list(read)) for read in zip(*(fact["batches"] for fact in together), strict=False) if all(read)
        )
        counted: dict[str, Any] = {"ranks": len(together), "world_size": len(here["ranks"])}
        name = here["name"]
        if inputs and (losses or batches):
            source = f"`{name}` gives {len(together)} ranks the same batches" if name else (
                f"{len(together)} ranks train on the same inputs"
            )  # fmt: skip
            return [cls.finding(
                site(here["site"]),
                f"{source}: the average of their gradients is the gradient of one rank",
                label=f"equal on all ranks in {len(here['inputs'])} of {len(here['inputs'])} batches read",
                help="pass `sampler=DistributedSampler(data)` to the `DataLoader`" if name
                else "draw other samples on each rank, from a seed that depends on the rank",
                first_step=0,
                **counted,
            )]  # fmt: skip
        whole = [loaders for loaders in zip(*(fact["loaders"] for fact in together), strict=False) if all(loaders)]
        for loaders in whole:
            if all(loader == loaders[0] for loader in loaders):
                samples, found_name, found_site = loaders[0]["samples"], loaders[0]["name"], loaders[0]["site"]
                return [cls.finding(
                    site(found_site),
                    f"each of {len(together)} ranks reads all {samples:,} samples in each pass over `{found_name}`",
                    label=f"{samples:,} samples on each rank, without a distributed sampler",
                    help="pass `sampler=DistributedSampler(data)` to the `DataLoader`",
                    confidence=Confidence.MEDIUM,
                    severity=Severity.WARNING,
                    **counted,
                )]  # fmt: skip
        return []


def _is_read(together: list[Any]) -> bool:
    """Return True if enough batches of each rank were read, or if each reads all samples of a data set."""
    return all(len(fact["inputs"]) >= _LEAST_READS or any(fact["loaders"]) for fact in together)


def _whole(met: LoaderMet) -> dict[str, Any] | None:
    """Return the data of a loader that reads all samples of a known data set in each pass; else None."""
    whole = met.sampler in ("random", "sequential") and met.parts == 1 and (met.samples or 0) >= _LEAST_SAMPLES
    if not whole or not met.content:
        return None
    return {"content": met.content, "samples": met.samples, "name": met.name, "site": place(met.site)}


def _equal(reads: list[list[Any]]) -> bool:
    """Return True if all ranks read the same values, of at least two kinds."""
    least = min(len(read) for read in reads)
    first = reads[0][:least]
    different = len({repr(value) for value in first})
    return least >= _LEAST_READS and different >= _LEAST_DIFFERENT and all(read[:least] == first for read in reads)
