"""What calling the program's code again, on copies, has shown. Only with ``--active``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckSkipped(Event):
    """A check on a copy could not be made."""

    absent: ClassVar[str] = "no check was skipped"
    check: str
    """"samples", "reads", "overlap" or "state"."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SamplesCompared(Event):
    """An evaluation call was repeated on a copy of the model, with all samples of the batch but one replaced."""

    absent: ClassVar[str] = "no evaluation repeated on a copy (with --active)"
    model: int
    loader: int | None = None
    """The loader that gave the batch."""
    samples: int = 0
    mixed: bool = False
    """Whether the result for the sample that stayed depends on the others."""
    cause: str = ""
    """"batch_first" (a layer goes over the samples as over a sequence), "view" (a view scrambles them), or empty where
    the cause is not known."""
    kind: str = ""
    """Kind of that layer, such as "LSTM"; "view" or "reshape"."""
    before: tuple[int, ...] = ()
    """Shape of what it was given."""
    after: tuple[int, ...] = ()
    site: Site | None = None
    """The line of that layer or view; of the call where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampleReadAgain(Event):
    """The first samples of a copy of the data set behind an evaluation were read several times."""

    absent: ClassVar[str] = "no evaluation data read again from a copy (with --active)"
    loader: int
    model: int
    differ: bool = False
    """Whether the input of a sample differed from read to read, and its label, a whole number, did not."""
    beside: tuple[int, ...] = ()
    """Loaders that read other samples through the same data set, or through the same transform."""
    site: Site | None = None
    """The line that evaluates the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SamplesShared(Event):
    """The samples that a loader of an evaluation draws were compared with those that the training draws."""

    absent: ClassVar[str] = "no evaluation data compared with those of the training (with --active)"
    loader: int
    model: int
    samples: int = 0
    """How many the loader draws."""
    shared: int = 0
    """How many of them the weights had been trained on; where ``later``, how many they were trained on meanwhile."""
    outside: int = 0
    """How many of them no training of the run had drawn."""
    beyond: int = 0
    """How many samples of the training the loader does not draw."""
    repeated: int = 0
    """How many would be shared by chance, as samples repeat within the training or within the evaluation."""
    by_value: bool = False
    """Whether the samples were compared by what they hold, and not by their numbers in one data set."""
    later: bool = False
    """Whether this comes back to an evaluation of before."""
    trained: tuple[int, ...] = ()
    """The loaders that were trained on."""
    site: Site | None = None
    """The line that evaluates the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlainStateCompared(Event):
    """Tensors in plain attributes of a trained model were looked at, on a copy, during an evaluation."""

    absent: ClassVar[str] = "no evaluation whose model could be looked at (with --active)"
    model: int
    depends: tuple[str, ...] = ()
    """Attributes that the model's own forward writes in train mode only, and that its results depend on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlainStateSaved(Event):
    """Something was saved while tensors in plain attributes of a model had other values than at its first call."""

    absent: ClassVar[str] = "no save of a model with tensors in plain attributes (with --active)"
    model: int
    missing: tuple[str, ...] = ()
    """Those that are not in what was saved, where the state of the model is."""
    held: tuple[str, ...] = ()
    """Those that are in it."""
    site: Site | None = None
