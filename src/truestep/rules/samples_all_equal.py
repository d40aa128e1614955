from __future__ import annotations

from truestep.events import BatchRead, Event
from truestep.findings import Severity
from truestep.rules._rule import Progress, Rule

_LEAST_READS = 3


class SamplesAllEqual(Rule):
    """A loader gives one and the same sample over and over, under different labels.

    What it does
    ------------
    Reads the first batches of each DataLoader on the CPU. Reports a loader whose batches hold one sample many times:
    all rows of the inputs are equal, at least 8 numbers wide and not constant, while the labels beside them differ.

    Why it matters
    --------------
    The model sees one input for all labels and can only learn how frequent they are. In the proof accuracy ends at
    0.51, of three classes, instead of 1.00; the loss still falls a little.

    Example
    -------
    ::

        buffer = np.empty(24, dtype=np.float32)
        for label in labels:
            sensor.read_into(buffer)
            samples.append(torch.from_numpy(buffer))    # the same memory every time

    Fix
    ---
    Copy each sample when it is kept; ``torch.from_numpy`` and ``torch.as_tensor`` do not::

        samples.append(torch.from_numpy(buffer.copy()))

    Known false alarms
    ------------------
    None known. Quiet are constant inputs (all zeros, an intercept), inputs without labels, and batches in which any
    other tensor differs from row to row.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html
    """

    id = "samples-all-equal"
    since = "0.1"
    severity = Severity.ERROR
    watches = (BatchRead,)
    needs = (BatchRead,)

    def __init__(self) -> None:
        super().__init__()
        self._alike: dict[int, int] = {}
        """Loader to how many batches of equal samples it gave; -1 once it gave another."""

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, BatchRead):
            return
        before = self._alike.get(event.loader, 0)
        self._alike[event.loader] = reads = before + 1 if event.alike and before >= 0 else -1
        if reads < 0:
            self.withdraw(event.loader)
        if reads < _LEAST_READS or event.loader not in run.loaders:
            return
        draft = self.report(
            run.loaders[event.loader].site,
            f"`{run.loader_name(event.loader)}` gives one and the same sample under different labels",
            run=run,
            label=f"all {event.alike} samples of a batch are equal",
            help="copy each sample when it is kept: `torch.from_numpy(buffer.copy())`",
            cost="the inputs tell nothing about the labels",
            unit="batches read",
            key=event.loader,
        )
        draft.count = draft.total = reads
