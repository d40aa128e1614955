from __future__ import annotations

import itertools
from collections.abc import Iterator

from truestep.events import BackwardEnded, Event, ModelCalled, OptimizerStepped, ParametersUnchanged, TapeRead
from truestep.findings import Mark, Severity
from truestep.rules._conditions import steps
from truestep.rules._parts import in_leaf_modules
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import graphs
from truestep.syntax import Program, Suspicion

_LEAST_STEPS = 3


class GraphCut(Rule):
    """The graph is cut between parameters and loss, so the loss cannot reach them.

    What it does
    ------------
    Reads the autograd tape at sampled steps. Reports trainable parameters at the front of a model (or all of them, or
    those before a cut in the source) if their modules ran in every training call, the stepping optimizer holds them,
    and no loss has ever reached them. If exactly one expression between the last unreached call and the next call cuts
    the graph, it is reported, else the backward pass. Custom functions hide a part of the tape: then the parameters
    must also have kept their values.

    Why it matters
    --------------
    The parameters before the cut keep their initial values. The rest learns on top of them, so the loss can still fall.

    Example
    -------
    ::

        features = encoder(x).detach()      # or no_grad(), .item(), .numpy(), torch.tensor(...), argmax
        loss = criterion(head(features), y)
        loss.backward()                     # reaches the head, never the encoder
        optimizer.step()

    Fix
    ---
    Use only tensor operations between parameters and loss; ``.item()`` and ``.detach()`` are for logging::

        loss = criterion(head(encoder(x)), y)

    Known false alarms
    ------------------
    A warm-up that detaches features is reported until the features are trained; the finding is then withdrawn. Not
    reported: parameters that another backward pass reaches (detached fakes), that no optimizer holds (target networks)
    or that do not run every time (experts, layer drop), extra heads with unused outputs, and parts that run under
    ``torch.no_grad()`` with weights that were loaded (feature extraction).

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
    """

    id = "graph-cut"
    since = "0.1"
    severity = Severity.ERROR
    account = "parameters"
    watches = (ModelCalled, TapeRead, BackwardEnded, OptimizerStepped, ParametersUnchanged)
    needs = (TapeRead, OptimizerStepped, steps(_LEAST_STEPS))
    explains = ("loss-at-chance", "loss-without-parameters", "parameters-without-effect")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return graphs.graph_cut(program)

    def __init__(self) -> None:
        super().__init__()
        self._reads: list[TapeRead] = []
        self._order: list[int] = []
        self._stepped = self._readable = False
        self._cut: dict[int, int] = {}
        self._judged: dict[int, tuple[int, int]] = {}
        self._found: dict[object, tuple[int, ...]] = {}

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("" if self._readable else TapeRead.absent)

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ModelCalled(grad=True):
                self._renew()
                self._order.append(event.model)
            case TapeRead():
                self._renew()
                self._reads.append(event)
                self._readable |= not event.opaque
                self._take_back(run)
            case BackwardEnded():
                self._renew()
            case OptimizerStepped():
                if self._reads:
                    self._judge(event, run)
                self._stepped = True
            case ParametersUnchanged():
                self._take_back(run)

    def _renew(self) -> None:
        """Discard the calls and tapes of the last step once the next iteration begins."""
        if self._stepped:
            self._reads, self._order, self._stepped = [], [], False

    def _judge(self, step: OptimizerStepped, run: Progress) -> None:
        """Compare the parameters that ran with those that were reached, for the stepping optimizer."""
        number, site = step.optimizer, self._reads[-1].site
        times, first = self._judged.get(number, (0, run.step))
        times += 1
        self._judged[number] = times, first
        for parameter in {p for read in self._reads for p in read.forwarded + read.without_grad} - run.weights.reached:
            if number in run.held_by.get(parameter, ()):
                self._cut[parameter] = self._cut.get(parameter, 0) + 1
        here = next((read for read in self._reads if read.cut), None)
        cut, held = self._front(number, times, run, anywhere=here is not None)
        opaque = any(read.opaque for read in self._reads)
        if times < _LEAST_STEPS or not cut or (opaque and (run.step < 10 or not run.weights.still.issuperset(cut))):
            return
        self._found[site] = cut
        name = run.optimizer_name(number)
        by = f"`{here.cut_by}`" if here else "`.detach()`, `.item()`, `argmax` or `torch.tensor(...)`"
        missed = f"does not reach {run.parameter_names(cut)}"
        draft = self.report(
            here.cut if here else site,
            f"the loss cannot reach {len(cut)} of {held} parameters of `{name}`",
            run=run,
            label="cuts the graph" if here else missed,
            related=(
                *((Mark(site, missed),) if here else ()),
                Mark(step.site, f"`{name}` stepped without their gradients"),
            ),
            unit="sampled backward passes",
            help=f"remove {by} between these parameters and the loss",
            key=site,
        )
        draft.cost = f"these {len(cut)} parameters got no gradient in any of the {times} backward passes that were read"
        draft.count = draft.total = times
        draft.first_step = first

    def _front(self, optimizer: int, times: int, run: Progress, *, anywhere: bool) -> tuple[tuple[int, ...], int]:
        """Return the parameters at the front of each model that were always cut off, and the number of candidates.

        Args:
            anywhere: include those that are not at the front.
        """
        cut: dict[int, None] = {}
        held: set[int] = set()
        for model in run.models.values():
            mine = [p for p in in_leaf_modules(model, run) if run.held_by.get(p)]
            held.update(p for p in mine if optimizer in run.held_by[p])
            off = [p in held and self._is_cut(p, times, run) for p in mine]
            front = itertools.compress(mine, off if anywhere else itertools.takewhile(bool, off))
            if not run.weights.reached.isdisjoint(mine) or self._feeds(model.model, run):
                cut.update(dict.fromkeys(front))
        return tuple(cut), len(held)

    def _is_cut(self, p: int, times: int, run: Progress) -> bool:
        facts = run.weights
        fresh = p not in facts.moved and p not in facts.reached and self._cut.get(p, 0) >= times
        return fresh and not (p in facts.loaded and p not in facts.forwarded)

    def _feeds(self, model: int, run: Progress) -> bool:
        """Return True if a later model is reached by the loss, or if the loss reaches no parameter at all."""
        if not any(read.reached for read in self._reads):
            return True
        later = itertools.dropwhile(lambda m: m != model, self._order)
        return any(not run.weights.reached.isdisjoint(run.models[m].parameters) for m in later if m in run.models)

    def _take_back(self, run: Progress) -> None:
        for site, cut in list(self._found.items()):
            if not (run.weights.reached | run.weights.moved).isdisjoint(cut):
                self.withdraw(site)
                del self._found[site]
