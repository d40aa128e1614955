from __future__ import annotations

from truestep import events as ev
from truestep.events import Event
from truestep.findings import Confidence, Severity
from truestep.rules._conditions import Condition
from truestep.rules._rule import Progress, Rule

_LEAST_STEPS = 50
_LEAST_STEPS_LIVE = 1_000
"""The same while the run goes on: a loss with weights of zeros moves late."""
_LEAST_READS = 7
_USED = Condition(
    f"fewer than {_LEAST_STEPS} steps on the gradients of a loss",
    lambda run: any(run.gradients.used_at(site) >= _LEAST_STEPS for site in run.losses.lines),
)


class LossNeverChanges(Rule):
    """The loss keeps one value from the first step to the last.

    What it does
    ------------
    Compares the values of a loss at sampled steps, up to rounding errors. Reports a backward pass that starts from the
    same value each time, over at least 50 steps on changing parameters or batches.

    Why it matters
    --------------
    A loss that measures something changes with the parameters and the batch. One that does not compares a thing with
    itself: a policy with a reference that is the same object, a student with a teacher that is the student, a value
    with its own copy. Its gradient need not be zero, so the parameters move, and nothing holds them. In the proof the
    model unlearns the language that its reference was to preserve: 5.9 nats per token instead of 1.9.

    Example
    -------
    ::

        reference = policy                      # another name, not a copy
        with torch.no_grad():
            before = log_probability(reference, batch)
        after = log_probability(policy, batch)
        loss = -F.logsigmoid(after - before).mean()     # 0.6931 in each step

    Fix
    ---
    Copy the model that the loss compares with::

        reference = copy.deepcopy(policy)

    Known false alarms
    ------------------
    A surrogate with a gradient that is right and a value that is constant by construction, other than 0. Training that
    is continued on a single batch after it has converged.

    References
    ----------
    - https://arxiv.org/abs/2305.18290
    - https://docs.pytorch.org/docs/stable/notes/autograd.html
    """

    id = "loss-never-changes"
    since = "0.1"
    severity = Severity.ERROR
    account = "loss"
    watches = (ev.LossRead,)
    needs = (ev.LossRead, _USED)

    def observe(self, event: Event, run: Progress) -> None:
        self._look(run, _LEAST_STEPS_LIVE)

    def ended(self, event: ev.RunEnded, run: Progress) -> None:
        self._look(run, _LEAST_STEPS)

    def _look(self, run: Progress, least: int) -> None:
        for site, line in run.losses.lines.items():
            used = run.gradients.used_at(site)
            if line.moved or line.reads < _LEAST_READS or not line.first or used < least:
                self.withdraw(site)
                continue
            draft = self.report(
                site,
                f"the loss kept one value, {line.first:.4g}, over the whole run",
                run=run,
                label=f"starts from {line.first:.4g} each time",
                help="compare with a copy, such as `copy.deepcopy(model)`, or with other data",
                confidence=Confidence.HIGH if len(run.losses.lines) == 1 else Confidence.MEDIUM,
                unit="sampled losses",
            )
            draft.count, draft.total, draft.first_step = line.reads, line.reads, None
