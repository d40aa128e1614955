"""A clock for the phases of a training: each moment between two steps belongs to exactly one phase.

It uses the seams of the probes: iterators of loaders, outermost calls of modules, the entry of the autograd engine,
step hooks of optimizers, and functions that clear, clip and unscale gradients. Nested time counts for the inner phase:
the forward pass of a closure does not count for the optimizer.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from truestep import seams
from truestep.experiments.running.inside.steps import optimizers_made
from truestep.seams.patch import patch

PHASES = ("data", "forward", "backward", "optimizer", "evaluation", "other")
_PATIENCE = 200
"""Steps of other optimizers without one of the first, after which the one that steps becomes the first."""


class _Calls(threading.local):
    """State that the woven call of a module reads; with `inside` 1 it skips the clock."""

    inside = 0


class PhaseClock:
    """Time of each step of the first optimizer by phase; in a script without optimizers, of each backward pass.

    A stretch from one batch to the next with a call of a model, but without a backward pass or step, is evaluation as
    a whole. Without a loader, a call of a model in eval mode and without gradients is evaluation if the model holds
    parameters of the optimizer. Other calls without gradients (a teacher, a rollout) are forward.

    Attributes:
        now: current phase.
        stretch: number of the current stretch; `evaluations` contains the stretches that were evaluation.
        spans: begin and end of evaluations, by `time.perf_counter`.
        batches: batches from loaders since the last step, without evaluation.
        loaders: largest number of workers by kind of loader.
        optimizer: weak reference to the first optimizer.
        thread: id of the training thread; None before the first step.
        calls: listener for every call of a module; None if only the clock observes calls, the outermost ones.
        mark: function called before a batch is fetched; it returns a function to call afterwards.
    """

    def __init__(self) -> None:
        self.now = "other"
        self.stretch = 0
        self.evaluations: set[int] = set()
        self.spans: list[tuple[float, float]] = []
        self.batches = 0
        self.loaders: dict[str, int] = {}
        self.optimizer: Any = lambda: None
        self.thread: int | None = None
        self.calls: Any = None
        self.mark: Callable[[], Callable[[], None]] | None = None
        self._listeners: list[Callable[[dict[str, float]], None]] = []
        self._stack: list[str] = []
        self._since = self._begun = time.perf_counter()
        self._spent = dict.fromkeys(PHASES, 0.0)
        self._stretch = dict.fromkeys(PHASES, 0.0)
        self._trained = self._drew = False
        self._called = self._drawn = self._others = 0
        self._stepping: list[tuple[int, int]] = []
        self._due = False
        self._calls = _Calls()
        self._own: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()

    def on_step(self, listener: Callable[[dict[str, float]], None]) -> None:
        """Add a function to call after every step of the first optimizer, with the seconds by phase."""
        self._listeners.append(listener)

    # --- phases ------------------------------------------------------------------------------------------------

    def enter(self, phase: str) -> int:
        """Begin a phase inside the current one; return the token for `leave`."""
        self._tick()
        self._stack.append(self.now)
        self.now = phase
        return len(self._stack)

    def leave(self, depth: int) -> None:
        """End the phase, with any phases inside it that an exception left open."""
        if len(self._stack) >= depth:
            self._tick()
            self.now = self._stack[depth - 1]
            del self._stack[depth - 1 :]

    def _tick(self) -> None:
        now = time.perf_counter()
        self._stretch[self.now] += now - self._since
        if self.now == "evaluation":
            self.spans.append((self._since, now))
        self._since = now

    def _flush(self) -> None:
        """Add the current stretch to the current step."""
        self._tick()
        evaluation = self._drew and self._called > 0 and not self._trained
        if evaluation:
            self._spent["evaluation"] += sum(self._stretch.values())
            self.evaluations.add(self.stretch)
            self.spans.append((self._begun, self._since))
        else:
            for phase, seconds in self._stretch.items():
                self._spent[phase] += seconds
            self.batches += self._drawn
        self._stretch = dict.fromkeys(PHASES, 0.0)
        self._drawn, self._begun = 0, self._since

    def _elsewhere(self) -> bool:
        return self.thread is not None and threading.get_ident() != self.thread

    def _fetch(self) -> int:
        if not self._stack and (self._called or self._trained):
            self._flush()
            self.stretch += 1
            self._called, self._trained, self._drew = 0, False, False
        return self.enter("data")

    def _step(self) -> None:
        """Report a step of the first optimizer to the listeners."""
        self._trained = True
        self._flush()
        spent, self._spent = self._spent, dict.fromkeys(PHASES, 0.0)
        batches, self.batches = self.batches, 0
        for listener in self._listeners:
            listener(spent | {"batches": batches})
        self._tick()
        self._stretch, self._begun = dict.fromkeys(PHASES, 0.0), self._since  # time of listeners is left out

    # --- seams -------------------------------------------------------------------------------------------------

    def install(self, stack: ExitStack) -> None:
        """Install the clock until the stack unwinds. torch must be imported."""
        import torch

        self._torch: Any = torch
        self._data(stack)
        self._modules(stack)
        self._around_optimizers(stack)

        def run_engine(*args: Any, **kwargs: Any) -> Any:
            if self._elsewhere() or in_engine():
                return backward(*args, **kwargs)
            self._trained = True
            depth = self.enter("backward")
            try:
                result = backward(*args, **kwargs)
            finally:
                self.leave(depth)
            if self._due:
                self._due = False
                self._step()
            elif not made() and kwargs.get("accumulate_grad", False):  # a script that updates its weights itself
                self.thread = threading.get_ident()
                self._step()
            return result

        made = optimizers_made(stack)
        in_engine = self._in_engine = seams.backward.engine_state()
        backward = seams.backward.wrap(stack, run_engine)
        seams.step.watch(stack, before=self._steps, after=self._stepped)

    def _data(self, stack: ExitStack) -> None:
        from truestep.loop.loading.loader import Loader

        def __next__(iterator: Any) -> Any:
            return self._draw(lambda: next_of_torch(iterator))

        def __iter__(loader: Any) -> Any:
            self._met("DataLoader", int(getattr(loader, "num_workers", 0) or 0))
            return self._draw(lambda: iter_of_torch(loader), whole=False)

        def epoch(loader: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
            batches = epoch_of_loader(loader, *args, **kwargs)
            self._met("a loader of truestep.Run", 0)

            def walk() -> Iterator[Any]:
                try:
                    while True:
                        try:
                            batch = self._draw(lambda: next(batches))
                        except StopIteration:
                            return
                        yield batch
                finally:
                    getattr(batches, "close", lambda: None)()

            return walk()

        next_of_torch = seams.loader.wrap_next(stack, __next__)
        iter_of_torch = seams.loader.wrap_iter(stack, __iter__)
        epoch_of_loader = patch(stack, Loader, "epoch", epoch)

    def _met(self, kind: str, workers: int) -> None:
        self.loaders[kind] = max(workers, self.loaders.get(kind, 0))

    def _draw(self, batch_of: Callable[[], Any], *, whole: bool = True) -> Any:
        """Return a batch, or an iterator over batches."""
        if self._elsewhere() or self.now == "data":
            return batch_of()
        depth = self._fetch()
        done = self.mark() if self.mark is not None else None
        try:
            batch = batch_of()
            if whole:
                self._drew = True
                self._drawn += 1
            return batch
        finally:
            if done is not None:
                done()
            self.leave(depth)

    def _modules(self, stack: ExitStack) -> None:
        seams.module_call.wrap(stack, enter=self._call, leave=self._return, depth=self._calls)

    def _call(self, module: Any, args: tuple[Any, ...], depth_of_caller: int = 2) -> Any:
        """Run before a call of a module, unless the woven call skips the clock."""
        if self._elsewhere() or self.now in ("data", "backward") or self._torch.compiler.is_compiling():
            return None
        depth = 0
        if not self._calls.inside and self.now not in ("forward", "evaluation"):
            self._called += 1
            depth = self.enter("evaluation" if self._evaluates(module) else "forward")
            self._calls.inside = 0 if self.calls is not None else 1
        return depth, self._entered(module, depth_of_caller + 1) if self.calls is not None else None

    def _entered(self, module: Any, depth_of_caller: int) -> Any:
        """Report a call to the listener; an error there must not reach the script."""
        try:
            return self.calls.enter(module, depth_of_caller + 1)
        except Exception:
            return None

    def _return(self, token: Any, result: Any, depth_of_caller: int = 2) -> None:
        """Run after the call, also if it raises."""
        if token is None:
            return
        depth, left = token
        if left is not None:
            left()
        if depth:
            self._calls.inside = 0
            self.leave(depth)

    def _evaluates(self, module: Any) -> bool:
        if self._torch.is_grad_enabled() or module.training or (self._drew and not self._trained):
            return False
        optimizer = self.optimizer()
        if optimizer is None:
            return False
        try:
            known = self._own.get(module)
            if known is None:
                held = {id(p) for group in optimizer.param_groups for p in group["params"]}
                known = self._own[module] = any(id(p) in held for p in module.parameters())
        except Exception:  # an unhashable module, or one with generated parameters
            return False
        return known

    def _around_optimizers(self, stack: ExitStack) -> None:
        from torch.nn.utils import clip_grad

        for name in ("_get_total_norm", "_clip_grads_with_norm_"):
            if hasattr(clip_grad, name):
                self._count(name, partial(patch, stack, clip_grad, name))
        for name in ("step", "unscale_", "update"):
            self._count(name, partial(seams.scaler.wrap, stack, name))
        self._count("zero_grad", partial(seams.zero_grad.wrap_optimizer, stack))
        self._count("zero_grad", partial(seams.zero_grad.wrap_module, stack))

    def _count(self, name: str, wrap: Callable[[Any], Any]) -> None:
        """Count the time of a function of torch as the optimizer's."""
        compiling = self._torch.compiler.is_dynamo_compiling

        def counted(*args: Any, **kwargs: Any) -> Any:
            if compiling() or self._elsewhere():
                return function(*args, **kwargs)
            depth = self.enter("optimizer")
            try:
                return function(*args, **kwargs)
            finally:
                self.leave(depth)

        counted.__name__ = name
        function = wrap(counted)

    def _steps(self, optimizer: Any, *_: Any) -> None:
        if self._elsewhere():
            return
        for number, (stepping, depth) in enumerate(self._stepping):
            if stepping == id(optimizer):  # an exception has ended that step
                del self._stepping[number:]
                self.leave(depth)
                break
        self._stepping.append((id(optimizer), self.enter("optimizer")))

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        if self._elsewhere() or not self._stepping:
            return
        self.leave(self._stepping.pop()[1])
        if self._stepping:  # inside the step of another one (SAM)
            return
        first = self.optimizer()
        self._others = 0 if optimizer is first else self._others + 1
        if first is None or self._others > _PATIENCE:
            self.optimizer, self.thread, self._others = weakref.ref(optimizer), threading.get_ident(), 0
        elif optimizer is not first:
            self._trained = True
            return
        if not self._in_engine():
            self._step()
        else:  # in a hook of the backward pass: the step is over when that is
            self._due = True


ALONE = (PhaseClock._call.__code__, PhaseClock._return.__code__)
"""Code that runs inside calls of modules; TorchDynamo must not compile it."""
