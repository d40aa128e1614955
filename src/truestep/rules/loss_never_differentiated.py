from __future__ import annotations

import re
from dataclasses import dataclass

from truestep.events import Event, LossComputed, LossFollowed, ModelCalled, OptimizerStepped, RunEnded, Site, TapeRead
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule

_LEAST = 3
_PART = 0.5
"""Least number of sampled steps with the loss, relative to the loss that is computed most: an evaluation has fewer."""
_MEASURED = re.compile(r"(?<![a-z])(val|valid|validation|test|eval|dev|held)(?![a-z])", re.IGNORECASE)
"""Words in the names of data for an evaluation."""


@dataclass(slots=True)
class _Calls:
    """The calls of a loss function at one line."""

    kind: str
    followed: int = 0
    differentiated: bool = False
    only_last: int = 0
    """Number of sampled steps in which only the last of several calls was differentiated."""


class LossNeverDifferentiated(Rule):
    """A loss is computed in each step, on outputs that no backward pass ever goes through.

    What it does
    ------------
    Marks the input of each loss function of torch at sampled steps, and looks for the mark on the tape of the backward
    passes. Reports a line with a loss that is computed with gradients in at least half of these steps, if no pass ever
    went through its input, in a finished run with other losses that are differentiated; and a line with several losses
    in each step, of which only the last is differentiated each time, as with ``backward()`` behind a loop over tasks.

    Why it matters
    --------------
    The loss is computed, often printed as well, and has no effect: it was left out of the sum, or its ``backward()`` is
    missing. In the proof, a model with two heads never learns its second task: 52 % of its labels are right instead of
    99 %.

    Example
    -------
    ::

        real_loss = criterion(discriminator(real), ones)
        fake_loss = criterion(discriminator(fake.detach()), zeros)
        fake_loss.backward()                # real_loss is only printed
        print(real_loss.item(), fake_loss.item())

    Fix
    ---
    Differentiate the sum, or compute a loss that is only printed under ``torch.no_grad()``::

        (real_loss + fake_loss).backward()

    Known false alarms
    ------------------
    An output that is computed only to be measured, in each training step, in train mode and with gradients on, under a
    name that does not say so. Not reported: a second loss of an output that is differentiated (a metric, also of the
    scaled output), losses of data with a name such as ``x_val`` or ``test_y``, all losses of a run that records graphs
    in eval mode, ``torch.autograd.grad``, and steps with more than four backward passes.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
    """

    id = "loss-never-differentiated"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "loss"
    watches = (LossComputed, LossFollowed, ModelCalled, TapeRead)
    needs = (LossFollowed, OptimizerStepped)
    explains = ("graph-cut", "no-grad-missing", "result-never-read", "step-without-backward")

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[Site | None, _Calls] = {}
        self._steps: set[int] = set()
        """Sampled steps with a backward pass that was read."""
        self._measures: set[Site | None] = set()
        """Lines with losses of data for an evaluation, by its name."""
        self._modes: set[bool] = set()
        """Modes of the calls that recorded a graph."""

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, LossFollowed):
            calls = self._lines.setdefault(event.site, _Calls(event.kind))
            calls.followed += 1
            calls.differentiated |= event.differentiated
            calls.only_last += event.only_last
        elif isinstance(event, TapeRead):
            self._steps.add(run.step)
        elif isinstance(event, ModelCalled) and event.tracked:
            self._modes.add(event.training)
        elif isinstance(event, LossComputed) and any(map(_MEASURED.search, event.given)):
            self._measures.add(event.site)

    def ended(self, event: RunEnded, run: Progress) -> None:
        differentiated = [calls.followed for calls in self._lines.values() if calls.differentiated]
        most = max(differentiated, default=len(self._steps))
        for site, calls in self._lines.items():
            if calls.followed == calls.only_last >= _LEAST and event.how in ("finished", "exited"):
                draft = self.report(
                    site,
                    f"of several `{calls.kind}` losses in each step only the last one is differentiated",
                    run=run,
                    label="no backward pass goes through the inputs of the others",
                    help="call `backward()` for each of them, or add them up",
                    unit="sampled steps",
                )
                draft.first_step, draft.count, draft.total = 0, calls.followed, calls.followed
            unused = most and not calls.differentiated and calls.followed >= max(_LEAST, _PART * most)
            if len(self._modes) == 2 or site in self._measures:
                unused = False
            if unused and event.how in ("finished", "exited"):
                draft = self.report(
                    site,
                    f"the `{calls.kind}` of this line is never differentiated",
                    run=run,
                    label="no backward pass goes through its input",
                    help="add it to the loss that is differentiated, or compute it under `torch.no_grad()`",
                    unit="sampled steps",
                )
                draft.first_step, draft.count, draft.total = 0, calls.followed, calls.followed
