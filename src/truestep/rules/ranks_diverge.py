from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from truestep.events import (
    CollectiveCalled,
    Event,
    GroupJoined,
    LearningRateRead,
    ModelCalled,
    ReplicaRead,
    ReplicaWrapped,
    Site,
    WeightsRead,
)
from truestep.findings import Finding, Mark, Severity
from truestep.rules._of_ranks import RankRule, grouped, place, site
from truestep.rules._rule import Progress

_EQUAL = 1e-4
"""Largest difference of equal weights, relative to their size: ranks of different hardware may round differently."""
_LEAST_READS = 2


class Difference(NamedTuple):
    """Weights of two ranks that differ at one step."""

    step: int
    amount: float
    """Sum of the differences by the sum of the absolute values, of the weights that differ."""
    names: tuple[str, ...]
    wrapped: bool
    """Whether some of these weights are wrapped in DistributedDataParallel."""
    of: int
    """Number of weights that were compared."""


class _Cause(NamedTuple):
    message: str
    label: str
    help: str
    site: Site | None = None
    """Line at fault; None for that of the optimizer step."""
    related: tuple[Mark, ...] = ()


class RanksDiverge(RankRule):
    """Ranks that should train one model have different weights.

    What it does
    ------------
    Reads some values of the weights after some of the steps on each rank, and compares them between ranks at the end
    of the run. Reports weights that differ although DistributedDataParallel wraps them, or although a distributed
    sampler divides the training data into as many parts as there are ranks.

    Why it matters
    --------------
    Each rank trains its own model on its own part of the data. Rank 0 saves one of them, and the work of the others is
    lost. In the proof the saved model is as accurate as one that was trained on half of the data: 0.63 instead of
    0.68. The loss falls on every rank.

    Example
    -------
    ::

        net = Net()
        model = DistributedDataParallel(net)
        for inputs, labels in loader:
            loss = F.cross_entropy(net(inputs), labels)     # beside the wrapper: gradients stay local
            loss.backward()
            optimizer.step()

    Fix
    ---
    Call the wrapper, which averages the gradients over ranks during the backward pass::

        loss = F.cross_entropy(model(inputs), labels)

    Change weights and gradients in the same way on all ranks, and end a window of ``no_sync`` with a backward pass
    outside of it. Convert the model (``.double()``, ``.to(device)``) before it is wrapped: torch loses the hooks of the
    wrapper otherwise, without a word.

    Known false alarms
    ------------------
    Not reported: runs without DistributedDataParallel and without a distributed sampler, weights that FSDP or a
    tensor-parallel plan shards, communication hooks, programs that average weights themselves (local SGD), and
    parameters that are left out of the wrapper.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design
    """

    id = "ranks-diverge"
    since = "0.1"
    severity = Severity.ERROR
    account = "parameters"
    watches = (CollectiveCalled, LearningRateRead, ModelCalled, ReplicaRead, ReplicaWrapped, WeightsRead)
    needs = (GroupJoined, WeightsRead)

    def __init__(self) -> None:
        super().__init__()
        self._reads: list[tuple[int, WeightsRead]] = []
        self._wrapped: dict[int, ReplicaWrapped] = {}
        self._unprepared: dict[int, int] = {}
        """Wrapper to the number of reads before any of its forward passes has prepared an average."""
        self._prepared: set[int] = set()
        """Wrappers with a forward pass that has."""
        self._own = False
        """True if the program replaces the average of gradients, or averages weights itself."""
        self._averages = False
        """True if the program may average gradients itself."""
        self._by_hand = False
        """True if it averages gradients of parameters itself."""
        self._outside: set[int] = set()
        self._recast: dict[int, str] = {}
        """Wrapper to the type and device that its parameters have got since."""
        self._called: Site | None = None
        self._rates: dict[int, tuple[float, ...]] = {}

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case WeightsRead():
                self._reads.append((run.step, event))
            case ReplicaWrapped():
                self._wrapped[event.replica] = event
            case ReplicaRead():
                self._own |= event.hooked
                self._outside.update(event.outside)
                if event.recast:
                    self._recast[event.replica] = event.recast
                if event.prepared:
                    self._prepared.add(event.replica)
                elif run.step > 0:
                    self._unprepared[event.replica] = self._unprepared.get(event.replica, 0) + 1
            case CollectiveCalled():
                self._own |= event.of == "parameter" and run.step > 0
                self._by_hand |= event.of == "gradient"
                self._averages |= event.of == "gradient" or (not event.of and event.numbers > 1 and run.step > 0)
            case ModelCalled(grad=True, training=True):
                self._called = event.site
            case LearningRateRead():
                self._rates[event.optimizer] = event.rates

    def facts(self, run: Progress) -> dict[str, Any] | None:
        if len(self._reads) < _LEAST_READS or run.group is None or self._own:
            return None
        inside = {number for wrapped in self._wrapped.values() for number in wrapped.parameters} | self._outside
        names = run.parameters
        passed_by = [
            place(self._wrapped[replica].site)
            for replica, reads in self._unprepared.items()
            if reads >= _LEAST_READS and replica not in self._prepared
        ]
        parts = {met.parts for number, met in run.loaders.items() if number in run.samples.trained}
        return {
            "reads": [
                [step, read.optimizer, [
                    [names[number].name if number in names else "", number in inside, list(values)]
                    for number, values in zip(read.parameters, read.values, strict=True)
                ]]
                for step, read in self._reads
            ],
            "stepped": place(self._reads[-1][1].site),
            "optimizer": run.optimizer_name(self._reads[-1][1].optimizer),
            "passed_by": passed_by,
            "passes": round(sum(line.made for line in run.gradients.lines().values()) / max(run.step, 1), 1),
            "recast": [[place(self._wrapped[replica].site), now] for replica, now in self._recast.items()],
            "called": place(self._called),
            "group": sorted({rank for wrapped in self._wrapped.values() for rank in wrapped.ranks}),
            "outside": [names[number].name for number in sorted(self._outside) if number in names],
            "by_hand": self._by_hand,
            "divided": run.group.world_size in parts and not self._averages,
            "world_size": run.group.world_size,
            "rates": {str(number): list(rates) for number, rates in self._rates.items()},
        }  # fmt: skip

    @classmethod
    def compare(cls, facts: Mapping[int, Any]) -> list[Finding] | None:
        compared = [cls._compare(group) for group in grouped(facts, "group")]
        found = next((found for found in compared if found), None)
        return found or (None if None in compared or not compared else [])

    @classmethod
    def _compare(cls, facts: Mapping[int, Any]) -> list[Finding] | None:
        """Return the findings for ranks that train one model; None if they may train different ones on purpose."""
        first = facts[min(facts)]
        if any(len(_common(first, other)) < _LEAST_READS for other in facts.values()):
            return None
        found = [difference for other in facts.values() if other is not first for difference in _compared(first, other)]
        if not found:
            return []
        earliest = min(found, key=lambda difference: difference.step)
        latest = max(found, key=lambda difference: difference.step)
        size = len(first["group"]) or first["world_size"]
        wrapped = any(difference.wrapped for difference in found)
        cause_of = _cause_if_wrapped if wrapped else _cause_without_wrapper
        cause = cause_of(facts, latest, earliest.step, size)
        if cause is None:
            return None
        return [cls.finding(
            cause.site or site(first["stepped"]),
            cause.message,
            label=cause.label,
            help=cause.help,
            related=cause.related,
            ranks=len(facts),
            world_size=size,
            first_step=earliest.step,
            cost=f"the weights differ by {latest.amount:.2g} of their size at step {latest.step}",
        )]  # fmt: skip


def _cause_if_wrapped(facts: Mapping[int, Any], latest: Difference, step: int, size: int) -> _Cause:
    """Return the cause of a difference in weights that DistributedDataParallel wraps."""
    first = facts[min(facts)]
    if first["passed_by"]:
        return _Cause(
            f"the {size} ranks train {size} different models: no call of the `DistributedDataParallel` wrapper "
            "prepares an average of gradients",
            "called without the wrapper, or in `no_sync`",
            "call the wrapper, not the model inside of it; the last pass of a step outside of `no_sync`",
            site(first["called"]),
            (Mark(site(first["passed_by"][0]), "wrapped here"),),
        )
    if first["recast"]:
        wrapped, now = first["recast"][0]
        return _Cause(
            f"the {size} ranks train {size} different models: a conversion of the wrapped model has ended its averages",
            f"steps on gradients of this rank, of parameters in {now}",
            "convert or move the model before it is wrapped in `DistributedDataParallel`",
            None,
            (Mark(site(wrapped), "wrapped here, with parameters of another type or device"),),
        )
    late = [name for name in latest.names if name in first["outside"]]
    if late:
        return _Cause(
            f"ranks have different weights in {_named(late)}, added after the model was wrapped",
            "steps on gradients of this rank",
            "wrap the model in `DistributedDataParallel` after its last change",
        )
    apart = f"differ from step {step} on"
    rates, passes = _unequal_rates(facts), _unequal_passes(facts)
    if rates or passes:
        apart = f"different learning rates: {rates}" if rates else f"different windows: {passes}"
    return _Cause(
        f"ranks have different weights in {_named(latest.names)}, which `DistributedDataParallel` keeps equal",
        apart,
        "step after the same number of backward passes on all ranks"
        if passes and not rates
        else "change weights, gradients and learning rates in the same way on all ranks",
    )


def _cause_without_wrapper(facts: Mapping[int, Any], latest: Difference, step: int, size: int) -> _Cause | None:
    """Return the cause of a difference in all weights; None if the ranks may train different models on purpose."""
    if len(latest.names) < latest.of:
        return None
    if all(fact["by_hand"] for fact in facts.values()):
        return _Cause(
            f"the {size} ranks average their gradients and have different weights: they began with different ones",
            f"weights differ from step {step} on",
            "give all ranks the weights of rank 0 before training: `dist.broadcast(parameter.data, 0)`",
        )
    if all(fact["divided"] for fact in facts.values()):
        return _Cause(
            f"the {size} ranks train {size} different models: gradients are never averaged over ranks",
            f"{facts[min(facts)]['optimizer']} on each rank, from its own gradients",
            "wrap the model before training: `model = DistributedDataParallel(model)`",
        )
    return None


def _named(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:3] if name) or "weights"


def _common(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[tuple[int, int]]:
    """Return step and optimizer of the reads that two ranks have."""
    here, there = ({(step, optimizer) for step, optimizer, _ in rank["reads"]} for rank in (one, other))
    return here & there


def _compared(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield the differences of two ranks, for each step that both have read; nothing if they come and go."""
    there = {(step, optimizer): weights for step, optimizer, weights in other["reads"]}
    found, equal = [], False
    for step, optimizer, weights in one["reads"]:
        others = there.get((step, optimizer))
        if others is None or [weight[0] for weight in others] != [weight[0] for weight in weights]:
            continue
        unequal = []
        for (name, wrapped, values), (_, _, values_there) in zip(weights, others, strict=True):
            size = sum(map(abs, values)) + sum(map(abs, values_there))
            apart = 2 * sum(abs(here - there) for here, there in zip(values, values_there, strict=True))
            if apart > _EQUAL * size:
                unequal.append((name, wrapped, apart / size))
        if unequal:
            amount = max(apart for *_, apart in unequal)
            names = tuple(name for name, *_ in unequal)
            found.append(Difference(step, amount, names, any(wrapped for _, wrapped, _ in unequal), len(weights)))
        elif found:
            equal = True  # brought together again: weights are averaged now and then
    if not equal and len(found) >= _LEAST_READS:
        yield from found


def _unequal_passes(facts: Mapping[int, Any]) -> str:
    """Return the backward passes for each step of the first two ranks that differ in them; empty if all are equal."""
    first, *others = sorted(facts)
    for rank in others:
        here, there = facts[first]["passes"], facts[rank]["passes"]
        if max(here, there) > 1.2 * min(here, there):
            return f"{here:g} backward passes for each step on rank {first}, {there:g} on rank {rank}"
    return ""


def _unequal_rates(facts: Mapping[int, Any]) -> str:
    """Return the learning rates of the first two ranks that differ in them, as text; empty if all are equal."""
    first, *others = sorted(facts)
    for rank in others:
        for optimizer, rates in facts[rank]["rates"].items():
            here = facts[first]["rates"].get(optimizer, rates)
            for one, another in zip(here, rates, strict=False):
                if one != another:
                    return f"{one:g} on rank {first}, {another:g} on rank {rank}"
    return ""
