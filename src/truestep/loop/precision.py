"""In which floating-point format a model computes: fp32, bf16 or fp16, with the scaler that fp16 needs.

Parameters stay fp32; bf16 and fp16 are automatic mixed precision (`torch.autocast`). A loop by hand:

    with precision.autocast():
        loss = criterion(model(x), y)
    precision.scale(loss).backward()
    precision.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    precision.step(optimizer)
    precision.update()
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, Self
from weakref import WeakKeyDictionary

import torch
from torch.amp.grad_scaler import OptState

from truestep.errors import ClosureWithScaler, UnknownPrecision

Format = Literal["fp32", "bf16", "fp16"]

_NAMES: dict[str, Format] = {
    "fp32": "fp32",
    "32": "fp32",
    "32-true": "fp32",
    "bf16": "bf16",
    "bf16-mixed": "bf16",
    "fp16": "fp16",
    "fp16-mixed": "fp16",
    "16-mixed": "fp16",
}
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_FP32: AbstractContextManager[None] = nullcontext()
_TF32_SINCE = (8, 0)
"""The first compute capability with tf32 (Ampere)."""


class Precision:
    """The floating-point format of a training, and the steps that depend on it.

    With fp32 on a GPU that has it, matrix products use tf32 (10 bits of mantissa) until `close()`, which puts back
    what was set before; it is also a context manager that closes.

    Args:
        name: "auto", "fp32" ("32", "32-true"), "bf16" ("bf16-mixed") or "fp16" ("16-mixed", "fp16-mixed"). "auto" is
            bf16 on a GPU that computes in it, fp16 on an older one, and fp32 on cpu and mps.
        device: where the model computes.
        tf32: False to keep fp32 products at their 23 bits.

    Attributes:
        name: "fp32", "bf16" or "fp16".
        reason: why "auto" chose it; empty otherwise.
        scaler: the `torch.amp.GradScaler` of fp16, None otherwise. One scaler serves all optimizers of a loop.
        skipped_steps: how many calls of `step()` the scaler skipped because a gradient was infinite or NaN.

    Raises:
        UnknownPrecision: no format of that name.

    Source: Micikevicius et al., Mixed Precision Training (arXiv:1710.03740), and torch's notes on `torch.amp`.

    >>> precision = Precision("bf16-mixed", torch.device("cpu"))
    >>> with precision.autocast():
    ...     (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    torch.bfloat16
    """

    def __init__(self, name: str = "auto", device: torch.device | str = "cpu", *, tf32: bool = True) -> None:
        self.device = torch.device(device)
        self.name, self.reason = _chosen(name, self.device)
        self.scaler = self.new_scaler()
        self.skipped_steps = 0
        self._applied: WeakKeyDictionary[torch.optim.Optimizer, int] = WeakKeyDictionary()
        self._hooks: WeakKeyDictionary[torch.optim.Optimizer, Any] = WeakKeyDictionary()
        self._restore: Callable[[], None] | None = None
        if tf32 and self.name == "fp32" and _has_tf32(self.device):
            self._restore = _use_tf32()

    def autocast(self) -> AbstractContextManager[object]:
        """Return a context in which the forward pass and the loss are computed; for the backward pass, leave it."""
        if self.name == "fp32":
            return _FP32
        return torch.autocast(self.device.type, dtype=_DTYPES[self.name])

    def new_scaler(self) -> torch.amp.GradScaler | None:
        """Return another scaler, for an optimizer that is to have its own scale; None where none is needed."""
        return torch.amp.GradScaler(self.device.type) if self.name == "fp16" else None

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """Return the loss to call `backward()` on: multiplied by the scale in fp16, the loss itself otherwise."""
        return loss if self.scaler is None else self.scaler.scale(loss)

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Divide an optimizer's gradients by the scale, once per step however often it is called."""
        if self.scaler is None:
            return
        if self.scaler._per_optimizer_states[id(optimizer)]["stage"] is OptState.READY:
            self.scaler.unscale_(optimizer)

    def step(self, optimizer: torch.optim.Optimizer, closure: Callable[[], Any] | None = None) -> bool:
        """Step an optimizer, and return whether its update was applied.

        False means that the scaler skipped it. That is known from the optimizer's own step hook, so that no more is
        waited for than the scaler waits itself; a fused optimizer's scaler does not, and there one value is read.

        Args:
            optimizer: with unscaled or scaled gradients, as they are.
            closure: computes the loss again, for LBFGS and the like; not with fp16.

        Raises:
            ClosureWithScaler: a closure was given with fp16.
        """
        if self.scaler is None:
            optimizer.step(closure) if closure is not None else optimizer.step()
            return True
        if closure is not None:
            raise ClosureWithScaler(
                f"{type(optimizer).__name__} was given a closure in fp16",
                expected="expected no closure: the scaler checks the gradients once, before the step",
                remedy=f'use precision="{_default(self.device)[0]}" for optimizers that compute the loss again',
            )
        before = self.applied_steps(optimizer)
        self.scaler.step(optimizer)
        applied = self._applied[optimizer] > before
        self.skipped_steps += not applied
        return applied

    def update(self) -> None:
        """Adapt the scale, once after the steps of all optimizers; does nothing when no gradient was unscaled.

        Call it where no window is open: gradients that wait in one carry the old scale.
        """
        if self.scaler is None:
            return
        if any(state["found_inf_per_device"] for state in self.scaler._per_optimizer_states.values()):
            self.scaler.update()

    def applied_steps(self, optimizer: torch.optim.Optimizer) -> int:
        """Return how many updates of an optimizer were applied since the first call with it, by whomever."""
        if optimizer not in self._applied:
            self._applied[optimizer] = 0
            self._hooks[optimizer] = optimizer.register_step_post_hook(self._count)
        return self._applied[optimizer]

    def state_dict(self) -> dict[str, Any]:
        """Return the scale and its history, and the count of skipped steps, in types that load with `weights_only`."""
        return {
            "name": self.name,
            "skipped_steps": self.skipped_steps,
            "scaler": None if self.scaler is None else self.scaler.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up the scale of another run; one that had no scaler leaves this one's as it is."""
        self.skipped_steps = state["skipped_steps"]
        if self.scaler is not None and state["scaler"]:
            self.scaler.load_state_dict(state["scaler"])

    def close(self) -> None:
        """Put back what was set for tf32, and take the hooks off the optimizers. Calling it twice is harmless."""
        if self._restore is not None:
            self._restore()
            self._restore = None
        for hook in self._hooks.values():
            hook.remove()
        self._hooks.clear()
        self._applied.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _count(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        """Count an update; a fused optimizer's step is called also when its kernel is to skip it."""
        found_inf = getattr(optimizer, "found_inf", None)
        if found_inf is None or not found_inf.item():
            self._applied[optimizer] = self._applied.get(optimizer, 0) + 1


def _chosen(name: str, device: torch.device) -> tuple[Format, str]:
    """Return the format that a name stands for, and why if it is "auto"."""
    if name == "auto":
        return _default(device)
    if name not in _NAMES:
        best, _ = _default(device)
        raise UnknownPrecision(
            f'"{name}" is not a precision',
            expected='expected one of "auto", "fp32", "bf16", "fp16"',
            remedy=f'use "{best}" on this {_called(device)}',
        )
    return _NAMES[name], ""


def _default(device: torch.device) -> tuple[Format, str]:
    """Return what "auto" chooses on a device, and why."""
    if device.type == "cuda":
        if torch.cuda.is_bf16_supported(including_emulation=False):
            return "bf16", "this GPU computes in bf16, which has the range of fp32 and needs no scaler"
        return "fp16", "this GPU has no bf16; fp16 is its fast format"
    if device.type == "cpu":
        return "fp32", "few CPUs compute faster in bf16, and none in fp16"
    return "fp32", f"mixed precision on {device.type} is not complete"


def _called(device: torch.device) -> str:
    return {"cuda": "GPU", "cpu": "CPU"}.get(device.type, f"{device.type} device")


def _has_tf32(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= _TF32_SINCE


def _use_tf32() -> Callable[[], None]:
    """Switch tf32 on for matrix products, unless the user has chosen, and return what switches back.

    torch has two sets of switches. Once a program has used the newer one, reading the older one raises; once only the
    older one was used, both can be read. So the older one is taken as long as it can be read.
    """
    places = [backend.matmul for backend in (torch.backends.cuda, torch.backends.mkldnn) if hasattr(backend, "matmul")]
    before = [(place, getattr(place, "fp32_precision", None)) for place in places]
    try:
        legacy = torch.get_float32_matmul_precision()
    except RuntimeError:
        legacy = ""
    if legacy not in ("", "highest"):
        return lambda: None
    if legacy:
        torch.set_float32_matmul_precision("high")
    else:
        torch.backends.cuda.matmul.fp32_precision = "tf32"

    def restore() -> None:
        if legacy:
            torch.set_float32_matmul_precision(legacy)
        for place, value in before:
            if value is not None:
                place.fp32_precision = value

    return restore
