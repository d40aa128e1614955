from __future__ import annotations

from collections.abc import Iterator

from truestep.events import BackwardEnded, Event, ModelCalled, OptimizerStepped, Site, TapeRead
from truestep.findings import Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import gradients
from truestep.syntax import Program, Suspicion


class TrainingWithoutGrad(Rule):
    """Training steps run with gradients disabled.

    What it does
    ------------
    Finds steps in which all model calls ran without gradients, the loss had no graph, and no parameter of the optimizer
    had a gradient.

    Why it matters
    --------------
    Nothing is learned: the backward pass starts and ends at the loss itself. PyTorch would raise an error here, but
    ``loss.requires_grad_()`` silences it without restoring the graph.

    Example
    -------
    ::

        with torch.no_grad():
            output = model(x)               # no graph is recorded
        loss = criterion(output, y)
        loss.requires_grad_()               # backward() runs, but reaches nothing
        loss.backward()
        optimizer.step()

    Fix
    ---
    Compute the training loss with gradients on, and keep ``torch.no_grad()`` for evaluation::

        output = model(x)
        loss = criterion(output, y)
        loss.backward()
        optimizer.step()

    Known false alarms
    ------------------
    None known. A step is reported only if no parameter of its optimizer had a gradient from any source. Evolution
    strategies, gradients set by hand, and frozen features followed by a head that tracks gradients are not reported.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad_.html
    """

    id = "training-without-grad"
    since = "0.1"
    severity = Severity.ERROR
    account = "parameters"
    watches = (ModelCalled, TapeRead, BackwardEnded, OptimizerStepped)
    needs = (ModelCalled, BackwardEnded, OptimizerStepped)
    explains = ("graph-cut", "loss-without-parameters", "step-without-backward", "loss-at-chance", "loss-never-changes")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return gradients.training_without_grad(program)

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[ModelCalled] = []
        self._leaf = self._tracked = self._leaf_read = False
        self._backward: Site | None = None

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ModelCalled(grad=False):
                self._calls.append(event)
            case ModelCalled():
                self._tracked = True
            case TapeRead(leaf_root=leaf):
                self._leaf_read = leaf
            case BackwardEnded():
                self._tracked |= event.written > 0
                if event.root == "leaf" or self._leaf_read:
                    self._leaf, self._backward = True, event.site
                self._leaf_read = False
            case OptimizerStepped():
                nothing = event.observed > 0 and event.absent_grad == event.observed
                if self._calls and self._leaf and nothing and not self._tracked:
                    self._found(event, run)
                self._calls = []
                self._leaf = self._tracked = False

    def _found(self, step: OptimizerStepped, run: Progress) -> None:
        call = next((c for c in self._calls if c.training), self._calls[0])
        if not self.seen_before(call.site, run):
            return
        self.report(
            call.site,
            f"`{run.model_name(call.model)}` was called without gradients in a training step",
            run=run,
            label="gradients are disabled here",
            related=(
                Mark(self._backward, "backward from a loss without a graph"),
                Mark(step.site, "no parameter had a gradient"),
            ),
            cost=f"0 of the {step.observed} observed parameters had a gradient at the step",
            help="call the model outside `torch.no_grad()` and remove `requires_grad_()` from the loss",
        )
