from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from truestep.events import BackwardEnded, Event, GradientsTaken, GraphsRetained, Site
from truestep.findings import Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._sizes import size_text
from truestep.rules._syntax.models import graphs
from truestep.syntax import Program, Suspicion

_MOST_LINES = 64
"""Most lines to remember, which bounds the memory."""


class RetainGraphInLoop(Rule):
    """Every backward pass retains its graph, and no other pass ever uses one of them.

    What it does
    ------------
    Follows the graphs that ``backward(retain_graph=True)`` retains until they are freed. Reports a line if no other
    backward pass used any of its first 24 graphs, in whole or in part, and each was still in memory when the model
    recorded the next one.

    Why it matters
    --------------
    A backward pass frees the activations of its graph as it runs. A retained graph keeps them until the loss variable
    is assigned again, which is after the next forward pass, so two steps are in memory at once. In the proof the peak
    grew by 113 MiB instead of 68. The flag also hides errors: without it, a second pass through a graph that is kept by
    mistake (a hidden state, a running loss) raises an error.

    Example
    -------
    ::

        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward(retain_graph=True)    # the graph stays until loss is assigned again
            optimizer.step()

    Fix
    ---
    Remove the flag::

        loss.backward()

    Known false alarms
    ------------------
    A loop that retains graphs for a second pass is reported until the first such pass; the finding is then withdrawn.
    Not reported: programs with more than one line of ``backward`` (GANs, several losses), graphs that
    ``autograd.grad`` or a later pass goes through, ``create_graph=True``, and a step in a separate function, which
    frees its graph when it returns.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
    """

    id = "retain-graph-in-loop"
    since = "0.1"
    severity = Severity.SPEED
    account = "time"
    watches = (GraphsRetained, BackwardEnded, GradientsTaken)
    needs: ClassVar[tuple[type[Event], ...]] = (BackwardEnded,)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return graphs.retain_graph_in_loop(program)

    def __init__(self) -> None:
        super().__init__()
        self._lines: set[Site | None] = set()
        """Lines that ran a backward pass."""
        self._takers: set[Site | None] = set()
        """Lines that called ``autograd.grad``."""
        self._retained = self._followed = False

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or (GraphsRetained.absent if self._retained and not self._followed else "")

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case BackwardEnded():
                self._retained |= event.retained
                self._met(event.site, self._lines)
                if len(self._lines) > 1:
                    self._take_back()
            case GradientsTaken():
                self._met(event.site, self._takers)
            case GraphsRetained():
                self._followed = True
                if event.used:
                    self._take_back()
                elif event.outlived >= event.followed and self._lines <= {event.site}:
                    self._found(event, run)

    def _met(self, site: Site | None, lines: set[Site | None]) -> None:
        """Register a line; withdraw the findings if it is new, because the graphs may be retained for it."""
        if site not in lines and len(lines) < _MOST_LINES:
            lines.add(site)
            self._take_back()

    def _take_back(self) -> None:
        for key in list(self._drafts):
            self.withdraw(key)

    def _found(self, event: GraphsRetained, run: Progress) -> None:
        draft = self.report(
            event.site,
            "every backward pass retains its graph, and no other pass uses it",
            run=run,
            label="retains the graph with its activations",
            help="remove `retain_graph=True`",
            unit="graphs",
        )
        size = f" that hold {size_text(event.kept_bytes)}" if event.kept_bytes else ""
        draft.cost = f"a graph of {event.nodes} operations{size} in memory together with the next, counted on the tape"
        draft.count = draft.total = event.followed
        draft.first_step = 0
