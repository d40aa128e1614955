"""Find the model of a script and its inputs, and time its inference when the script has been stopped."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from truestep.errors import TrueStepError
from truestep.experiments.instruments.instrument import Instrument
from truestep.experiments.instruments.model_names import named, unused
from truestep.experiments.running.inside.outermost_calls import RootCalls
from truestep.experiments.running.inside.steps import on_steps
from truestep.probes.context.sites import Sites
from truestep.seams.wrappers import wrapped_model
from truestep.supervision.session import Stop

_STEPS = 2
"""Steps of an optimizer after which the script is stopped."""
_CALLS = 8
"""Calls of one model without a step after which it is stopped: a script that only predicts."""


@dataclass
class _Seen:
    model: Any
    name: str
    site: tuple[str, int] | None
    calls: int = 0
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] | None = None
    evaluated: bool = False
    """True if the arguments are those of a call in eval mode."""
    trained: bool = False

    @property
    def size(self) -> int:
        """Number of values of its parameters."""
        return sum(parameter.numel() for parameter in self.model.parameters())


class InferenceTimes(Instrument):
    """Times the inference of the script's largest trained model, or of its largest one if it trains none.

    The inputs are those of its first call in eval mode, else of its first call. The script is stopped after two steps
    of an optimizer, or after eight calls of a model without a step.

    Args:
        folder: folder for its files.
        script: path or name of the script.
        batches: numbers of samples; empty for 1 and that of the inputs.
        threads: numbers of threads; empty for that of torch.
        only: names of ways; empty for all.
        budget_s: approximate duration in seconds.
        variable: name of the model's variable; "" for the default.
    """

    name = "inference"

    def __init__(
        self,
        folder: Path,
        script: str,
        batches: Sequence[int] = (),
        threads: Sequence[int] = (),
        only: Sequence[str] = (),
        budget_s: float = 120.0,
        variable: str = "",
    ) -> None:
        super().__init__(folder, script)
        self._batches, self._threads, self._only = batches, threads, only
        self._budget_s, self._variable = budget_s, variable
        self._seen: dict[int, _Seen] = {}
        self._steps = 0
        self._own = ExitStack()
        self._crashed = False
        self._found: dict[str, Any] = {}

    def install(self, stack: ExitStack) -> None:
        import torch

        self._sites = Sites(os.path.dirname(torch.__file__))
        stack.callback(self._own.close)
        _Calls(self._called).listen(self._own)
        on_steps(self._own, self._stepped)

    def crashed(self, error: BaseException) -> None:
        """Measure nothing of a script that crashed before its first step."""
        self._crashed = not self._steps

    def _called(self, model: Any) -> None:
        own = wrapped_model(model)
        seen = self._seen.get(id(own))
        if seen is None:
            frame = self._frame()
            name = unused(self._name(model, own, frame), {one.name for one in self._seen.values()})
            site = None if frame is None else (frame.f_code.co_filename, frame.f_lineno)
            seen = self._seen[id(own)] = _Seen(own, name, site)
        seen.calls += 1
        if seen.kwargs is None or (not own.training and not seen.evaluated):
            self._keep_inputs(own, seen)
        if not self._steps and seen.calls > _CALLS and not own.training:
            raise Stop

    def _frame(self) -> FrameType | None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and self._sites.kind(frame.f_code) != 0:
            frame = frame.f_back
        return frame

    def _name(self, model: Any, own: Any, frame: FrameType | None) -> str:
        found = "" if frame is None else named(model, frame) or named(own, frame)
        return found or type(own).__name__.lower()

    def _keep_inputs(self, own: Any, seen: _Seen) -> None:
        """Keep copies of the arguments of the call that begins."""
        import torch
        from torch.utils import _pytree

        def copied(value: Any) -> Any:
            return value.detach().clone() if isinstance(value, torch.Tensor) else value

        def keep(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            hook.remove()
            seen.args, seen.kwargs = _pytree.tree_map(copied, (args, kwargs))
            seen.evaluated = not own.training

        hook = own.register_forward_pre_hook(keep, with_kwargs=True)

    def _stepped(self, optimizer: Any) -> None:
        if optimizer is not None:
            stepped = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
            for seen in self._seen.values():
                seen.trained |= any(id(parameter) in stepped for parameter in seen.model.parameters())
        self._steps += 1
        if self._steps >= _STEPS and self._seen:
            raise Stop

    def played(self) -> None:
        self._own.close()
        complete = [seen for seen in self._seen.values() if seen.kwargs is not None]
        self._found["models"] = sorted(seen.name for seen in complete)
        if self._variable:
            complete = [seen for seen in complete if seen.name == self._variable]
        if not complete or self._crashed:
            return
        chosen = max(complete, key=lambda seen: (seen.trained, seen.size))
        self._found |= {
            "model": chosen.name,
            "kind": type(chosen.model).__name__,
            "parameters": chosen.size,
            "site": chosen.site,
            "mode": "eval" if chosen.evaluated else "train",
        }
        try:
            self._found |= self._measured(chosen)
        except Exception as error:  # models raise many types in eval mode, or with another number of samples
            said = " ".join(str(error).split())[:200]
            self._found["error"] = [
                f"the inference of {chosen.name} raised {type(error).__name__}: {said}",
                "expected a model that runs on the CPU in eval mode",
                "name another model with --variable, or other sizes with --batch",
            ]

    def results(self, how: str) -> dict[str, Any]:
        return self._found

    def _measured(self, chosen: _Seen) -> dict[str, Any]:
        import torch

        from truestep.experiments.instruments.inference.measuring import measure
        from truestep.experiments.instruments.inference.subject import subject_of_call

        torch.set_grad_enabled(True)
        torch.set_default_device("cpu")
        try:
            with tempfile.TemporaryDirectory(dir=self.folder) as place:
                subject = subject_of_call(chosen.model, chosen.args, chosen.kwargs or {}, Path(place))
                size = subject.calls[0].size
                times = measure(
                    subject,
                    self._batches or sorted({1, size}),
                    self._threads or [torch.get_num_threads()],
                    only=self._only,
                    budget_s=self._budget_s,
                    says=_say,
                )
        except TrueStepError as error:
            return {"error": [error.happened, error.expected, error.remedy]}
        shapes = [
            [name, list(t.shape)] for name, t in zip(subject.calls[0].names, subject.calls[0].tensors, strict=True)
        ]
        return times | {"inputs": shapes}


class _Calls(RootCalls):
    """Passes on the outermost calls of models."""

    def __init__(self, called: Any) -> None:
        super().__init__()
        self._called = called

    def entered(self, module: Any) -> Any:
        if self.is_model(module):
            self._called(module)


def _say(text: str) -> None:
    print(f"truestep: {text}", flush=True)
