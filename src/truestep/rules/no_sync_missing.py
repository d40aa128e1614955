from __future__ import annotations

import itertools
from math import prod

from truestep.events import Event, OptimizerStepped, ReplicaRead, ReplicaWrapped
from truestep.findings import Severity
from truestep.rules._rule import Progress, Rule

_LEAST_BYTES = 1_000_000
"""Size of gradients below which an average takes about as long as nothing."""
_COUNTED = 10
"""Forward passes that a wrapper counts exactly."""
_READS = 3


class NoSyncMissing(Rule):
    """Gradients are averaged over ranks after each micro-batch of an accumulation.

    What it does
    ------------
    Compares, at the first steps, the number of forward passes through `DistributedDataParallel` that prepared an
    average of gradients with the number of optimizer steps. Reports a wrapper with two or more averages in each step.

    Why it matters
    --------------
    Only the sum of the last micro-batch is needed: the earlier averages cost time and change nothing. In the proof, on
    two processes of one machine, a step of eight micro-batches takes more than twice as long.

    Example
    -------
    ::

        for number, (inputs, labels) in enumerate(loader):
            loss = F.cross_entropy(model(inputs), labels) / 4
            loss.backward()                                  # an average over ranks each time
            if number % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()

    Fix
    ---
    Average in the last micro-batch of a window only::

        last = number % 4 == 3
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(inputs), labels) / 4
            loss.backward()

    Known false alarms
    ------------------
    A model that is called twice for one step, as the discriminator of a GAN: the same fix saves time there too. Not
    reported: models with less than 1 MB of gradients.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html#torch.nn.parallel.DistributedDataParallel.no_sync
    """

    id = "no-sync-missing"
    since = "0.1"
    severity = Severity.SPEED
    account = "gradients"
    watches = (OptimizerStepped, ReplicaRead, ReplicaWrapped)
    needs = (ReplicaRead,)
    costs_resources = True

    def __init__(self) -> None:
        super().__init__()
        self._wrapped: dict[int, ReplicaWrapped] = {}
        self._steps: dict[int, int] = {}
        """Optimizer to the number of its steps."""
        self._reads: dict[int, list[int]] = {}
        """Wrapper to its prepared passes at the first steps of its optimizer."""

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ReplicaWrapped():
                self._wrapped[event.replica] = event
            case OptimizerStepped():
                self._steps[event.optimizer] = self._steps.get(event.optimizer, 0) + 1
            case ReplicaRead():
                self._read(event, run)

    def _read(self, event: ReplicaRead, run: Progress) -> None:
        replica, step = event.replica, self._steps.get(event.optimizer, 0)
        reads = self._reads.setdefault(replica, [])
        if len(reads) != step:  # the steps between were not read
            return
        reads.append(event.prepared)
        if step == 0 or step > _READS:
            return
        # The wrapper counts a forward pass at the start of the next one: the last one of the step is not in the number.
        averages = [latest - before for before, latest in itertools.pairwise([-1, *reads])]
        if min(averages[-2:]) < 2:
            return
        times = averages[-1] if event.prepared < _COUNTED else averages[-2]
        wrapped = self._wrapped.get(replica)
        size = 4 * sum(prod(run.parameters[number].shape) for number in wrapped.parameters) if wrapped else 0
        if wrapped is None or size < _LEAST_BYTES:
            return
        self.report(
            wrapped.site,
            f"gradients are averaged over ranks {times} times for one step, in each of its backward passes",
            run=run,
            label=f"{times} averages a step, and one is needed",
            help="run all but the last micro-batch of a step in `with model.no_sync():`",
            unit="steps read",
            cost=f"{times - 1} of {times} averages of {size / 1e6:,.0f} MB in each step are not needed",
            key=replica,
        )
