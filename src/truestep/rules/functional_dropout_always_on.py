from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from truestep import source
from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    DrawsCompared,
    Event,
    FunctionCalled,
    HandStepped,
    LoaderStarted,
    ModelCalled,
    OptimizerStepped,
    RunEnded,
    Site,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import ENDED, Condition
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import modules
from truestep.rules._syntax.steps.targets import is_target
from truestep.syntax import Program, Suspicion

_SAMPLED = 3
"""From this many calls for one batch, or passes between two steps, dropout is sampled on purpose."""

_CALLED = Condition("no model call", lambda run: not run.met.isdisjoint((ModelCalled, FunctionCalled)))
_TRAINED = Condition("no backward pass", lambda run: not run.met.isdisjoint((BackwardEnded, FunctionCalled)))

_TEXTS = {
    "": (
        "the function does not get the mode, and its default is `training=True`",
        "pass `training=self.training` to the dropout function",
    ),
    "attention": (
        "the function does not get the mode, and drops attention weights",
        "pass `dropout_p=self.dropout if self.training else 0.0`",
    ),
    "function": (
        "dropout is on, and the call does not ask for it",
        "make dropout off by default, and turn it on in the training: `def predict(weights, x, train=False)`",
    ),
    "module": (
        "the dropout layer is made for the call, and begins in train mode",
        "create the dropout layer in `__init__`, so that it follows the mode of the model",
    ),
}
"""Label and remedy by the cause that a copy showed; "" for the functions that the calls of the program showed."""


@dataclass(slots=True)
class _Phase:
    """Calls of one model in eval mode without gradients, with no backward pass and no step between them."""

    first: ModelCalled | FunctionCalled
    calls: int = 0
    batches: int = 0
    drawn: int = -1
    of_batch: int = 0
    """Calls for the latest batch."""
    dismissed: bool = False
    measures: bool = True
    """True if each call is on another input without a loader, and its result is read as a number or compared."""


@dataclass(slots=True)
class _Noisy:
    """Evaluations of a model that were affected by one line with dropout."""

    phase: _Phase
    step: int
    count: int = 0
    sure: bool = False


class FunctionalDropoutAlwaysOn(Rule):
    """`F.dropout` does not get the mode of the model and stays on in evaluation.

    What it does
    ------------
    Finds calls of ``F.dropout``, ``F.dropout2d`` and similar functions without ``training=`` that drop values computed
    by a trained model, while the whole model is in eval mode and is evaluated without gradients, each batch once. On a
    copy of the model in eval mode, finds ``dropout_p`` of a fused attention, and dropout layers made in ``forward``.
    In a program without modules, finds dropout in a call without gradients of a function that is a model: by these
    functions of torch, or by a mask of random numbers that are compared with a rate called ``drop`` or ``keep``.

    Why it matters
    --------------
    The function defaults to ``training=True``, and ``model.eval()`` does not affect it. Every prediction loses
    activations at random, so metrics are too low and vary from call to call. In the proof the same trained net has an
    accuracy of 0.88 instead of 0.96.

    Example
    -------
    ::

        def forward(self, x):
            x = F.dropout(torch.relu(self.body(x)), 0.5)
            return self.head(x)

    Fix
    ---
    Pass the mode of the module to the function, or use ``nn.Dropout``, which follows the mode::

        x = F.dropout(torch.relu(self.body(x)), 0.5, training=self.training)

    Known false alarms
    ------------------
    Dropout that stays on by design (decoders of some speech models, batches with repeated rows to sample them) and does
    not say so. An explicit ``training=True`` is reported only where it is the only one of its function, beside another
    dropout with the same rate that follows the mode; there, one evaluation of a whole tensor is enough. Not reported:
    Monte Carlo dropout (a batch that is used several times, several passes), switches that turn it off in some
    evaluations, corrupted inputs, random masks, untrained models, and calls of functions that pass a flag or a rate
    (other than ``training=False``), make a target of which the loss is computed, or stand in a function that is named
    for it, such as ``mc_predict``.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval
    """

    id = "functional-dropout-always-on"
    since = "0.1"
    severity = Severity.ERROR
    account = "randomness"
    watches = (
        ModelCalled, FunctionCalled, BatchDrawn, LoaderStarted, BackwardEnded, OptimizerStepped, HandStepped,
        DrawsCompared,
    )  # fmt: skip
    needs = (_CALLED, _TRAINED, ENDED)
    asks = "no dropout is left on in evaluation"

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return modules.functional_dropout_always_on(program)

    def __init__(self) -> None:
        super().__init__()
        self._phases: dict[int, _Phase] = {}
        self._called: set[int] = set()
        """Models called with gradients since the last backward pass."""
        self._trained: set[int] = set()
        self._sites: dict[int, set[Site]] = {}
        """Model to the lines that applied dropout in its evaluations."""
        self._noisy: dict[Site, _Noisy] = {}
        """Reported at the end of the run: samples of a prediction are often drawn last."""
        self._on_purpose: set[Site] = set()
        """Lines with dropout that is sampled several times, or left out in other evaluations."""
        self._without: set[int] = set()
        """Models that were evaluated without such dropout after they were trained."""
        self._on_copy: dict[int, DrawsCompared] = {}
        """Model to the dropout of a fused attention, or of a layer made for the call, that its copy applied."""
        self._whole: dict[int, int] = {}
        """Model to the step of its first evaluation on one whole tensor."""
        self._starts: dict[int, int] = {}
        """Loader to the number of its starts since the last step."""
        self._functions: set[int] = set()
        """Models that are functions."""
        self._counted: Site | None = None
        """The line of a repeated evaluation that is only counted."""
        self._drawn = 0
        self._evaluated = False

    def unobserved(self, run: Progress) -> str:
        unread = "" if self._evaluated else "no call of a trained model in eval mode"
        return (
            super().unobserved(run) or unread or ("dropout in an evaluation may be on purpose" if self._sites else "")
        )

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case BatchDrawn():
                self._drawn += 1
            case LoaderStarted():
                self._starts[event.loader] = starts = self._starts.get(event.loader, 0) + 1
                if starts >= _SAMPLED:
                    for model in self._phases:
                        self._excuse(model)
            case ModelCalled(grad=True):
                self._called.add(event.model)
            case ModelCalled(training=False, compiled=False):
                self._evaluating(event)
            case FunctionCalled(tracked=False):
                self._trained.add(event.model)
                self._functions.add(event.model)
                if event.sampled:
                    self._excuse(event.model)
                elif not is_target(event.site):
                    self._evaluating(event)
            case DrawsCompared(cause=str(cause), model=model) if cause:
                self._on_copy[model] = event
                self._without.discard(model)
            case BackwardEnded():
                self._close(run)
                self._trained |= self._called
                self._called.clear()
            case OptimizerStepped() | HandStepped():
                self._close(run)

    def again(self, event: Event, times: int) -> None:
        match event:
            case ModelCalled(training=False, dropout=Site() as site) if site in self._noisy:
                self._counted = site
            case BackwardEnded() if self._counted in self._noisy:
                self._noisy[self._counted].count += times
                self._counted = None

    def _evaluating(self, call: ModelCalled | FunctionCalled) -> None:
        if call.model not in self._trained:
            return
        self._evaluated = True
        site = self._site(call)
        if site is None:
            self._without.add(call.model)
            self._excuse(call.model)
            return
        self._sites.setdefault(call.model, set()).add(site)
        phase = self._phases.setdefault(call.model, _Phase(call))
        phase.calls += 1
        by_hand = call.loader is None and not call.same_input  # a batch without a loader, or a part of a tensor
        other = by_hand and (call.model in self._on_copy or bool(call.use))
        phase.measures &= other
        if phase.drawn != self._drawn or other:
            phase.batches += call.loader is not None
            phase.of_batch = 0
        phase.drawn = self._drawn
        phase.of_batch += 1
        phase.dismissed |= phase.of_batch > 1
        if (phase.of_batch >= _SAMPLED and not by_hand) or call.model in self._without:
            self._excuse(call.model)

    def _site(self, call: ModelCalled | FunctionCalled) -> Site | None:
        """Return the line that drops values in an evaluation."""
        on_copy = self._on_copy.get(call.model)
        return call.dropout or (None if on_copy is None else on_copy.site)

    def _excuse(self, model: int) -> None:
        """Treat the dropout in a model as on by design."""
        for site in self._sites.get(model, ()):
            self._on_purpose.add(site)
            self._noisy.pop(site, None)

    def _close(self, run: Progress) -> None:
        """Judge the calls that end here."""
        for model, phase in self._phases.items():
            site = self._site(phase.first)
            if phase.dismissed or site is None or site in self._on_purpose:
                continue
            sure = phase.batches >= 2
            if not sure:
                several = phase.calls > 1 and model not in self._on_copy and not phase.measures
                if several or phase.first.loader is not None:
                    continue
                said = phase.calls == 1 and _is_said(site)
                if self._whole.setdefault(model, run.step) == run.step and not said:
                    continue
            noisy = self._noisy.setdefault(site, _Noisy(phase, run.step))
            noisy.count += 1
            noisy.sure |= sure
        self._phases.clear()
        self._starts.clear()

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how not in ("finished", "exited"):
            return
        self._close(run)
        for site, noisy in self._noisy.items():
            call, batches = noisy.phase.first, noisy.phase.batches
            name = run.model_name(call.model)
            over = f"{noisy.phase.calls} batches" if noisy.phase.calls > 1 else "one whole tensor"
            over = f"{batches} batches of `{run.loader_name(call.loader)}`" if batches else over
            cause = "function" if call.model in self._functions else ""
            cause = cause if call.dropout else self._on_copy[call.model].cause
            label, help = _TEXTS[cause]
            draft = self.report(
                site,
                f"dropout stays on while `{name}` is evaluated",
                run=run,
                label=label,
                related=(Mark(call.site, over if cause == "function" else f"{over} in eval mode"),),
                help=help,
                confidence=Confidence.HIGH if noisy.sure else Confidence.MEDIUM,
                unit="evaluations",
            )
            draft.count, draft.first_step = noisy.count, noisy.step


def _is_said(site: Site) -> bool:
    """Return True if a call of dropout says `training=True`: beside another one that follows the mode, if reported."""
    tree = source.parsed(site.path)
    return any(
        isinstance(node, ast.Call)
        and (node.lineno, node.col_offset) == (site.line, site.column)
        and any(given.arg == "training" for given in node.keywords)
        for node in (() if tree is None else source.walk(tree))
    )
