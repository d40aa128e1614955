from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from truestep.events import BackwardEnded, Event, GraphsChained
from truestep.findings import Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import graphs
from truestep.syntax import Program, Suspicion

_FIRST, _ENOUGH = 16, 32
"""Lengths of a chain of graphs, in steps: a window of truncated backpropagation stops growing between the two."""


class HiddenStateNotDetached(Rule):
    """A state carried from step to step keeps its graph, so each backward pass goes through all earlier steps.

    What it does
    ------------
    Follows the graphs that ``backward(retain_graph=True)`` retains. Reports a line if its backward pass went through
    the graphs of 16 and later of 32 earlier steps, with updates of the parameters between them.

    Why it matters
    --------------
    Memory grows with every step, and each step takes longer than the one before. In the proof the peak grew by 42 MiB
    in 60 steps, instead of not at all. With most optimizers such a pass raises an error, because the weights that it
    needs have changed. With fused optimizers and updates by hand through ``.data`` it does not, and the gradients of
    older steps are computed with weights that those steps never used.

    Example
    -------
    ::

        hidden = torch.zeros(1, batch, 32)
        for x, y in windows:
            output, hidden = cell(x, hidden)    # hidden carries the graphs of all earlier windows
            loss = criterion(head(output), y)
            optimizer.zero_grad()
            loss.backward(retain_graph=True)
            optimizer.step()

    Fix
    ---
    Detach the state at the end of each window, and remove ``retain_graph=True``::

        hidden = hidden.detach()                # an LSTM has two: tuple(h.detach() for h in hidden)

    Known false alarms
    ------------------
    None known. Truncated backpropagation through time over a window of a few steps goes through only that many graphs.
    Several backward passes within one step, and graphs made with ``create_graph=True``, do not count.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory
    """

    id = "hidden-state-not-detached"
    since = "0.1"
    severity = Severity.ERROR
    account = "calls"
    costs_resources = True
    watches = (GraphsChained, BackwardEnded)
    needs: ClassVar[tuple[type[Event], ...]] = (BackwardEnded,)
    leads_to = ("loss-kept-with-graph",)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return graphs.hidden_state_not_detached(program)

    def __init__(self) -> None:
        super().__init__()
        self._nodes: dict[object, int] = {}
        self._retained = 0

    def unobserved(self, run: Progress) -> str:
        # A chain needs this many graphs to be certain; without retained graphs the run would have crashed.
        few = 0 < self._retained < _ENOUGH
        return super().unobserved(run) or (f"fewer than {_ENOUGH} passes with a retained graph" if few else "")

    def again(self, event: Event, times: int) -> None:
        if isinstance(event, BackwardEnded) and event.retained:
            self._retained += times

    def observe(self, event: Event, run: Progress) -> None:
        self.again(event, 1)
        if not isinstance(event, GraphsChained):
            return
        if event.steps < _ENOUGH:
            self._nodes[event.site] = event.nodes
            return
        before = self._nodes.get(event.site)
        if before is None or event.nodes <= before:
            return
        draft = self.report(
            event.site,
            "the backward pass goes through the graphs of all earlier steps",
            run=run,
            label=f"goes back through {event.steps} steps, and one more each time",
            help="detach the state carried to the next step (`hidden.detach()`) and remove `retain_graph=True`",
        )
        draft.cost = (
            f"{before} operations on the tape after {_FIRST} steps, {event.nodes} after {event.steps} (counted)"
        )
        draft.count, draft.first_step = event.steps, run.step - event.steps
