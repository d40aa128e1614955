"""Figures of an evaluation by their names, next to the predictions and the losses that they are computed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassFigureRead(Event):
    """After an evaluation, a value with the name of a figure of classes, such as recall, was new."""

    absent: ClassVar[str] = "no recall or F1 score of an evaluation with known predictions"
    claim: str
    """"recall", "precision", "f1", "iou", "specificity" or "balanced" (the mean recall)."""
    name: str
    """The variable, or the source of a printed expression."""
    values: tuple[float, ...]
    """Its numbers: one, or several of a list or an array."""
    counts: tuple[tuple[int, tuple[tuple[int, int, int], ...]], ...] = ()
    """Of each evaluation before it, and of all together: the number of predictions, and for each class true positives,
    false positives and false negatives."""
    batches: tuple[tuple[tuple[tuple[int, int, int], ...], ...], ...] = ()
    """Of each evaluation, the counts of its batches: of one size, by a loader; else empty."""
    place: Site | None = None
    """Line that computes it, else that stores it."""
    site: Site | None = None
    """The call of the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossFigureRead(Event):
    """After an evaluation, a value with the name of a perplexity, or of bits per token, was new."""

    absent: ClassVar[str] = "no perplexity of an evaluation with losses of torch"
    claim: str
    """"perplexity" or "bits"."""
    name: str
    values: tuple[float, ...]
    losses: tuple[tuple[float, float, int], ...] = ()
    """Of each part of the evaluation: the mean loss in nats, the sum of the values of its losses, and their number."""
    place: Site | None = None
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FigureOfTest(Event):
    """An evaluation begins with a value that the program calls one of a test, and reads no data with this word."""

    absent: ClassVar[str] = "no figure with the name of a test"
    name: str
    """The variable, or the text that is printed before the value; with `part`, the loader."""
    part: str = ""
    """Array of another part, if a loader of the test holds it."""
    place: Site | None = None
    """Statement that calls the evaluation."""
    site: Site | None = None
    """The call of the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvaluationRan(Event):
    """A function of the program called an evaluation, directly or by another function; sent once for each function."""

    absent: ClassVar[str] = "no evaluation by a function of the program"
    path: str
    first: int = 0
    """Line of the function; 0 for the statements of the module."""
    site: Site | None = None
    """The call of the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumberChosen(Event):
    """A function with an evaluation chose a number by samples of the test, and computed a figure of them with it."""

    absent: ClassVar[str] = "no number that is chosen by samples of the test"
    name: str
    """The variable, such as "threshold"."""
    by: str
    """Source of one of the values by which it is chosen."""
    figure: Site | None = None
    """The figure of the test."""
    site: Site | None = None
    """The choice."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChoiceRead(Event):
    """The best value of a branch that keeps weights was, after each evaluation, the least loss of the training."""

    absent: ClassVar[str] = "no choice of weights by a loss of the training"
    name: str
    """The variable with the best value."""
    by: str
    """The variable with the loss of the training."""
    beside: str
    """Another variable, with the loss of a validation."""
    evaluations: int = 0
    site: Site | None = None
    """The comparison."""
