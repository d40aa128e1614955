"""Record loss and gradient norm of every step of a script, without the scale of fp16."""

from __future__ import annotations

import json
import time
import weakref
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from truestep import seams
from truestep.experiments.instruments.given import GivenLosses
from truestep.experiments.instruments.instrument import Instrument
from truestep.experiments.running.inside.steps import on_steps
from truestep.seams.refs import Ref

_EVERY = 20
"""Lines between two flushes of the file: a killed run loses at most so many."""


class Losses(Instrument):
    """Writes one line per step to `steps.jsonl` (see `truestep.experiments.running.outcome.Step`).

    Reading a loss waits for the device: do not use it in runs with precise timing.
    """

    name = "losses"

    def __init__(self, folder: Path, script: str) -> None:
        super().__init__(folder, script)
        self._file = (folder / "steps.jsonl").open("w", encoding="utf-8")
        self._given = GivenLosses()
        self._norm: float | None = None
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._known: dict[int, tuple[Any, int]] = {}
        """First parameter and number of each optimizer that stepped, by the parameter's address."""
        self._begun = time.perf_counter()
        self._lines = 0

    def install(self, stack: ExitStack) -> None:
        self._given.listen(stack)
        seams.step.watch(stack, before=self._steps)
        on_steps(stack, self._stepped)
        stack.callback(self._file.close)

    def results(self, how: str) -> dict[str, Any]:
        self._file.flush()
        return {}

    def _steps(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        closure = args[1] if len(args) > 1 else kwargs.get("closure")  # torch gives the optimizer first
        self._norm = None if closure is not None else _norm(optimizer)

    def _stepped(self, optimizer: Any) -> None:
        losses = self._given.take()
        number = 0
        if optimizer is not None:
            if not self._known and self._lines:  # earlier backward passes were not steps
                self._file.seek(0)
                self._file.truncate()
            number = self._number(optimizer)
        loss = sum(losses) / len(losses) if losses else None
        seconds = round(time.perf_counter() - self._begun, 6)
        line = {"optimizer": number, "loss": loss, "norm": self._norm, "seconds": seconds}
        self._file.write(json.dumps(line) + "\n")
        self._lines += 1
        if self._lines % _EVERY == 0:
            self._file.flush()

    def _number(self, optimizer: Any) -> int:
        """Return the number of an optimizer; a new one over the same parameters keeps the number."""
        number = self._numbers.get(optimizer)
        if number is None:
            first = optimizer.param_groups[0]["params"][0]
            known, number = self._known.get(id(first), (None, 0))
            if known is None or known() is not first:
                number = 1 + max((one for _, one in self._known.values()), default=-1)
                self._known[id(first)] = (Ref(first), number)
            self._numbers[optimizer] = number
        return number


def _norm(optimizer: Any) -> float | None:
    """Return the norm of the gradients of an optimizer, divided by the scale that a fused one removes itself."""
    import torch

    gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    if not gradients or any(gradient.layout is not torch.strided for gradient in gradients):
        return None
    with torch.no_grad():
        norm = float(torch.nn.utils.get_total_norm(gradients))
    scale = getattr(optimizer, "grad_scale", None)
    return norm / float(scale) if scale is not None else norm
