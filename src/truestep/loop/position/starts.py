"""States at the beginning of an epoch's body, kept if it runs a model before its loop.

A run that was stopped inside an epoch repeats the part of the body before the loop. If that part runs a model
(rollouts, pseudo-labels, hard examples, clusters), it needs the weights at the start of the epoch, not the later ones
of the checkpoint. So weights are copied when a loop begins, if the body has called a module since the start of the
epoch or since its last loop ended. Registered objects and `run.state`, which the body may change, are copied at the
start of the body if they are small. A body that calls no module before its loop only pays for these.
"""

from __future__ import annotations

import copy
import warnings
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from truestep.errors import InexactResume
from truestep.loop.checkpoint.snapshot import Snapshot
from truestep.loop.process.stacklevel import outside
from truestep.loop.rng.seed import numpy, rng_state, set_rng_state
from truestep.probes import Called
from truestep.seams.divided import is_divided
from truestep.seams.wrappers import uncompiled

if TYPE_CHECKING:
    from truestep.loop.run.registry import Parts, State

SMALL = 64 * 2**20
"""Maximum size in bytes of an object that is copied at the start of each epoch."""
FEW = 10_000
"""Maximum number of values other than tensors in an object that is copied."""
MOST = 4
"""Maximum number of stretches between the loops of one epoch that are kept: each holds all weights."""


class Starts:
    """The state at the beginning of each stretch of an epoch's body outside of its loops.

    Args:
        parts: of the run.
        state: the user's own values.
    """

    def __init__(self, parts: Parts, state: State) -> None:
        self._parts = parts
        self._user = state
        self._called = Called()
        self._kept: list[dict[str, Any]] = []
        self._now: dict[str, Any] | None = None
        self._large: list[str] = []
        self._step = 0
        self._inexact = ""
        self._warned = False
        self._is_over = False

    @property
    def is_open(self) -> bool:
        """Return True while the body is outside of its loops."""
        return self._now is not None

    def begin_epoch(self, step: int) -> None:
        """Begin the first stretch of an epoch."""
        self._kept, self._inexact = [], ""
        self.begin({}, step)

    def begin(self, ended: Mapping[str, int], step: int) -> None:
        """Begin a stretch.

        Args:
            ended: number of ended loops in this epoch, by name of their loader.
            step: steps taken.
        """
        if self._is_over:
            return
        self._large = []
        registered = {name: part for name, part in self._parts.registered.items() if not isinstance(part, nn.Module)}
        copies = {name: self._copy(name, part.state_dict()) for name, part in registered.items()}
        user = self._copy("run.state", dict(self._user))
        self._now = {"ended": dict(ended), "rng": rng_state(), "registered": copies, "user": user}
        self._step = step
        self._called.look()

    def end(self, step: int, *, by_hand: bool) -> None:
        """End a stretch because a loop begins; keep its initial state if it called a module.

        Args:
            step: steps taken.
            by_hand: True if `next()` requested the batch, so that the stretch may continue.
        """
        now = self._now
        if now is not None and self._called.seen and "models" not in now:
            if step != self._step:
                self._inexact = "it also takes steps there"
            elif any(is_divided(one) for model in self._models().values() for one in model.parameters()):
                self._inexact = "parameters that are divided over ranks are not copied"
            elif len(self._kept) >= MOST:
                self._inexact = f"it does so between more than {MOST} loops"
            else:
                if self._large:
                    self._inexact = (
                        f"{', '.join(self._large)} are large or cannot be copied, so their earlier state is not kept"
                    )
                now["models"] = self._weights()
                self._kept.append(now)
        if not by_hand:
            self.close()

    def close(self) -> None:
        """Stop detecting calls of modules."""
        self._now = None
        self._called.stop()

    def end_all(self) -> None:
        """Stop detecting calls for the rest of the process: the run is over."""
        self._is_over = True
        self.close()

    def state_dict(self) -> list[dict[str, Any]]:
        """Return the initial states of this epoch's stretches; warn once if they are incomplete."""
        if self._inexact and not self._warned:
            self._warned = True
            warnings.warn(
                "the body of the epoch runs a model before its loop, and a run that is resumed from the checkpoint "
                f"made here cannot repeat that exactly: {self._inexact}; keep the results in an object given to "
                "run.register(), so that the checkpoint restores them",
                InexactResume,
                stacklevel=outside(),
            )
        return self._kept

    def load_state_dict(self, kept: list[dict[str, Any]]) -> None:
        """Load the states of a checkpoint."""
        self._kept = list(kept)

    def enter(self, ended: Mapping[str, int]) -> None:
        """Restore the state at the start of a stretch that is repeated, if it was kept."""
        kept = next((each for each in self._kept if each["ended"] == ended), None)
        if kept is None:
            return
        for name, tensors in kept["models"].items():
            model = self._models().get(name)
            own = {} if model is None else model.state_dict()
            with torch.no_grad():
                for key, tensor in tensors.items():
                    if key in own:
                        own[key].copy_(tensor)
        for name, state in kept["registered"].items():
            if state is not None and name in self._parts.registered:
                self._parts.registered[name].load_state_dict(copy.deepcopy(state))
        if kept["user"] is not None:
            self._user.restore(copy.deepcopy(kept["user"]))
        set_rng_state(kept["rng"])

    def _copy(self, name: str, state: Any) -> Any:
        """Return a copy of a small state; None for one that is large, or that cannot be copied."""
        if _is_small(state):
            try:
                return copy.deepcopy(state)
            except Exception:  # a lock, a tensor with a graph: must not end the run
                pass
        self._large.append(f'"{name}"')
        return None

    def _models(self) -> dict[str, nn.Module]:
        parts = self._parts
        models: dict[str, nn.Module] = {name: uncompiled(model) for name, model in parts.models.items()}
        models |= {f"average/{name}": followed.average.model for name, followed in parts.averaging.shelf.items()}
        others = {f"part/{name}": part for name, part in parts.registered.items() if isinstance(part, nn.Module)}
        return models | others

    def _weights(self) -> dict[str, dict[str, torch.Tensor]]:
        snapshot = Snapshot(copies=True)
        taken = {
            name: {key: snapshot.take(value) for key, value in model.state_dict().items() if torch.is_tensor(value)}
            for name, model in self._models().items()
        }
        snapshot.finish()
        return taken


def _is_small(state: Any) -> bool:
    """Return True if a state is fast to copy: up to `SMALL` bytes of tensors and arrays, up to `FEW` other values."""
    room, values, rest = SMALL, FEW, [state]
    while rest and room >= 0 and values >= 0:
        held = rest.pop()
        if isinstance(held, torch.Tensor) or (numpy is not None and isinstance(held, numpy.ndarray)):
            room -= int(held.nbytes)
        elif isinstance(held, Mapping | list | tuple | set | frozenset | deque):
            values -= len(held)
            if values >= 0:
                rest.extend(held.values() if isinstance(held, Mapping) else held)
        elif isinstance(held, str | bytes | bytearray):
            room -= len(held)
    return room >= 0 and values >= 0
