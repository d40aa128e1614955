from __future__ import annotations

from truestep.events import BackwardEnded, Event, HandStepped, OptimizerStepped, TapeRead
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import steps
from truestep.rules._rule import Progress, Rule

_LEAST_TAPES = 3
_LEAST_STEPS = 8
"""Fewer steps without any gradient can be batches with a constant loss at the start."""


class LossWithoutParameters(Rule):
    """The loss depends on no trainable parameter, so the optimizer steps without gradients.

    What it does
    ------------
    Reads the autograd tape at sampled steps. Reports backward passes that reach no parameter of any model or optimizer,
    followed by steps of an optimizer that never had a gradient.

    Why it matters
    --------------
    Nothing is learned: in the proof the accuracy stays that of guessing. PyTorch raises an error if a loss tracks no
    gradients at all, but ``requires_grad_()`` on the loss, on the input or on a tensor between the model and the loss
    silences the error without restoring any gradient.

    Example
    -------
    ::

        predicted = model(x).argmax(1).float()
        predicted.requires_grad_()              # makes backward() run, as far as this tensor
        loss = F.mse_loss(predicted, y.float())
        loss.backward()
        optimizer.step()

    Fix
    ---
    Compute the loss from the output of the model, and remove ``requires_grad_()``::

        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

    Known false alarms
    ------------------
    None known. Not reported: losses on inputs that an optimizer holds (style transfer, adversarial noise), parameters
    updated by hand, gradients set by hand, and occasional batches with a constant loss. A cut right after the model is
    reported by `graph-cut`, disabled gradients by `training-without-grad`, and neither is reported twice. A loss that
    does not depend on the *input* is not detected, because data is not on the tape.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad_.html
    - https://docs.pytorch.org/docs/stable/notes/autograd.html
    """

    id = "loss-without-parameters"
    since = "0.1"
    severity = Severity.ERROR
    account = "loss"
    watches = (TapeRead, BackwardEnded, OptimizerStepped, HandStepped)
    needs = (TapeRead, OptimizerStepped, steps(_LEAST_TAPES))
    explains = ("loss-at-chance", "loss-never-changes", "result-never-read")

    def __init__(self) -> None:
        super().__init__()
        self._reads: list[TapeRead] = []
        self._stepped = self._readable = False
        self._fed: set[int] = set()
        """Optimizers that ever had a gradient, from any source."""
        self._empty: dict[int, tuple[int, int, int]] = {}
        """Optimizer to the step of the first tape that reached no parameter, and the number of such tapes and steps."""
        self._by_hand = False

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("" if self._readable else TapeRead.absent)

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case TapeRead():
                self._renew()
                self._reads.append(event)
                self._readable |= not event.opaque
            case BackwardEnded():
                self._renew()
            case HandStepped():
                self._by_hand = True
                self._drafts.clear()
            case OptimizerStepped(optimizer=number):
                if event.absent_grad < event.observed or event.closure or event.scaler:
                    self._fed.add(number)
                    self.withdraw(number)
                elif event.observed and number not in self._fed and not self._by_hand:
                    self._judge(event, run)
                self._stepped = True

    def _renew(self) -> None:
        """Discard the tapes of a step at the next backward pass: several optimizers may step after one pass."""
        if self._stepped:
            self._reads, self._stepped = [], False

    def _judge(self, step: OptimizerStepped, run: Progress) -> None:
        number = step.optimizer
        first, tapes, steps = self._empty.get(number, (run.step, 0, 0))
        tapes += bool(self._reads)
        self._empty[number] = first, tapes, steps + 1
        self._count(number, steps + 1)
        if not self._reads:
            return
        if not all(_reaches_nothing(read, run) for read in self._reads) or not _trainable(number, run):
            self._fed.add(number)
            self.withdraw(number)
        elif tapes >= _LEAST_TAPES:
            self._found(self._reads[-1], step, run)

    def _found(self, read: TapeRead, step: OptimizerStepped, run: Progress) -> None:
        number = step.optimizer
        first, tapes, steps = self._empty[number]
        name = run.optimizer_name(number)
        draft = self.report(
            read.site,
            "the loss depends on no trainable parameter",
            run=run,
            label="reaches only a tensor that is not a parameter" if read.reached else "from a tensor without a graph",
            related=(Mark(step.site, f"`{name}` stepped without any gradient"),),
            help="compute the loss from the output of the model, and remove `requires_grad_()` between the two",
            confidence=Confidence.LOW,
            key=number,
        )
        draft.cost = (
            f"no parameter of `{name}` has had a gradient, or was reached in {tapes} backward passes that were read"
        )
        draft.first_step = first
        self._count(number, steps)

    def _count(self, number: int, steps: int) -> None:
        draft = self._drafts.get(number)
        if draft is not None:
            draft.count = steps
            if steps >= _LEAST_STEPS:
                draft.confidence = Confidence.HIGH

    def again(self, event: Event, times: int) -> None:
        if isinstance(event, OptimizerStepped) and event.optimizer in self._drafts:
            first, tapes, steps = self._empty[event.optimizer]
            self._empty[event.optimizer] = first, tapes, steps + times
            self._count(event.optimizer, steps + times)


def _reaches_nothing(read: TapeRead, run: Progress) -> bool:
    """Return True if a tape reaches no parameter, unless the model's output was cut off directly (`graph-cut`)."""
    if read.opaque or any(p in run.held_by or _of_a_model(p, run) for p in read.reached):
        return False
    return bool(read.reached) or not any(p in run.held_by for p in read.forwarded)


def _of_a_model(parameter: int, run: Progress) -> bool:
    met = run.parameters.get(parameter)
    return met is not None and met.model is not None


def _trainable(optimizer: int, run: Progress) -> bool:
    mine = [p for p, owners in run.held_by.items() if optimizer in owners]
    return any(p not in run.parameters or run.parameters[p].trainable for p in mine)
