"""The inside of one training step of a script: layers, gradients, losses and memory, without an edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truestep.errors import NoExperiment
from truestep.experiments.running.absent import without_steps
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import RunOutcome, Variant

Place = tuple[str, int]
"""Path and line."""


@dataclass(frozen=True, slots=True)
class ParameterFacts:
    """A parameter of a model.

    Attributes:
        name: name in the model.
        shape: its shape.
        dtype: its type, such as "float32".
        values: number of its values.
        trainable: True if it required a gradient.
        reached: True if a loss reached it.
        norm: Euclidean norm before the step; None if it was not measured.
        gradient_norm: Euclidean norm of its gradient; None without one.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    values: int
    trainable: bool
    reached: bool
    norm: float | None
    gradient_norm: float | None


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """A module that was called.

    Attributes:
        name: name in the model; "" is the model.
        kind: name of its class.
        depth: number of modules around it.
        also: its other names, if it is shared.
        calls: number of its calls; if an output got a gradient, of those with one.
        input: shapes of its arguments, as text.
        output: shapes of its output, as text.
        dtype: type of its largest output with values; "" without one.
        device: device of this output.
        trained: True if an output got a gradient; the facts are those of the last such call.
        raised: True if the call ended with an exception.
        mean, std: mean and standard deviation of the output; None if it was not measured.
        zeros: share of zeros in the output, in [0, 1].
        finite: False if the output has NaN or infinite values.
    """

    name: str
    kind: str
    depth: int
    also: tuple[str, ...]
    calls: int
    input: str
    output: str
    dtype: str
    device: str
    trained: bool
    raised: bool
    mean: float | None
    std: float | None
    zeros: float | None
    finite: bool


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model that was called in the step.

    Attributes:
        name: name of its variable in the script.
        kind: name of its class.
        layers: its modules in the order of their first calls.
        parameters: its parameters, each once.
        tied: first name of each parameter that has another one, by the other name.
        not_called: modules that were not called.
        hidden: parts that hooks cannot see: name, reason, number of modules.
        first_nan, first_inf: origin of the first NaN or Inf as a sentence; "" without one.
        gradients: the time of the gradients; "" if no backward pass reached the model.
        not_measured: values that could not be measured, with the reason.
    """

    name: str
    kind: str
    layers: tuple[LayerFacts, ...]
    parameters: tuple[ParameterFacts, ...]
    tied: Mapping[str, str]
    not_called: tuple[str, ...]
    hidden: tuple[tuple[str, str, int], ...]
    first_nan: str
    first_inf: str
    gradients: str
    not_measured: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reach:
    """The parameters of one model that a loss reaches.

    Attributes:
        model: name of the model.
        parts: the fewest names of modules and parameters that hold exactly these parameters.
        parameters: number of these parameters.
        of: number of all trainable parameters of the model.
        values: number of values of these parameters.
    """

    model: str
    parts: tuple[str, ...]
    parameters: int
    of: int
    values: int


@dataclass(frozen=True, slots=True)
class Term:
    """A loss, or a term of one.

    Attributes:
        name: variable of the script that holds it; "" without one.
        operation: operation or loss module that made it.
        factor: number that it is multiplied by in the sum; None if unknown.
        value: its value, before the factor; None if unknown.
        reaches: the parameters that it reaches, by model.
        tensors: other tensors that it reaches: name and shape.
        terms: the terms that it is the sum of.
    """

    name: str
    operation: str
    factor: float | None
    value: float | None
    reaches: tuple[Reach, ...]
    tensors: tuple[tuple[str, tuple[int, ...]], ...]
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """Where the gradient of a loss ends.

    Attributes:
        parts: modules and parameters that it does not reach, or the variable of the term that has no gradient.
        by: text of the expression, such as ".detach()"; "" if unknown.
        site: its place; None if unknown.
    """

    parts: tuple[str, ...]
    by: str
    site: Place | None


@dataclass(frozen=True, slots=True)
class Loss:
    """A tensor that a backward pass started from.

    Attributes:
        whole: the loss, with its terms.
        site: line of the backward pass; None in a library.
        without_gradient: terms of the sum without a gradient.
        cuts: called layers that it does not reach.
        hidden: reasons for which a part of its graph is unknown, such as "torch.compile".
        saved: bytes that its graph kept for the backward pass; None if torch does not tell.
    """

    whole: Term
    site: Place | None
    without_gradient: tuple[Cut, ...]
    cuts: tuple[Cut, ...]
    hidden: tuple[str, ...]
    saved: int | None


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes at the end of the step; a tied weight counts once.

    Attributes:
        device: device with most of the parameters.
        parameters, buffers, gradients, optimizer: bytes of each; `optimizer` is the state of all optimizers.
        saved: most bytes that a graph kept for its backward pass; None if torch does not tell.
    """

    device: str
    parameters: int
    buffers: int
    gradients: int
    optimizer: int
    saved: int | None


@dataclass(frozen=True, slots=True)
class Inspected:
    """Result of the experiment.

    Attributes:
        step: number of the step, from 1.
        ended: False if the script crashed in the step; it has the layers up to the error then.
        optimizers: classes and lines of the optimizers that stepped; empty if the script updates its weights itself.
        models: the models that were called.
        losses: the losses of the backward passes, in their order.
        passes: number of backward passes.
        memory: the memory of the step.
        trouble: errors of the inspection itself.
        outcome: outcome of the run.
    """

    step: int
    ended: bool
    optimizers: tuple[tuple[str, Place | None], ...]
    models: tuple[ModelFacts, ...]
    losses: tuple[Loss, ...]
    passes: int
    memory: Memory
    trouble: tuple[str, ...]
    outcome: RunOutcome


def inspect(bench: Bench, step: int | None = None) -> Inspected:
    """Run a script up to the end of one step, and inspect the step.

    Args:
        bench: the script.
        step: number of the step of the first optimizer, from 1; None takes the second, or the first if there is no
            other. In a script without optimizers, a step is a backward pass.

    Raises:
        NoExperiment: the script took no such step.
    """
    with bench.place() as place:
        outcome = place.run(Variant("one step", (), (("layers", {"step": step}),)), from_start=True)
    found = outcome.results.get("layers", {})
    seen = found.get("inspected")
    if seen is not None and (seen["ended"] or any(model["layers"] for model in seen["models"])):
        return _read(seen, outcome)
    taken = found.get("steps", 0)
    if not taken and found.get("passes") and outcome.how not in ("crashed", "killed"):
        raise NoExperiment(
            "no optimizer of torch took a step, although losses were backpropagated",
            expected="expected a step: its end is the end of the inspection",
            remedy="pass arguments with which the script steps its optimizer",
            said=outcome.said,
        )
    if not taken:
        raise without_steps(outcome, "expected an optimizer that steps")
    raise NoExperiment(
        f"the script {outcome.how} after {taken} {'step' if taken == 1 else 'steps'}, before step {step}",
        expected=f"expected a step number of at most {taken}",
        remedy=f"pass --step {taken}, or arguments with which the script trains longer",
        said=outcome.said,
    )


def _read(seen: Mapping[str, Any], outcome: RunOutcome) -> Inspected:
    return Inspected(
        step=seen["step"],
        ended=seen["ended"],
        optimizers=tuple((one["kind"], _place(one["site"])) for one in seen["optimizers"]),
        models=tuple(_model(one) for one in seen["models"]),
        losses=tuple(_loss(one) for one in seen["losses"]),
        passes=seen["passes"],
        memory=Memory(**seen["memory"]),
        trouble=tuple(seen["trouble"]),
        outcome=outcome,
    )


def _model(seen: Mapping[str, Any]) -> ModelFacts:
    return ModelFacts(
        name=seen["name"],
        kind=seen["kind"],
        layers=tuple(LayerFacts(**one | {"also": tuple(one["also"])}) for one in seen["layers"]),
        parameters=tuple(ParameterFacts(**one | {"shape": tuple(one["shape"])}) for one in seen["parameters"]),
        tied=seen["tied"],
        not_called=tuple(seen["not_called"]),
        hidden=tuple((one["name"], one["why"], one["modules"]) for one in seen["hidden"]),
        first_nan=seen["first_nan"],
        first_inf=seen["first_inf"],
        gradients=seen["gradients"],
        not_measured=tuple(seen["not_measured"]),
    )


def _loss(seen: Mapping[str, Any]) -> Loss:
    terms = (Cut((one["name"],) if one["name"] else (), one["cut"], _place(one["site"]))
             for one in seen["without_gradient"])  # fmt: skip
    return Loss(
        whole=_term(seen),
        site=_place(seen["site"]),
        without_gradient=tuple(terms),
        cuts=tuple(Cut(tuple(one["parts"]), one["by"], _place(one["site"])) for one in seen["cuts"]),
        hidden=tuple(seen["hidden"]),
        saved=seen["saved"],
    )


def _term(seen: Mapping[str, Any]) -> Term:
    reaches = seen["reaches"]
    return Term(
        name=seen["name"],
        operation=seen["operation"],
        factor=seen["factor"],
        value=seen["value"],
        reaches=tuple(Reach(**one | {"parts": tuple(one["parts"])}) for one in reaches["models"]),
        tensors=tuple((one["name"], tuple(one["shape"])) for one in reaches["tensors"]),
        terms=tuple(_term(one) for one in seen["terms"]),
    )


def _place(site: Sequence[Any] | None) -> Place | None:
    return None if site is None else (str(site[0]), int(site[1]))
