from __future__ import annotations

from collections.abc import Iterator

from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    Event,
    HandStepped,
    ModelCalled,
    ModeSet,
    OptimizerStepped,
    RunEnded,
    Site,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._evaluation import Calls, Fixed, ModelTraining, Phase
from truestep.rules._rule import Draft, Progress, Rule
from truestep.rules._syntax.steps import modes
from truestep.syntax import Program, Suspicion

_NO_EVALUATION = "no evaluation of a trained model with layers that depend on the mode"
_SEVERAL = 10
"""Least number of backward passes before a call after the last step counts as the evaluation of the run."""


class EvalModeMissing(Rule):
    """A model is evaluated in train mode.

    What it does
    ------------
    Finds calls without gradients on evaluation data while layers that depend on the mode (dropout, batch statistics,
    dropout inside recurrent layers and attention) are in train mode. Evaluation data is another loader than the one
    the model is trained on, or a whole tensor: one that recurs between training steps, or the last one of a run that
    never evaluates the model in eval mode. One call is enough, also of an average of the weights, if the source shows
    that its result is compared with targets, or that its loss is only read. Also finds fixed models (teachers, feature
    extractors) that are called without gradients in train mode while another model is trained for ten steps or more.

    Why it matters
    --------------
    Dropout keeps dropping activations, so the metric is noisy and too low. Batch normalisation uses the statistics of
    the evaluation batch, so the result for one sample depends on its neighbours, and it updates its running statistics,
    so evaluation data leaks into the model.

    Example
    -------
    ::

        with torch.no_grad():               # gradients off, dropout still on
            for x, y in val_loader:
                correct += (model(x).argmax(1) == y).sum()

    Fix
    ---
    The two switches are independent. Set both, and restore train mode afterwards::

        model.eval()
        with torch.no_grad():
            for x, y in val_loader:
                correct += (model(x).argmax(1) == y).sum()
        model.train()

    Known false alarms
    ------------------
    Updating batch statistics by hand over another loader is reported if the result is kept, and not reported if it is
    dropped (``torch.optim.swa_utils.update_bn``, a bare ``model(x)``). A teacher that drops out on purpose is reported.
    Not reported by design: pseudo-labels, averages as teachers, momentum encoders, rollouts, Monte Carlo dropout, a
    switch from eval mode to train mode for this pass, one evaluation in each mode (train mode is set for the first,
    the same line is then run in eval mode), and generators of adversarial pairs.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval
    """

    id = "eval-mode-missing"
    since = "0.1"
    severity = Severity.ERROR
    account = "calls"
    missing_call = "eval"
    watches = (ModelCalled, ModeSet, BatchDrawn, BackwardEnded, OptimizerStepped, HandStepped)
    needs = (ModelCalled, BackwardEnded)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return modes.eval_mode_missing(program)

    def __init__(self) -> None:
        super().__init__()
        self._calls = Calls()
        self._fixed = Fixed()
        self._before: dict[Site | None, tuple[int, int]] = {}
        self._mode: dict[int, Site | None] = {}
        self._steppers: set[int] = set()
        """Optimizers with a step directly after a backward pass."""
        self._backward = self._over = False

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("" if self._calls.evaluated else _NO_EVALUATION)

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case BatchDrawn():
                self._calls.drawn += 1
            case ModeSet(model=int(model), training=True):
                self._calls.mode_set(model, training=True)
                self._mode[model] = event.site
            case ModeSet(model=int(model)):
                self._calls.mode_set(model, training=False)
                self._mode.pop(model, None)
            case ModelCalled():
                self._calls.called(event)
                self._fixed.called(event, run.step)
            case BackwardEnded():
                self._close(run)
                self._calls.backward(run)
                self._backward = True
            case OptimizerStepped():
                self._close(run)
                self._fixed.stepped(event.optimizer, run)
                if self._backward:
                    self._steppers.add(event.optimizer)
                self._backward = False
            case HandStepped():
                self._close(run)

    def ended(self, event: RunEnded, run: Progress) -> None:
        self._over = event.how in ("finished", "exited")
        self._close(run)
        for call, steps in self._fixed.serving(run):
            name, kinds = run.model_name(call.model), ", ".join(dict.fromkeys(call.sensitive))
            draft = self.report(
                call.site,
                f"`{name}`, which is not trained, serves the training of another model in train mode",
                run=run,
                label=f"no gradients, {kinds} in train mode",
                help=f"call `{name}.eval()` before the training",
                confidence=Confidence.MEDIUM,
            )
            draft.count, draft.first_step = steps, run.step - steps

    def _close(self, run: Progress) -> None:
        """Judge the phases of calls without gradients that end here."""
        for model, phase in self._calls.phases.items():
            trained = self._calls.trained.get(model, ModelTraining())
            if phase.dismissed or (trained.shared and len(self._steppers) > 1 and not phase.measured):
                continue
            if phase.batches >= 2:
                datasets = {run.loaders[n].dataset for n in trained.loaders if n in run.loaders}
                met = run.loaders.get(phase.first.loader or 0)
                sure = met is not None and met.dataset not in datasets
                self._found(phase, run, Confidence.HIGH if sure else Confidence.MEDIUM)
            elif phase.measured:
                self._found(phase, run, Confidence.MEDIUM)
            elif not trained.shared and (phase.first.known_input or model not in self._calls.early):
                self._recur(phase, trained, run)
        self._calls.phases.clear()

    def _recur(self, phase: Phase, trained: ModelTraining, run: Progress) -> None:
        """Judge calls on one batch or a whole tensor: they are an evaluation if they recur between training steps."""
        site = phase.first.site
        first, step = self._before.get(site, (trained.backwards, -1))
        self._before[site] = (first, run.step)
        each_step = first == 1 and phase.first.model not in self._calls.early
        if step >= 0 and run.step > step and (run.step - step >= 2 or each_step):
            draft = self._found(phase, run, Confidence.MEDIUM)
            if draft.count == 1:
                draft.count, draft.first_step = 2, step
        elif self._over and phase.first.model not in self._calls.evaluated_off and trained.backwards >= _SEVERAL:
            self._found(phase, run, Confidence.MEDIUM)

    def _found(self, phase: Phase, run: Progress, confidence: Confidence) -> Draft:
        call = phase.first
        name, kinds = run.model_name(call.model), ", ".join(dict.fromkeys(call.sensitive))
        what = f"{phase.batches} batches of `{run.loader_name(call.loader)}`, " if phase.batches >= 2 else ""
        mode = self._mode.get(call.model)
        return self.report(
            call.site,
            f"`{name}` was evaluated in train mode",
            run=run,
            label=f"{what}no gradients, {kinds} in train mode",
            related=(Mark(mode, "train mode was set here"),) if mode else (),
            help=f"call `{name}.eval()` before the evaluation and `{name}.train()` after it",
            confidence=confidence,
            unit="evaluations",
        )
