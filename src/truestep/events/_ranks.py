"""Several processes that train one model together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupJoined(Event):
    """At a sampled step, this process was found to be one of several in a process group of torch.distributed."""

    absent: ClassVar[str] = "one process only"
    rank: int
    world_size: int
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplicaWrapped(Event):
    """A model was wrapped in DistributedDataParallel."""

    absent: ClassVar[str] = "no DistributedDataParallel"
    replica: int
    ranks: tuple[int, ...] = ()
    """Ranks of its process group."""
    parameters: tuple[int, ...] = ()
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplicaRead(Event):
    """At a sampled step: the state of a model in DistributedDataParallel, before the optimizer steps."""

    absent: ClassVar[str] = "no DistributedDataParallel"
    replica: int
    optimizer: int
    prepared: int = 0
    """Number of forward passes of the wrapper that prepared an average of gradients, exact up to ten."""
    hooked: bool = False
    """Whether a communication hook of the program takes the place of the average of gradients."""
    outside: tuple[int, ...] = ()
    """Parameters of the model that joined it after it was wrapped: their gradients are not averaged."""
    recast: str = ""
    """Type and device of parameters now, if they had others when the model was wrapped: their gradients are not
    averaged either."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightsRead(Event):
    """After a sampled step in a process group: some values of the parameters of the optimizer."""

    absent: ClassVar[str] = "no optimizer step in a process group"
    optimizer: int
    parameters: tuple[int, ...] = ()
    values: tuple[tuple[float, ...], ...] = ()
    """Some elements of each of these parameters, rounded to seven digits."""
    sharded: bool = False
    """Whether FSDP shards parameters over all ranks of the group; their values are not read."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CollectiveCalled(Event):
    """The program called an operation over several ranks: once for each line and each kind of tensor."""

    absent: ClassVar[str] = "no collective operation"
    operation: str
    """"reduce", "gather" or "broadcast"."""
    of: str = ""
    """"gradient" or "parameter" for those of a known parameter, else empty."""
    numbers: int = 0
    """Number of elements of the tensor."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartsClipped(Event):
    """At a sampled step, ``clip_grad_norm_`` is about to clip parts of gradients, which FSDP1 divides over ranks."""

    absent: ClassVar[str] = "no gradient clipping of parameters of FSDP1"
    norm: float
    """Norm of the parts on this rank."""
    max_norm: float
    site: Site | None = None
