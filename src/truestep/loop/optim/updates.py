"""One optimizer of a run: its window, its scaler, its schedules, and how often it was applied.

Several optimizers in one loop do not interfere: each one has a separate window and scaler.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from truestep.errors import BadCheckpoint, BadSettings, OpenWindow, OptimizerNotStepped, ScaledGradients
from truestep.loop.optim.window import Window
from truestep.loop.process.stacklevel import outside
from truestep.seams.divided import divide, full, is_divided

if TYPE_CHECKING:
    from truestep.loop.optim.schedulers import Schedule
    from truestep.loop.ranks.strategy import Strategy


class Updates:
    """The updates of one optimizer.

    Args:
        name: its name in the checkpoint.
        optimizer: any `torch.optim.Optimizer`.
        accumulate: micro-steps in a full window.
        clip_norm: largest norm of the gradients of all its parameters together; None for no limit.
        scaler: scales its losses in fp16; None otherwise.
        clips_alone: True if `clip_norm` limits its gradients alone, also where a loss updates several optimizers.
        count: called with the window after it was closed.
        applied: called after every update that changed parameters.
        strategy: averages gradients over ranks.
    """

    def __init__(
        self,
        name: str,
        optimizer: torch.optim.Optimizer,
        *,
        accumulate: int = 1,
        clip_norm: float | None = None,
        scaler: torch.amp.GradScaler | None = None,
        clips_alone: bool = False,
        count: Callable[[Window], object],
        applied: Callable[[Updates], None] = lambda updates: None,
        strategy: Strategy | None = None,
    ) -> None:
        self.name = name
        self.optimizer = optimizer
        self._strategy = strategy if strategy is not None and strategy.world_size > 1 else None
        self.window = Window(accumulate) if self._strategy is None else Window(accumulate, self._strategy.mean)
        self.clip_norm = clip_norm
        self.scaler = scaler
        self.clips_alone = clips_alone
        self.alone: tuple[Updates, ...] = (self,)
        self.group: tuple[Updates, ...] = self.alone
        """The optimizers that the losses of the open window update, this one among them."""
        self.schedules: list[Schedule] = []
        self.applied = 0
        """Updates that changed parameters; steps that the scaler skipped are not counted."""
        self.skipped = 0
        """Updates that the scaler skipped because a gradient was infinite or NaN."""
        self.grad_norm: torch.Tensor | float | None = None
        """The norm of the gradients before the last clipping; None before the first."""
        self.lr: Any = None
        """The learning rate of the last update, of the first group; None before the first."""
        self._count = count
        self._tell = applied
        self._scheduled = 0
        self._prepared = False
        self._stepping = False
        self._groups = len(optimizer.param_groups)
        self.reached_by = ""
        """Name of an optimizer with a loss that reached the parameters of this one, as long as this one is unused."""
        self.looked = False
        """True once the other optimizers that its losses reach were looked up."""
        self._hooks = (
            optimizer.register_step_pre_hook(self._before),
            optimizer.register_step_post_hook(self._after),
        )

    @property
    def made(self) -> int:
        """Number of updates, including those that the scaler skipped."""
        return self.applied + self.skipped

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """Yield the optimizer's parameters, in its order."""
        for group in self.optimizer.param_groups:
            yield from group["params"]

    def gradients(self) -> list[torch.Tensor]:
        """Return the gradients that are not None."""
        return [parameter.grad for parameter in self.parameters() if parameter.grad is not None]

    def has_new_groups(self) -> bool:
        """Return True if parameter groups were added since the last call: they hold gradients of earlier steps."""
        known, self._groups = self._groups, len(self.optimizer.param_groups)
        return self._groups != known

    def unscale_(self) -> None:
        """Unscale and correct the gradients, once per window: they become those of the mean of its losses."""
        if self._prepared:
            return
        self._prepared = True
        if self._strategy is not None and not self.window.averaged:
            self._strategy.average(self)
        scaler = self.group[0].scaler
        if scaler is not None:
            scaler.unscale_(self.optimizer)
        factor = self.window.correction() if self.window.is_open else None
        if factor is None:
            return
        for gradient in self.gradients():
            gradient.mul_(factor)

    def clip_grad_norm_(self, max_norm: float) -> torch.Tensor:
        """Scale the gradients down to `max_norm`; return their norm before, a tensor of no dimension."""
        self.unscale_()
        norm = clipped(self.parameters(), max_norm)
        self.grad_norm = norm
        return norm

    def join(self, group: tuple[Updates, ...]) -> None:
        """Set the optimizers that the next losses update together, with the scale of the first one.

        Raises:
            OpenWindow: the open window holds losses of other optimizers.
        """
        if self.window.is_open and self.group != group:
            raise OpenWindow(
                f'the window of "{self.name}" is open for losses of {_names(self.group)}',
                expected=f"expected the same optimizers until it closes, got {_names(group)}",
                remedy="pass the same optimizers with every loss of a window, or call run.flush() before",
            )
        self.group = group

    def apply(self, closure: Any = None, *, last: bool = True) -> bool:
        """Step the optimizer, through its scaler if it has one; return True if parameters were updated.

        Args:
            closure: for optimizers that evaluate the loss.
            last: True to update the scale afterwards, because no other optimizer has to step with it.
        """
        applied = self.applied
        scaler = self.group[0].scaler
        if not self.made and closure is None:
            if self._strategy is not None:
                self.unscale_()  # gathers gradients that wait
            self._check_gradients()
        self._note_lr()
        self._stepping = True
        try:
            if closure is not None:
                self.optimizer.step(closure)
            elif scaler is None:
                self.unscale_()
                self.optimizer.step()
            else:
                self.unscale_()
                scaler.step(self.optimizer)
                if last:
                    scaler.update()
        except RuntimeError as error:
            if self._strategy is not None:
                self._strategy.explain(error)
            raise
        finally:
            self._stepping = False
        if self.applied == applied:
            self.skipped += 1
            return False
        return True

    def schedule(self) -> None:
        """Step the schedules with `every="step"` once per applied update, also for steps called by the program."""
        while self._scheduled < self.applied:
            self._scheduled += 1
            for schedule in self.schedules:
                if schedule.every == "step":
                    if schedule.end is not None and schedule.scheduler.last_epoch == schedule.end:
                        schedule.warn_of_end()
                    schedule.scheduler.step()

    def reset(self) -> None:
        """Close the window after its update, and count it."""
        self.window.close()
        self._prepared = False
        self._count(self.window)

    def discard(self) -> None:
        """Drop the gradients of the window, for all optimizers of its losses."""
        for updates in self.group if self.window.is_open else (self,):
            updates.optimizer.zero_grad()
            if updates._strategy is not None:
                updates._strategy.discard(updates)
            updates.window.close()
            updates._prepared = False

    def release(self) -> None:
        """Remove the hooks of the optimizer."""
        for hook in self._hooks:
            hook.remove()

    def state_dict(self) -> dict[str, Any]:
        """Return the state besides that of the optimizer."""
        return {
            "applied": self.applied,
            "skipped": self.skipped,
            "grad_norm": None if self.grad_norm is None else float(self.grad_norm),
            "lr": None if self.lr is None else float(self.lr),
            "scaler": None if self.scaler is None else self.scaler.state_dict(),
            "each_body": self.window.each_body,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the state of a stopped run."""
        self.applied = self._scheduled = state["applied"]
        self.skipped = state["skipped"]
        self.grad_norm, self.lr = state.get("grad_norm"), state.get("lr")
        self.window.each_body = state.get("each_body", 0)
        if self.scaler is not None and state["scaler"]:
            self.scaler.load_state_dict(state["scaler"])

    def _before(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        """Prepare a step; if the program called it, the gradients are first unscaled and corrected for the window."""
        if self._stepping:
            return
        if not self.made and not args and not kwargs:
            self._check_gradients()
        self._note_lr()
        if not self.window.is_open:
            if self._strategy is not None:
                self._strategy.average(self)  # of backward passes by hand
            return
        scaler = self.group[0].scaler
        if scaler is not None:
            raise ScaledGradients(
                f"{type(optimizer).__name__}.step() was called on gradients that are scaled for fp16",
                expected=f"expected gradients divided by the scale {scaler.get_scale():g}",
                remedy="call run.optimizer_step() instead: it unscales, steps and updates the scale",
            )
        self.unscale_()

    def _check_gradients(self) -> None:
        """Warn if no parameter has a gradient at the first update of an optimizer, which then changes nothing."""
        if any(parameter.grad is not None for parameter in self.parameters()):
            return
        warnings.warn(
            f'optimizer "{self.name}" ({type(self.optimizer).__name__}) was stepped without a gradient of any '
            "parameter: pass all optimizers that a loss updates to run.backward(loss, optimizer=[...])",
            OptimizerNotStepped,
            stacklevel=outside(),
        )

    @property
    def lr_jumped(self) -> bool:
        """Return True if the next update has more than twice the learning rate of the last one."""
        last, groups = self.lr, self.optimizer.param_groups
        lr = groups[0].get("lr") if groups else None
        return isinstance(lr, float) and isinstance(last, float) and lr > 2 * last > 0

    def _note_lr(self) -> None:
        """Store the learning rate of the update, which a schedule changes afterwards."""
        groups = self.optimizer.param_groups
        lr = groups[0].get("lr") if groups else None
        self.lr = lr.detach().clone() if isinstance(lr, torch.Tensor) else lr

    def _after(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        skipped = getattr(optimizer, "found_inf", None)
        if skipped is None or not skipped.item():  # a fused step is also called when its kernel will skip it
            self.applied += 1
            self._tell(self)
        if not self._stepping:
            self.reset()


def clipped(parameters: Iterable[torch.Tensor], max_norm: float) -> torch.Tensor:
    """Scale the gradients of parameters down to `max_norm` together; return their norm before.

    Raises:
        BadSettings: a gradient is sparse; torch before 2.15 has no norm of sparse tensors.
    """
    given = list(parameters)
    try:
        norm: torch.Tensor = full(torch.nn.utils.clip_grad_norm_(given, max_norm))
        return norm
    except NotImplementedError as error:
        sparse = next((p for p in given if p.grad is not None and p.grad.is_sparse), None)
        if sparse is None:
            raise
        raise BadSettings(
            f"the gradient of a parameter of shape {tuple(sparse.shape)} is sparse, and cannot be clipped",
            expected="expected dense gradients with clip_norm: this torch has no norm of sparse ones",
            remedy="make nn.Embedding with sparse=False, or leave clip_norm out",
        ) from error


def _names(group: tuple[Updates, ...]) -> str:
    return " and ".join(f'"{updates.name}"' for updates in group)


def has_groups_of(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> bool:
    """Return True if an optimizer has as many groups, of as many parameters, as a saved one."""
    saved = [len(group["params"]) for group in state["param_groups"]]
    return saved == [len(group["params"]) for group in optimizer.param_groups]


def load_optimizer(name: str, optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Load the state of an optimizer without casting it, and into its existing group dicts.

    `Optimizer.load_state_dict` casts floating-point state to the parameter's dtype, which makes float32 moments of
    bfloat16 parameters bfloat16; here they keep the dtype that they were saved with. It also replaces the dicts of the
    groups; here they stay the same objects, so that a program that changes their lr still can.

    Args:
        name: name of the optimizer in the checkpoint.
        optimizer: has the same groups and parameters as the saved one.
        state: from its `state_dict()`.

    Raises:
        BadCheckpoint: it has other groups.
    """
    if not has_groups_of(optimizer, state):
        saved = [len(group["params"]) for group in state["param_groups"]]
        own = [len(group["params"]) for group in optimizer.param_groups]
        raise BadCheckpoint(
            f'the optimizer "{name}" has other parameter groups than in the checkpoint',
            expected=f"expected groups of {saved} parameters, got {own}",
            remedy="add the groups of completed epochs before the loop: if run.epoch > 1: add_param_group(...)",
        )
    groups = optimizer.param_groups
    state = _divided(optimizer, state)
    optimizer.load_state_dict(state)
    for group, loaded_group in zip(groups, optimizer.param_groups, strict=True):
        group.clear()
        group.update(loaded_group)
    optimizer.param_groups = groups
    numbers = [number for group in state["param_groups"] for number in group["params"]]
    parameters = [parameter for group in groups for parameter in group["params"]]
    for number, parameter in zip(numbers, parameters, strict=True):
        loaded = optimizer.state.get(parameter, {})
        for key, value in state["state"].get(number, {}).items():
            loaded[key] = _as_saved(loaded[key], value)


def _divided(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> dict[str, Any]:
    """Return a state with tensors that are divided over ranks where the parameters are."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if not any(map(is_divided, parameters)):
        return state
    numbers = [number for group in state["param_groups"] for number in group["params"]]
    own = dict(zip(numbers, parameters, strict=True))
    parts = {
        number: {
            key: divide(value, own[number]) if isinstance(value, torch.Tensor) and value.dim() else value
            for key, value in held.items()
        }
        for number, held in state["state"].items()
    }
    return {**state, "state": parts}


def _as_saved(loaded: Any, saved: Any) -> Any:
    """Return the loaded value, with tensors in the dtype of the saved ones."""
    if isinstance(saved, torch.Tensor):
        return loaded if loaded.dtype == saved.dtype else saved.to(device=loaded.device, copy=True)
    if isinstance(saved, dict):
        return {key: _as_saved(loaded[key], value) for key, value in saved.items()}
    if type(saved) in (list, tuple):
        return type(saved)(map(_as_saved, loaded, saved))
    return loaded
