"""The account of samples: passes over the data and their order, and the values that models are called on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from truestep import events as ev
from truestep.accounts._account import Account, Entry, amount, line_of
from truestep.accounts.calls import measures
from truestep.accounts.run_objects import Objects
from truestep.events import Event, LoaderMet, Site

_Key = tuple[str, int | Site | None]
"""Kind of the fact, and number of the loader; for "evaluations" their line, and None for "steps"."""
_OF_LINES = ("evaluations", "steps")
CLEAN, TRAINED = 0.1, 0.8
"""Shares of rows that were trained on: below the first one an evaluation is on other data, from the second on these."""
_SELDOM = 8
"""Least number of steps for each evaluation; calls in more of them, of a teacher or a target network, are a part."""
_ORDERS = {"random": "shuffled", "sequential": "in order"}


@dataclass(slots=True)
class Inputs:
    """The first arguments of the calls of one model for one purpose, over the calls that were read."""

    reads: list[ev.InputsRead] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """Return the mean of all values read."""
        return sum(read.mean for read in self.reads) / len(self.reads)

    @property
    def spread(self) -> float:
        """Return the standard deviation of all values read, around their mean."""
        mean = self.mean
        return math.sqrt(sum(read.spread**2 + (read.mean - mean) ** 2 for read in self.reads) / len(self.reads))


@dataclass(slots=True)
class Evaluation:
    """Rows of one line's calls without gradients between two steps, compared with those of the training."""

    last: ev.RowsEvaluated
    samples: int = 0
    hits: int = 0
    inside: int = 0
    expected: float = 0.0
    """Number of hits to expect if all these rows of the table of the training were trained on."""

    def add(self, event: ev.RowsEvaluated) -> None:
        """Enter a call."""
        self.last = event
        self.samples += event.samples
        self.hits += event.hits
        self.inside += event.inside
        self.expected += event.inside * event.seen / max(1, event.rows)

    @property
    def share(self) -> float:
        """Share of the rows that were trained on, estimated from the steps that were read."""
        if self.last.windows or not self.expected:
            return self.hits / self.samples
        return min(1.0, self.hits / self.expected) * self.inside / self.samples


@dataclass(slots=True)
class _Pass:
    """A pass over a loader that has not ended."""

    site: Site | None
    called: bool = False
    trained: bool = False


class Samples(Account[_Key]):
    """Counts passes and batches of each loader, and collects the inputs of each model."""

    name = "samples"

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self.inputs: dict[tuple[int, bool], Inputs] = {}
        """Model, and True for calls with gradients in train mode, to its inputs."""
        self.features: dict[tuple[int, str, bool], Inputs] = {}
        """The same for a later argument, of models with whole numbers first."""
        self.levels: dict[tuple[int, bool], list[ev.LevelsRead]] = {}
        """The same for the levels of the first arguments."""
        self.measuring: set[tuple[int, Site | None]] = set()
        """Models and lines with calls that measure the model; the steps of a sampler do not."""
        self.trained: dict[int, Site | None] = {}
        """Loaders with a batch that was the latest at a backward pass, with the line that reads them."""
        self.evaluated: dict[int, Site | None] = {}
        """Loaders with a whole pass of calls without a backward pass, with the line that reads them."""
        self.compared: dict[int, ev.SamplesShared] = {}
        """Loader of an evaluation to the latest comparison of its samples with those of the training."""
        self._others = False
        """True once a model is evaluated on samples that were not compared, as far as is known."""
        self.unread: list[ev.LoaderUnread] = []
        self.evaluations: dict[Site | None, Evaluation] = {}
        """Line to its latest evaluation on rows of which it is known whether the training read them."""
        self.once_clean: set[Site | None] = set()
        """Lines with an earlier evaluation on rows that were not trained on, as of folds that rotate."""
        self.once_trained: set[Site | None] = set()
        """Lines with an earlier evaluation on rows of the training."""
        self.rows_unread: list[ev.RowsUnread] = []
        self.tables: dict[str, list[ev.RowsRead]] = {}
        """Name of a table of the program to the batches of training that were found in it."""
        self._current: dict[int, _Pass] = {}
        self._since: set[Site | None] = set()
        """Lines with an evaluation on rows since the latest step."""
        self._called: set[Site | None] = set()
        """Lines with a call without gradients since the latest step."""

    def note(self, event: Event) -> None:
        """Enter an event."""
        match event:
            case ev.LoaderStarted():
                self.tally.add(("passes", event.loader))
                self._current[event.loader] = _Pass(event.site)
            case ev.BatchDrawn():
                self.tally.add(("batches", event.loader))
            case ev.ModelCalled() | ev.FunctionCalled():
                trains = event.training if isinstance(event, ev.ModelCalled) else event.tracked
                if event.loader in self._current:
                    self._current[event.loader].called = True
                self._others = self._others or (not event.tracked and event.loader is None)
                if event.use and (not event.grad or (measures(event) and not trains)):
                    self.measuring.add((event.model, event.site))
                if not event.tracked and event.site not in self._called:
                    self._called.add(event.site)
                    self.tally.add(("evaluations", event.site))
            case ev.BackwardEnded(loader=int(loader)) if loader in self._current:
                if not self._current[loader].trained:
                    self._current[loader].trained = True
                    self.tally.add(("trained", loader))
                self.trained.setdefault(loader, self._current[loader].site)
            case ev.LoaderEnded():
                self.tally.add(("whole", event.loader))
                self._ended(event.loader)
            case ev.SamplesShared():
                self.compared[event.loader] = event
            case ev.CheckSkipped(check="overlap"):
                self._others = True
            case ev.LoaderUnread():
                self.unread.append(event)
            case ev.RowsEvaluated(copies=False):
                if event.site not in self._since:
                    self._since.add(event.site)
                    before = self.evaluations.get(event.site)
                    if before is not None and before.last.seen and before.share < CLEAN:
                        self.once_clean.add(event.site)
                    if before is not None and before.last.seen and before.share >= TRAINED:
                        self.once_trained.add(event.site)
                    self.evaluations[event.site] = Evaluation(event)
                self.evaluations[event.site].add(event)
            case ev.RowsRead():
                self.tables.setdefault(event.table, []).append(event)
            case ev.RowsUnread():
                self.rows_unread.append(event)
            case ev.OptimizerStepped() | ev.HandStepped():
                self._since.clear()
                self._called.clear()
                self.tally.add(("steps", None))
            case ev.InputsRead(argument=""):
                self.inputs.setdefault((event.model, event.training), Inputs()).reads.append(event)
            case ev.LevelsRead():
                self.levels.setdefault((event.model, event.training), []).append(event)
            case ev.InputsRead():
                key = event.model, event.argument, event.training
                self.features.setdefault(key, Inputs()).reads.append(event)

    def _ended(self, loader: int) -> None:
        current = self._current.pop(loader, None)
        if current is not None and current.called and not current.trained:
            self.evaluated.setdefault(loader, current.site)

    def measures(self, model: int, reads: Iterable[ev.InputsRead | ev.LevelsRead | ev.FirstNormRead]) -> bool:
        """Return True if all these calls measure the model."""
        return all((model, read.site) in self.measuring for read in reads)

    @property
    def latest(self) -> list[Evaluation]:
        """The evaluations on rows since the latest step."""
        return [self.evaluations[site] for site in self._since if site in self.evaluations]

    def is_seldom(self, site: Site | None) -> bool:
        """Return True if the evaluations of a line are few next to the steps."""
        return _SELDOM * self.tally["evaluations", site] <= self.tally["steps", None]

    @property
    def repeats(self) -> int:
        """Number of passes over the training data; over a table without a loader, estimated from the steps read."""
        passes = [self.tally["trained", loader] for loader in self.trained]
        for reads in self.tables.values():
            share = sum(min(1.0, one.read / one.rows) for one in reads) / len(reads)
            passes.append(int(share * self.tally["steps", None]))
        return max(passes, default=0)

    def entry(self) -> Entry | None:
        """Return the passes over the data that the run trained on, and the inputs of its models."""
        loaders = {number for kind, number in self.tally if kind not in _OF_LINES and isinstance(number, int)}
        parts = self._passes() + self._shared() + [f"{one.name} never read" for one in self.unread[:1]] + self._values()
        facts = {
            "loaders": [self._facts(number) for number in sorted(loaders)],
            "inputs": [
                _described(inputs) | {"model": self.objects.model_name(model), "training": training}
                for (model, training), inputs in self.inputs.items()
            ],
            "tables": [_rows(name, reads) for name, reads in self.tables.items()],
            "unread": [{"name": one.name, "site": line_of(one.site)} for one in self.unread],
        }
        return Entry("; ".join(parts), facts) if parts else None

    def _passes(self) -> list[str]:
        drawn: dict[int, tuple[int, LoaderMet | None]] = {}
        for number in self.trained:
            met = self.objects.loaders.get(number)
            key = met.dataset if met is not None else -number
            before = drawn.get(key, (0, None))[0]
            drawn[key] = (before + self.tally["trained", number], met)
        if not drawn:
            return []
        passes, met = max(drawn.values(), key=lambda one: one[0])
        order = "" if met is None or met.iterable else _ORDERS.get(met.sampler, "")
        others = f" of {met.name}, {amount(len(drawn) - 1, 'other data set')}" if len(drawn) > 1 and met else ""
        return [f"{amount(passes, 'pass')}{others}" + (f", {order}" if order else "")]

    def _shared(self) -> list[str]:
        """Return a text if every evaluation, as far as loaders show, is on samples of the training."""
        known = bool(self.compared) and not self._others and self.evaluated.keys() <= self.compared.keys()
        only = known and all(one.shared == one.samples for one in self.compared.values())
        return ["evaluated on these samples only"] if only else []

    def _values(self) -> list[str]:
        """Return mean and spread of the inputs of the model that was called on most, in training and in evaluation."""
        numbers = {model for model, _ in self.inputs}
        both = {model for model in numbers if (model, True) in self.inputs and (model, False) in self.inputs}
        if not numbers:
            return []
        model = min(both or numbers)
        texts = [
            f"{inputs.mean:.2g} +- {inputs.spread:.2g} in {purpose}"
            for purpose, training in (("training", True), ("evaluation", False))
            if (inputs := self.inputs.get((model, training))) is not None and inputs.reads[0].floating
        ]
        return [f"inputs {', '.join(texts)}"] if texts else []

    def _facts(self, number: int) -> dict[str, Any]:
        met, compared = self.objects.loaders.get(number), self.compared.get(number)
        return {
            "name": self.objects.loader_name(number),
            "site": line_of(_site(met)),
            "passes": self.tally["passes", number],
            "whole_passes": self.tally["whole", number],
            "batches": self.tally["batches", number],
            "batches_of_a_pass": None if met is None else met.batches,
            "order": "" if met is None else met.sampler,
            "trained_on": number in self.trained,
            "evaluated_on": number in self.evaluated,
            "samples": None if compared is None else compared.samples,
            "samples_trained_on": None if compared is None else compared.shared,
        }


def _site(met: LoaderMet | None) -> Site | None:
    return None if met is None else met.site


def _rows(name: str, reads: list[ev.RowsRead]) -> dict[str, Any]:
    """Return the places of the rows of a table that the batches read were made of."""
    return {
        "name": name,
        "site": line_of(reads[0].site),
        "rows": max(read.rows for read in reads),
        "first": min(read.least for read in reads),
        "last": max(read.most for read in reads),
        "calls_read": len(reads),
    }


def _described(inputs: Inputs) -> dict[str, Any]:
    first = inputs.reads[0]
    return {
        "site": line_of(first.site),
        "mean": float(f"{inputs.mean:.4g}"),
        "spread": float(f"{inputs.spread:.4g}"),
        "least": min(read.least for read in inputs.reads),
        "most": max(read.most for read in inputs.reads),
        "dtype": first.dtype,
        "shape": list(first.shape),
        "calls_read": len(inputs.reads),
    }
