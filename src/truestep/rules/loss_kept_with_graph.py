from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from truestep.events import BackwardEnded, Event, GraphsKept, ModelCalled, RunEnded
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._sizes import size_text
from truestep.rules._syntax.models import totals
from truestep.syntax import Program, Suspicion


class LossKeptWithGraph(Rule):
    """Losses or outputs are kept together with their graphs, step after step.

    What it does
    ------------
    Marks the graphs of past steps without keeping them alive, and counts those that still exist. Reports a number that
    grows with the steps, and a sum or a list of losses from which backward passes have begun: it keeps their graphs
    until it begins again, as with each epoch.

    Why it matters
    --------------
    A loss that is appended to a list or added to a total keeps its graph. Memory grows with every step: after a
    backward pass the operations stay, without one the activations stay as well.

    Example
    -------
    ::

        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss)             # keeps the graph of every step

    Fix
    ---
    Keep the number, not the tensor with its history::

        losses.append(loss.item())          # or loss.detach(), which does not wait for the device

    Known false alarms
    ------------------
    None known. A bounded number of graphs that a later pass needs (truncated backpropagation through time, an episode)
    does not grow from one check to the next and is not reported.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory
    """

    id = "loss-kept-with-graph"
    since = "0.1"
    severity = Severity.ERROR
    account = "time"
    costs_resources = True
    watches = (GraphsKept, BackwardEnded, ModelCalled)
    needs: ClassVar[tuple[type[Event], ...]] = ()

    ALIVE = 16
    """Least number of graphs; fewer can be a window, an episode or a buffer."""
    BACKWARDS = 24
    """Least number of backward passes; fewer do not show whether graphs accumulate."""

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return totals.loss_kept_with_graph(program)

    def __init__(self) -> None:
        super().__init__()
        self._looks: dict[object, tuple[int, int]] = {}
        """Number of live graphs at the latest check, and the step of that check."""
        self._unrolled: list[GraphsKept] = []
        """Checks of graphs that a backward pass may still use, as in a long roll-out."""
        self._backwards = 0

    def unobserved(self, run: Progress) -> str:
        return "" if self._backwards >= self.BACKWARDS else GraphsKept.absent

    def again(self, event: Event, times: int) -> None:
        if isinstance(event, BackwardEnded):
            self._backwards += times

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case BackwardEnded():
                self._backwards += 1
                self._unrolled.clear()
            case ModelCalled(training=True, grad=True):
                self._settle(run)
            case GraphsKept(backward_ran=False):
                self._unrolled.append(event)
            case GraphsKept():
                self._judge(event, run)

    def ended(self, event: RunEnded, run: Progress) -> None:
        self._settle(run)

    def _settle(self, run: Progress) -> None:
        """Judge graphs that no backward pass has used by the time the training continues."""
        for kept in self._unrolled:
            self._judge(kept, run)
        self._unrolled.clear()

    def _judge(self, event: GraphsKept, run: Progress) -> None:
        key = (event.site, event.name)
        alive, step = self._looks.get(key, (event.alive, run.step))
        self._looks[key] = event.alive, run.step
        draft = self._drafts.get(key)
        grown = event.alive > alive and (run.step > step or not event.backward_ran)
        if draft is None and not event.used and (not grown or event.alive < self.ALIVE):
            return
        name = f"`{event.name}`" if event.name else "a variable"
        state = "operations" if event.backward_ran else "operations and activations"
        if draft is None:
            draft = self.report(
                event.site,
                f"{name} keeps the graphs of past steps alive",
                run=run,
                label=f"keeps a tensor with its graph at every step, including {state}",
                help="keep `loss.item()` or `loss.detach()` instead of the loss itself",
                confidence=Confidence.MEDIUM if event.used else Confidence.HIGH,
                unit="graphs",
                key=key,
            )
        elif grown and event.alive >= self.ALIVE:
            draft.confidence = Confidence.HIGH
        draft.count, draft.total = max(event.alive, draft.count), max(event.of, draft.total or 0)
        held = f", {size_text(event.kept_bytes)} each" if event.kept_bytes else ""
        all_of_it = f", {size_text(event.kept_bytes * event.alive)} in all" if event.kept_bytes else ""
        draft.cost = f"{event.alive} graphs of {event.nodes} operations alive at step {run.step}{held}{all_of_it}"
