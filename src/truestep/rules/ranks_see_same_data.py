from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
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
from truestep.rules._syntax.data import shared
from truestep.syntax import Program, Suspicion

_MOST = 12
_LEAST_READS = 3
_LEAST_DIFFERENT = 2
_LEAST_SAMPLES = 64
_FIRST = 3
"""The last of the first steps, which are all read."""


class RanksSeeSameData(RankRule):
    """Each rank trains on all of the data, or on the very same batches.

    What it does
    ------------
    Compares the inputs of the model in training and the losses of the ranks that average their gradients, at sampled
    steps. Reports ranks with the same inputs and losses in each of them, or with the same inputs one or two steps
    later. With other orders on each rank, it compares the data sets: reports loaders that read all samples of equal
    data sets on each rank.

    Why it matters
    --------------
    The average of equal gradients is the gradient of one rank: N ranks do the work of one, in at least its time. In the
    proof two ranks reach an accuracy of 0.63 in 200 steps, and 0.68 with different batches. If only the order differs,
    each epoch is N epochs, and schedules that count epochs are N times as long as planned. So it is with ranks that
    read one stream from different starts: four ranks reach 0.69, and 0.72 with a part of the stream each.

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
    with medium confidence. So are batches that ranks pass on to each other, unless they come again within four steps.

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
        self._steps: list[int] = []
        """Step of each of the inputs."""
        self._losses: list[float] = []
        self._batches: dict[int, list[str]] = {}
        self._together: tuple[int, ...] | None = None
        """Ranks that average their gradients; empty for all."""
        self._called: Site | None = None

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return shared.ranks_see_same_data(program)

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case InputsRead(training=True, argument="") if len(self._inputs) < _MOST and event.spread > 0:
                self._inputs.append([list(event.shape), event.mean, event.spread, event.least, event.most])
                self._steps.append(run.step)
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
            "steps": self._steps,
            "losses": self._losses,
            "batches": [self._batches.get(number, []) for number, _ in loaders],
            "loaders": [_whole(met) for _, met in loaders],
            "site": place(loaders[0][1].site if loaders else self._called),
            "name": loaders[0][1].name if loaders else "",
            "called": place(self._called),
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
        lags = [_lag(one, other) for one, other in itertools.pairwise(together)]
        if any(lags) and None not in lags:
            most = max(map(abs, filter(None, lags)))
            return [cls.finding(
                site(here["called"]),
                f"{len(together)} ranks train on the same batches, {most} step{'s' if most > 1 else ''} apart",
                label="inputs of one rank are those of another at a later step",
                help="give each rank every N-th batch of the stream, not another start: "
                f"`islice(stream, rank, None, {len(together)})`",
                confidence=Confidence.MEDIUM,
                severity=Severity.WARNING,
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


def _lag(one: Mapping[str, Any], other: Mapping[str, Any]) -> int | None:
    """Return the steps by which two ranks are apart that read the same inputs at the first steps; None if they do not.

    Only steps with one call of the model count, and inputs that are all different: ranks may pass parts of the data on.
    """
    here, there = _first_inputs(one), _first_inputs(other)
    for lag in (1, -1, 2, -2):
        pairs = [(inputs, there.get(step + lag)) for step, inputs in here.items() if step + lag in there]
        if len(pairs) >= _LEAST_DIFFERENT and all(inputs == later for inputs, later in pairs):
            return lag
    return 0 if len(here) >= _LEAST_READS and here == there else None


def _first_inputs(fact: Mapping[str, Any]) -> dict[int, Any]:
    """Return the inputs of the first steps, which are read one after the other; nothing if some are equal."""
    steps = fact["steps"]
    read = zip(steps, fact["inputs"], strict=True)
    found = {step: inputs for step, inputs in read if step <= _FIRST and steps.count(step) == 1}
    return found if len({repr(inputs) for inputs in found.values()}) == len(found) else {}


def _equal(reads: list[list[Any]]) -> bool:
    """Return True if all ranks read the same values, of at least two kinds."""
    least = min(len(read) for read in reads)
    first = reads[0][:least]
    different = len({repr(value) for value in first})
    return least >= _LEAST_READS and different >= _LEAST_DIFFERENT and all(read[:least] == first for read in reads)
