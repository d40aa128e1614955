from __future__ import annotations

import re
from collections.abc import Iterable

from truestep.events import Event, ModelMet, OptimizerStepped, ParametersUnchanged, RunEnded
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import FINISHED, steps
from truestep.rules._rule import Progress, Rule

_LEAST_STEPS = 10
_LEAST_WEIGHTS = 2
"""One random matrix may be a random projection."""
_LEAST_EVALUATIONS = 3
_RARE = 10
"""Least number of steps for each evaluation; a teacher or a target is called more often."""
_TAUGHT = frozenset({"expert", "pretrained", "backbone", "extractor", "encoder", "vgg", "resnet", "bert"})
_ON_PURPOSE = frozenset(
    {"random", "fixed", "target", "frozen", "prior"}
    | {"baseline", "chance", "fresh", "init", "initial", "untrained", "original"}
)
"""Words in the name of a network that may have random weights: a part of a method, the worst case of a comparison."""


class UntrainedWeights(Rule):
    """A frozen part, or a teacher, has the random weights that it was built with: it was neither trained nor loaded.

    What it does
    ------------
    Follows where the values of weights come from, in runs to the end. Weights are untrained if they have the random
    values of torch's layers, no optimizer has moved them, and no state was loaded into them. Reports two or more

    - frozen ones at the beginning of a model with at least two weights that are trained;
    - ones of a network that only serves the training of another one, if its name says that it has learnt something
      (``teacher``, ``backbone``), or if a network with the same shapes was trained before and is not used instead;
    - ones of a network that is evaluated after networks with its shapes were trained, or again and again while they
      are trained and not evaluated: an average that is never updated, the server of a federation without the updates.

    Why it matters
    --------------
    A pretrained part that was not loaded passes on noise, and the rest of the model learns to undo it. A student of an
    untrained teacher learns its noise. The loss falls in both cases. In the proof, the student has an accuracy of 0.43
    on held-out samples; with the trained teacher, 0.93.

    Example
    -------
    ::

        teacher = Net(width=128)            # the weights are not loaded
        ...
        with torch.no_grad():
            soft = teacher(x).softmax(dim=1)

    Fix
    ---
    Load or train the weights first::

        teacher.load_state_dict(torch.load("teacher.pt"))

    Known false alarms
    ------------------
    Random features on purpose in several frozen layers, with more than a readout behind them. Not reported: a single
    random projection, random features with a readout, frozen layers with adapters, a teacher that makes all targets of
    an artificial problem, networks that are trained or loaded later, the targets of random network distillation and
    random priors, which are as large as a part that is trained, and weights from functions of ``torch.nn.init``.

    References
    ----------
    - https://docs.pytorch.org/tutorials/beginner/transfer_learning_tutorial.html
    - https://docs.pytorch.org/tutorials/beginner/knowledge_distillation_tutorial.html
    """

    id = "untrained-weights"
    since = "0.1"
    severity = Severity.ERROR
    account = "parameters"
    watches = (ModelMet, ParametersUnchanged)
    needs = (ModelMet, OptimizerStepped, ParametersUnchanged, steps(_LEAST_STEPS), FINISHED)
    leads_to = ("loss-never-changes",)

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[int, dict[int, int]] = {}
        """Model to the updates of each optimizer before its first call."""

    def unobserved(self, run: Progress) -> str:
        beside = any(not run.calls.passes(number) for number in run.models)
        return super().unobserved(run) or (
            "" if beside or run.weights.frozen else "no frozen part, and no second network"
        )

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, ModelMet):
            self._before.setdefault(event.model, {number: run.rates.updates(number) for number in run.optimizers})

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how != "finished" or run.step < _LEAST_STEPS:
            return
        reported: set[int] = set()
        for model in sorted(run.models.values(), key=lambda one: -len(one.parameters)):
            weights = _matrices(model.parameters, run)
            raw = [p for p in weights if run.weights.untrained(p)]
            whole = len(raw) == len(weights)
            if len(raw) < _LEAST_WEIGHTS or reported.issuperset(raw) or (whole and _words(model) & _ON_PURPOSE):
                continue
            label = self._frozen(model, weights, raw, run) or (self._alone(model, run) if whole else "")
            if label:
                reported.update(raw)
                self._found(model, raw, label, run)

    def _frozen(self, model: ModelMet, weights: list[int], raw: list[int], run: Progress) -> str:
        """Return the label for frozen weights beside trained ones; "" if they may be random features.

        The trained weights are those of the model, or, for a model that is frozen as a whole, of its optimizer.
        """
        if not run.weights.frozen.issuperset(raw) or not run.weights.ran.keys() >= set(raw):
            return ""
        whole = len(raw) == len(weights)
        held = {p for number in run.held_by.get(raw[0], ()) for p in run.holds[number]}
        trained = [p for p in _matrices(held if whole else weights, run) if run.weights.fate(p) == "trained"]
        enough = len(trained) >= _LEAST_WEIGHTS or (trained and model.installed and not whole)
        if not enough or weights[: len(raw)] != raw:
            return ""
        moved = [p for p in model.parameters if p in run.weights.moved]
        kept = [p for p in model.parameters if p in run.weights.frozen and p not in run.weights.moved]
        return "" if _among(_shapes(kept, run), _shapes(moved, run)) else "frozen, beside weights that are trained"

    def _alone(self, model: ModelMet, run: Progress) -> str:
        """Return the label for a network without training; "" if it may be random on purpose."""
        if run.calls.passes(model.model):
            return ""
        lines = [line for line in run.calls.lines() if line.model == model.model]
        purposes = run.calls.purposes()
        blocks = sum(line.blocks for line in lines)
        other = sum(line.blocks for line in lines if purposes[line.model, line.site] != "evaluation")
        eval_mode = all(mode == "eval" for line in lines for mode, _ in line.apart)
        evaluated = other < min(blocks, _LEAST_WEIGHTS) or (eval_mode and _RARE * blocks <= run.step)
        if not evaluated and blocks < _LEAST_STEPS:
            return ""
        measured = {number for (number, _), purpose in purposes.items() if purpose == "evaluation"}
        replaces = evaluated and blocks >= _LEAST_EVALUATIONS and self._replaces(model, measured, run)
        if replaces or self._trained_twin(model, run):
            return "another network with these shapes was trained"
        words = _words(model)
        taught = not evaluated and (words & _TAUGHT or ("teacher" in words and _distils(run)))
        return f"`{model.name}` serves the training" if taught else ""

    def _replaces(self, model: ModelMet, measured: set[int], run: Progress) -> bool:
        """Return True if networks with the same shapes are trained since the first call, and none is evaluated."""
        wanted = _shapes(model.parameters, run)
        before = self._before[model.model]
        twins = {
            other.model
            for other in run.models.values()
            if _shapes(other.parameters, run) == wanted and run.weights.moved.intersection(other.parameters)
        }
        updates = sum(run.rates.updates(one) - before.get(one, 0) for one in run.optimizers if _holds(one, twins, run))
        return updates >= _LEAST_STEPS and measured.isdisjoint(twins)

    def _trained_twin(self, model: ModelMet, run: Progress) -> bool:
        """Return True if a network with the same shapes was trained before the first call, and not since."""
        wanted = _shapes(model.parameters, run)
        return any(
            _LEAST_STEPS <= before == run.rates.updates(number) and _among(wanted, _shapes(run.holds[number], run))
            for number, before in self._before[model.model].items()
        )

    def _found(self, model: ModelMet, raw: list[int], label: str, run: Progress) -> None:
        names = run.parameter_names(tuple(raw))
        frozen = model.freeze
        draft = self.report(
            frozen or model.site,
            f"`{model.name}` has weights that were neither trained nor loaded",
            run=run,
            label=label,
            related=(Mark(model.site, f"`{model.name}` is called here"),) if frozen and model.site else (),
            cost=f"{names} kept the random values of their initialisation",
            help=f"load the weights of `{model.name}`, or train them before they are used",
            confidence=Confidence.MEDIUM,
            unit="weights",
            key=model.model,
        )
        draft.count, draft.first_step = len(raw), None


def _matrices(parameters: Iterable[int], run: Progress) -> list[int]:
    """Return the parameters of two or more dimensions."""
    return [p for p in parameters if p in run.parameters and len(run.parameters[p].shape) > 1]


def _words(model: ModelMet) -> set[str]:
    return set(re.split(r"[\W_\d]+", model.name.lower()))


def _distils(run: Progress) -> bool:
    """Return True if a loss compares distributions, or labels and another target: a teacher may not make them all."""
    kinds = [kind for kind, *_ in run.losses.tally]
    return "kl_div" in kinds or kinds.count("cross_entropy") + kinds.count("nll_loss") > 1


def _holds(optimizer: int, models: Iterable[int], run: Progress) -> bool:
    return any(not run.holds[optimizer].isdisjoint(run.models[number].parameters) for number in models)


def _shapes(parameters: Iterable[int], run: Progress) -> list[tuple[int, ...]]:
    return [run.parameters[p].shape for p in sorted(parameters) if p in run.parameters]


def _among(wanted: list[tuple[int, ...]], shapes: list[tuple[int, ...]]) -> bool:
    """Return True if the shapes of a network are among others, in a row: the target of a predictor, a twin."""
    return any(shapes[at : at + len(wanted)] == wanted for at in range(len(shapes) - len(wanted) + 1))
