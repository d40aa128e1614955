from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from truestep.events import Event, LeavesGrouped, ModelMet, OptimizerBuilt, ParametersUnchanged, RunEnded, TapeRead
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._parts import apart
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import parameters
from truestep.syntax import Program, Suspicion

_FLAT = 2
_LEAST_STEPS_OF_GROUP = 50
"""Tensors outside of modules are judged after so many steps: a program may update some of them now and then."""
_MOST_NAMES = 3
_LEARNED = re.compile(r"log_?(vars?|variances?|sigmas?|stds?|noise)|uncertaint", re.IGNORECASE)
_MOST_SCALES = 64
"""Values of a module that weighs the terms of a loss, or scales its logits."""
_SMALL = 8
"""How many times more values the trained parameters have than biases and normalisation that were left out."""


class ParametersNotOptimized(Rule):
    """Trainable parameters get gradients, but no optimizer holds them.

    What it does
    ------------
    Finds parameters of a model that require gradients, that the loss reaches, that no optimizer holds, and that keep
    their values, while an optimizer trains other parameters of the same model. A whole model is reported if its weights
    have random values, and optimizers hold parts of models; so is a module of at most 64 logarithms of variances
    between the trained part and the loss, learnable weights of its terms. Parameters that were frozen first and are
    trainable later are meant to be trained, in a whole model too.

    In programs without modules, the tensors of one list or dict are judged together: all of them are trainable leaves
    that the loss reaches, an optimizer trains some, and no optimizer holds the others.

    Why it matters
    --------------
    These parameters keep their initial values. The trained part adapts to a random part, the loss falls, and the model
    is smaller than it looks. Their gradients are computed for nothing.

    Example
    -------
    ::

        optimizer = torch.optim.Adam(model.encoder.parameters())    # model.head never learns

    Fix
    ---
    Pass all parameters to the optimizer, and freeze those that must not move::

        optimizer = torch.optim.Adam(model.parameters())

    Known false alarms
    ------------------
    Training a head, a prompt or adapters on a backbone without ``requires_grad_(False)`` is healthy and wastes only
    time; it is reported with low confidence. High confidence requires that the left-out part is the smaller one and
    that some trained parameters are farther from the loss than this part. Medium confidence requires that no more
    weights are left out than trained, and that they have random values: no checkpoint was loaded.
    A random output layer that is fixed on purpose is reported unless it is frozen with ``requires_grad_(False)``.
    A random network that is fixed on purpose and gets gradients is reported unless its outputs are detached. Parameters
    that a script moves by hand are not reported. Tensors that are in no list or dict with trained ones are inputs:
    points of an equation, images of an attack.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/optim.html#constructing-it
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad
    """

    id = "parameters-not-optimized"
    since = "0.1"
    severity = Severity.ERROR
    account = "parameters"
    watches = (LeavesGrouped, TapeRead, ParametersUnchanged)
    needs = (OptimizerBuilt, TapeRead)
    explains = (
        "loss-at-chance",
        "loss-never-changes",
    )

    MARGIN = 3
    """Least number of operations by which a trained parameter must be farther from the loss than a left-out one: one
    linear layer and an activation. Weight and bias of one layer differ by one, a reparametrised weight by two."""

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return parameters.parameters_not_optimized(program)

    def __init__(self) -> None:
        super().__init__()
        self._reads: dict[int, int] = {}
        self._depth: dict[int, int] = {}
        self._first: dict[int, int] = {}
        self._groups: list[LeavesGrouped] = []

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case TapeRead():
                for parameter in event.reached:
                    self._reads[parameter] = self._reads.get(parameter, 0) + 1
                    self._first.setdefault(parameter, run.step)
                for parameter, depth in zip(event.reached, event.depths, strict=False):
                    self._depth[parameter] = min(depth, self._depth.get(parameter, depth))
            case LeavesGrouped():
                self._groups.append(event)
            case ParametersUnchanged():
                if run.step >= 10:
                    self._judge(run)

    def unobserved(self, run: Progress) -> str:
        if reason := super().unobserved(run):
            return reason
        if run.step < 10:
            return ParametersUnchanged.absent
        left = any(not run.held_by.get(p) and _trainable(p, run) for p in self._reads)
        return "no check of the values of parameters" if left and ParametersUnchanged not in run.met else ""

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how == "finished":
            self._judge(run)

    def _judge(self, run: Progress) -> None:
        known: set[object] = set(self._drafts)
        wholes: set[int] = set()
        for number, model in sorted(run.models.items(), key=lambda item: -len(item[1].parameters)):
            reached = [p for p in model.parameters if self._reads.get(p, 0) >= 3 and _trainable(p, run)]
            left = [p for p in reached if not run.held_by.get(p) and p in run.weights.still]
            trained = [p for p in reached if run.held_by.get(p)]
            alone = not trained and not wholes.issuperset(left)
            whole = alone and (_is_left_whole(model, left, run) or self._is_scale_of_loss(model, left, run))
            whole |= bool(left) and run.weights.unfrozen.issuperset(left)
            if left and (trained or whole) and self._found(model, left, trained, run):
                known.discard(number)
                wholes.update(left if whole else ())
        if run.step >= _LEAST_STEPS_OF_GROUP or run.how:
            known -= {group.parameters for group in self._groups if self._left_of_group(group, run)}
        for gone in known:  # they joined an optimizer, or moved after all
            self.withdraw(gone)

    def _found(self, model: ModelMet, left: list[int], trained: list[int], run: Progress) -> bool:
        holders = Counter(number for p in trained for number in run.held_by[p]) or Counter([max(run.holds)])
        optimizer = holders.most_common(1)[0][0]
        if self._stale(optimizer, run):
            return False
        name, model_name = run.optimizer_name(optimizer), run.model_name(model.model)
        built = run.optimizers.get(optimizer)
        names = run.parameter_names(tuple(left))
        held = f"holds {len(trained)} parameters of `{model_name}`, not" if trained else "does not hold"
        draft = self._drafts.get(model.model) or self.report(
            built.site if built else None,
            f"trainable parameters of `{model_name}` are in no optimizer",
            run=run,
            label=f"`{name}` {held} {names}",
            related=(Mark(model.site, f"`{model_name}` runs with all of them"),) if model.site else (),
            help=f"pass all of `{model_name}.parameters()` to `{name}`, or call `requires_grad_(False)` on the rest",
            unit="parameters",
            key=model.model,
        )
        meant = not trained or run.weights.unfrozen.issuperset(left)
        few = meant or _few_random(left, trained, run) or self._few_values(left, trained, run)
        unsure = Confidence.MEDIUM if few else Confidence.LOW
        draft.confidence = Confidence.HIGH if self._sure(left, trained, run) else unsure
        draft.cost = f"these {len(left)} parameters got gradients and kept their initial values up to step {run.step}"
        draft.count, draft.total = len(left), len(left) + len(trained)
        draft.first_step = min(self._first[p] for p in left)
        return True

    def _left_of_group(self, group: LeavesGrouped, run: Progress) -> bool:
        """Report the tensors of a list or a dict that were left out. Return True if there are any."""
        owned = {p for model in run.models.values() for p in model.parameters}
        still = {p for p in group.parameters if not run.held_by.get(p) and p in run.weights.still and p not in owned}
        left = [p for p in group.parameters if p in still and self._reads.get(p, 0) >= 3 and _trainable(p, run)]
        trained = [p for p in group.parameters if run.held_by.get(p) and p in run.weights.moved]
        small = len(left) <= len(trained) and _values(left, run) <= _values(trained, run)  # else adapters of a base
        if not left or not trained or not small:
            return False
        optimizer = Counter(number for p in trained for number in run.held_by[p]).most_common(1)[0][0]
        name, built = run.optimizer_name(optimizer), run.optimizers.get(optimizer)
        names = dict(zip(group.parameters, group.names, strict=True))
        draft = self._drafts.get(group.parameters) or self.report(
            built.site if built else None,
            f"trainable tensors of `{group.name}` are in no optimizer",
            run=run,
            label=f"`{name}` holds {len(trained)} tensors of `{group.name}`, not {_list(names[p] for p in left)}",
            help=f"pass all tensors of `{group.name}` to `{name}`, or do not let the others require gradients",
            unit="parameters",
            key=group.parameters,
        )
        draft.confidence = Confidence.MEDIUM
        draft.cost = f"these {len(left)} parameters got gradients and kept their initial values up to step {run.step}"
        draft.count, draft.total = len(left), len(left) + len(trained)
        draft.first_step = min(self._first[p] for p in left)
        return True

    def _sure(self, left: list[int], trained: list[int], run: Progress) -> bool:
        """Return True if the left-out part is the smaller one and gradients flow through it to trained parameters."""
        if len(left) > len(trained) or not self._is_through(left, trained):
            return False
        names = [[run.parameters[p].name for p in part] for part in (left, trained)]
        return apart(*names) or _values(left, run) < _values(trained, run)

    def _few_values(self, left: list[int], trained: list[int], run: Progress) -> bool:
        """Return True if biases and normalisation were left out, and the weights around them were not."""
        flat = all(len(run.parameters[p].shape) < _FLAT for p in left)
        return flat and self._is_through(left, trained) and _SMALL * _values(left, run) < _values(trained, run)

    def _is_through(self, left: list[int], trained: list[int]) -> bool:
        """Return True if gradients flow through the left-out part to trained parameters."""
        depths = [self._depth[p] for p in left if p in self._depth]
        behind = [self._depth[p] for p in trained if p in self._depth]
        return bool(depths) and bool(behind) and max(behind) - min(depths) >= self.MARGIN

    def _is_scale_of_loss(self, model: ModelMet, left: list[int], run: Progress) -> bool:
        """Return True if a module of a few values, as weights of the terms, is between the trained part and the loss.

        Only logarithms of variances count: other values may be constants that were made as parameters.
        """
        trained = [p for p in self._reads if run.held_by.get(p) and p in run.weights.moved]
        flat = all(len(run.parameters[p].shape) < _FLAT for p in left)
        return (
            flat
            and all(_LEARNED.search(run.parameters[p].name) for p in left)
            and 0 < _values(left, run) <= _MOST_SCALES
            and not model.installed
            and len(left) == len(model.parameters)
            and run.weights.loaded.keys().isdisjoint(left)
            and self._is_through(left, trained)
        )

    def _stale(self, optimizer: int, run: Progress) -> bool:
        """Return True if the optimizer holds parameters of no model in use (optimizer-holds-stale-parameters)."""
        used = {p for model in run.models.values() for p in model.parameters}
        return any(optimizer in held and p not in used and p not in self._reads for p, held in run.held_by.items())


def _few_random(left: list[int], trained: list[int], run: Progress) -> bool:
    """Return True if weights were left out at their random values, and no more than those of the same part that train.

    A backbone without training has loaded weights, or more of them than the trained head.
    """
    weights = [[p for p in part if len(run.parameters[p].shape) > 1] for part in (left, trained)]
    few = 0 < len(weights[0]) <= len(weights[1]) and run.weights.loaded.keys().isdisjoint(weights[0])
    return few and _are_random(weights[0], run)


def _is_left_whole(model: ModelMet, left: list[int], run: Progress) -> bool:
    """Return True if a model has random weights while an optimizer holds others of some model.

    An optimizer that holds no part of a model is one for inputs: the model is not to be trained.
    """
    weights = [p for p in left if len(run.parameters[p].shape) > 1]
    owned = {p for other in run.models.values() for p in other.parameters}
    return (
        bool(weights)
        and not model.installed
        and _are_random(weights, run)
        and run.weights.loaded.keys().isdisjoint(weights)  # a target network
        and not owned.isdisjoint(run.held_by)
    )


def _are_random(weights: list[int], run: Progress) -> bool:
    """Return True if weights have random values.

    Small square weights of a recurrent layer are not known by their values, which have the range of Xavier's: the
    others decide.
    """
    known = [p for p in weights if p in run.weights.drawn]
    return bool(known) and all(_is_square_of_gates(p, run) for p in weights if p not in run.weights.drawn)


def _is_square_of_gates(parameter: int, run: Progress) -> bool:
    met = run.parameters[parameter]
    return met.name.rpartition(".")[2].startswith("weight_ih") and len(met.shape) == _FLAT and len(set(met.shape)) == 1


def _trainable(parameter: int, run: Progress) -> bool:
    met = run.parameters.get(parameter)
    return met is not None and (met.trainable or parameter in run.weights.unfrozen)


def _list(names: Iterable[str]) -> str:
    """Return the first names, and the number of the others."""
    several = list(names)
    more = f" and {len(several) - _MOST_NAMES} more" if len(several) > _MOST_NAMES else ""
    return ", ".join(several[:_MOST_NAMES]) + more


def _values(parameters: list[int], run: Progress) -> int:
    return sum(math.prod(run.parameters[p].shape) for p in parameters)
