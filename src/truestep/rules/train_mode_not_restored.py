from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from truestep.events import (
    BackwardEnded,
    CheckpointLoaded,
    Event,
    LoaderEnded,
    ModelCalled,
    ModeSet,
    OptimizerStepped,
    RunEnded,
    Site,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import modes
from truestep.syntax import Program, Suspicion

_MOST_CALLS = 64
"""Calls of a model that wait for the step of its optimizer."""
_REBUILT = 3
"""Least number of optimizers of one line, over the same parameters, that are one optimizer: two may be two stages."""


@dataclass(slots=True)
class _Model:
    trained_at: set[tuple[Site | None, int | Site]] = field(default_factory=set)
    """Call sites of training steps in train mode, with the optimizer that stepped, and with the line that built it."""
    switched: Site | None = None
    """Line that last set eval mode."""
    evaluated: bool = False
    """Whether it was evaluated since then."""
    calls: list[ModelCalled] = field(default_factory=list)
    """Calls with gradients since the last step or change of mode."""
    frozen: int = 0
    """Number of training steps in eval mode since the evaluation."""
    first: int = 0
    set_off: Site | None = None
    """Line that set eval mode before any training step in train mode."""
    own: bool = False
    """Whether the program had loaded no weights before its first training step."""


class TrainModeNotRestored(Rule):
    """Training continues in eval mode after an evaluation.

    What it does
    ------------
    Finds training steps of a model in eval mode, at a line that trained it in train mode before, after an evaluation
    set eval mode and nothing restored train mode. Also finds models that are in eval mode in all their training steps
    although they began with the values of their own initialisation, if more than the line that makes them sets eval
    mode: their dropout and batch statistics never act.

    Why it matters
    --------------
    From the first evaluation on, dropout is off, and batch normalisation no longer updates its statistics: it
    normalises with those of the first epoch while the weights move on. The regularisation of the script is active only
    in its first epoch.

    Example
    -------
    ::

        model.train()
        for epoch in range(10):
            train_one_epoch(model)          # in eval mode from the second epoch on
            model.eval()
            evaluate(model)

    Fix
    ---
    Set train mode at the start of each training epoch, not once before the loop::

        for epoch in range(10):
            model.train()
            train_one_epoch(model)
            model.eval()
            evaluate(model)

    Known false alarms
    ------------------
    None known. Some models are fine-tuned in eval mode from the first step to the last on purpose: models with loaded
    weights, models of other libraries, and models of a run that read a file before are reported with low confidence.
    Not reported: frozen submodules inside a model in train mode, a later stage with its own optimizer or its own
    training line, and saliency or adversarial passes without a step.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.train
    """

    id = "train-mode-not-restored"
    since = "0.1"
    severity = Severity.ERROR
    account = "calls"
    missing_call = "train"
    watches = (ModelCalled, ModeSet, LoaderEnded, BackwardEnded, OptimizerStepped)
    needs = (ModeSet, ModelCalled, BackwardEnded, OptimizerStepped)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return modes.train_mode_not_restored(program)

    def __init__(self) -> None:
        super().__init__()
        self._models: dict[int, _Model] = {}
        self._backward = False
        self._lines: set[Site | None] = set()
        """Lines that set eval mode of modules that no line had called as a model so far."""
        self._resumed = False
        """Whether a model was trained, or set to train mode, after its evaluation."""

    def suspected(self) -> bool:
        return super().suspected() or any(model.frozen for model in self._models.values())

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("" if self._resumed else "no training after an evaluation in eval mode")

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ModeSet(model=None, training=False):
                self._lines.add(event.site)
            case ModeSet(model=int(number)):
                model = self._models.setdefault(number, _Model())
                model.calls.clear()
                if event.training:
                    self._resumed |= model.evaluated
                    model.switched, model.evaluated, model.frozen = None, False, 0
                elif not model.trained_at:
                    model.set_off = model.set_off or event.site
                elif model.switched is None or model.evaluated:
                    model.switched, model.evaluated = event.site, False
            case ModelCalled():
                model = self._models.setdefault(event.model, _Model())
                if event.grad:
                    model.calls.append(event)
                else:
                    model.evaluated |= not event.training
            case LoaderEnded():
                for model in self._models.values():
                    if model.switched and any(not call.training for call in model.calls):
                        model.evaluated = True
                        model.calls.clear()
            case BackwardEnded():
                self._backward = True
            case OptimizerStepped():
                if self._backward:
                    for number, model in self._models.items():
                        self._trained(number, model, event, run)
                for number, model in self._models.items():
                    if len(model.calls) > _MOST_CALLS or not self._waits(number, event.optimizer, run):
                        model.calls.clear()
                self._backward = False

    def _waits(self, number: int, optimizer: int, run: Progress) -> bool:
        """Return True if a model has its own optimizer, which steps later: its result is used in two losses."""
        met = run.models.get(number) if len(run.optimizers) > 1 else None
        if met is None or not self._models[number].calls:
            return False
        owners = [held for p in met.parameters if (held := run.held_by.get(p))]
        return bool(owners) and not any(optimizer in held for held in owners)

    def ended(self, event: RunEnded, run: Progress) -> None:
        """Name the line that set eval mode; raise the confidence for first values, unless it was set only once."""
        for number, model in self._models.items():
            draft, met = self._drafts.get(("throughout", number)), run.models.get(number)
            if draft is not None and model.set_off is not None:
                draft.related = (draft.primary,)
                draft.primary = Mark(model.set_off, "eval mode was set here, and train mode not before the next step")
            again = model.set_off is not None or len(self._lines) > 1
            if draft is not None and again and model.own and met is not None and not met.installed:
                draft.confidence = Confidence.MEDIUM

    def _trained(self, number: int, model: _Model, step: OptimizerStepped, run: Progress) -> None:
        """Judge the calls behind this training step."""
        met = run.models.get(number)
        if met is None or not any(step.optimizer in run.held_by.get(p, ()) for p in met.parameters):
            return
        self._resumed |= model.evaluated and bool(model.calls)
        frozen = []
        built = run.optimizers[step.optimizer].site if step.optimizer in run.optimizers else None
        same: tuple[int | Site, ...] = (step.optimizer,)
        if built is not None and _is_rebuilt(step.optimizer, run):
            same = (step.optimizer, built)
        for call in model.calls:
            if call.training:
                model.trained_at.add((call.site, step.optimizer))
                model.trained_at |= {(call.site, built)} if built is not None else set()
                self.withdraw(("throughout", number))
            elif call.frozen_sensitive and not model.trained_at:
                self._never_in_train_mode(number, model, call, run)
            elif (
                call.frozen_sensitive and model.evaluated and any((call.site, one) in model.trained_at for one in same)
            ):
                frozen.append(call)
        if not frozen or model.switched is None:
            return
        model.frozen += 1
        if model.frozen == 1:
            model.first = run.step
            return
        name, kinds = run.model_name(number), ", ".join(dict.fromkeys(met.sensitive)) or "layers"
        draft = self.report(
            frozen[0].site,
            f"`{name}` was trained in eval mode after an evaluation",
            run=run,
            label=f"step {model.first}: {kinds} in eval mode",
            related=(Mark(model.switched, "eval mode was set here, and train mode was not restored before the step"),),
            help=f"call `{name}.train()` after the evaluation, at the start of the next training epoch",
        )
        if draft.count == 1:
            draft.count, draft.first_step = 2, model.first

    def _never_in_train_mode(self, number: int, model: _Model, call: ModelCalled, run: Progress) -> None:
        """Report a step in eval mode of a model that has not been trained in train mode so far."""
        name, kinds = run.model_name(number), ", ".join(dict.fromkeys(run.models[number].sensitive)) or "layers"
        if ("throughout", number) not in self._drafts:
            loaded = not run.weights.loaded.keys().isdisjoint(run.models[number].parameters)
            model.own = not loaded and CheckpointLoaded not in run.met
        self.report(
            call.site,
            f"`{name}` was trained in eval mode from the first step to the last",
            run=run,
            label=f"{kinds} in eval mode",
            help=f"call `{name}.train()` before the training, unless these layers must stay in eval mode",
            confidence=Confidence.LOW,
            key=("throughout", number),
        )


def _is_rebuilt(optimizer: int, run: Progress) -> bool:
    """Return True if a line builds an optimizer of the same parameters again and again, in each epoch."""
    built = run.optimizers[optimizer]
    alike = [one for one in run.optimizers.values() if one.site == built.site and one.parameters == built.parameters]
    return len(alike) >= _REBUILT
