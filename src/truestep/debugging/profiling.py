"""Profile some steps of a loop with torch's profiler: times by phase, module and operation."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn
from torch.profiler import record_function

from truestep.debugging._visible import Hidden, joined, kind, titles, visible
from truestep.debugging.timings import DATA, MODULE, STEP, ModuleTime, OperationTime, PhaseTime, Timings
from truestep.errors import BadSettings, TraceNotWritten
from truestep.seams.wrappers import uncompiled_name

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

Batch = TypeVar("Batch")


class Profile:
    """The times of some steps. Empty until the context of `profile` is left.

    `print(profile)` prints tables of 80 columns, `rich.print(profile)` as wide as the terminal.

    Attributes:
        steps: number of measured steps: whole bodies of a loop.
        skipped: number of steps before them.
        step_ms: mean time of a step, in milliseconds, with the profiler on, which slows down steps of many small
            operations.
        phases: data, forward, backward, optimizer, and the rest.
        modules: forward and backward by module, in the order of the first calls.
        operations: the operations of torch, by their time without the operations that they call.
        hidden: parts without times of single modules, such as inside torch.compile.
        trace: the file for chrome://tracing or ui.perfetto.dev; None if not requested, or no step was measured.
    """

    def __init__(self, models: Mapping[str, nn.Module], steps: int, skip: int, options: Mapping[str, Any]) -> None:
        self.steps = 0
        self.skipped = skip
        self.step_ms = 0.0
        self.phases: tuple[PhaseTime, ...] = ()
        self.modules: tuple[ModuleTime, ...] = ()
        self.operations: tuple[OperationTime, ...] = ()
        self.hidden: tuple[Hidden, ...] = ()
        self.trace: Path | None = None
        self._models = models
        self._wanted = steps
        self._options = options
        self._began = 0
        self._whole: list[bool] = []
        self._walking = self._on = False
        self._profiler: torch.profiler.profile | None = None
        self._names: dict[str, str] = {}
        self._attached = ExitStack()

    def loop(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the batches of a loop. The wait for each batch counts as data, the rest as the step.

        Of two nested loops, the outer one is measured.

        Args:
            batches: a loader, or any iterable.
        """
        if self._walking:
            yield from batches
            return
        self._walking = True
        walk = iter(batches)
        try:
            while True:
                self._switch()
                self._began += 1
                if self._on:
                    self._whole.append(False)
                with self._range(STEP):
                    try:
                        with self._range(DATA):
                            batch = next(walk)
                    except StopIteration:
                        self._began -= 1
                        return
                    yield batch
                    if self._on:
                        self._whole[-1] = True
        finally:
            self._walking = False
            close = getattr(walk, "close", None)
            if close is not None:
                close()

    def _switch(self) -> None:
        """Start or stop the measurement, between two steps."""
        if self._profiler is None and self._began == self.skipped:
            if torch._C._autograd._profiler_enabled():
                raise BadSettings(
                    "a profiler of torch is running already",
                    expected="expected at most one at a time",
                    remedy="leave the context of the other one first",
                )
            self._profiler = torch.profiler.profile(**self._options)
            self._attach()
            self._profiler.start()
            self._on = True
        elif self._on and self._began == self.skipped + self._wanted:
            self._stop()

    def _range(self, name: str) -> Any:
        return record_function(name) if self._on else nullcontext()

    def _attach(self) -> None:
        hidden = []
        for prefix, model in self._models.items():
            found = visible(model)
            hidden += [Hidden(joined(prefix, uncompiled_name(h.name)), h.why, h.modules) for h in found.hidden]
            for name, module in found.names.items():
                self._hook(joined(prefix, name), module)
        self.hidden = tuple(hidden)

    def _hook(self, name: str, module: nn.Module) -> None:
        mark = f"{MODULE}{name or '(model)'}"
        self._names[mark] = kind(module)
        ranges: list[Any] = []

        def before(_: nn.Module, args: Any) -> None:
            if not torch.compiler.is_compiling() and torch._C._current_graph_task_id() == -1:
                ranges.append(record_function(mark))
                ranges[-1].__enter__()

        def after(_: nn.Module, args: Any, output: Any) -> None:
            if ranges and not torch.compiler.is_compiling() and torch._C._current_graph_task_id() == -1:
                ranges.pop().__exit__(None, None, None)

        self._attached.callback(module.register_forward_pre_hook(before, prepend=True).remove)
        self._attached.callback(module.register_forward_hook(after, always_call=True).remove)

    def _stop(self) -> None:
        """Stop the measurement; it is read when the context is left."""
        self._attached.close()
        if self._on and self._profiler is not None:
            self._on = False
            self._profiler.stop()

    def _read(self, trace: Path | None) -> None:
        """Read the measurement, and write the trace."""
        self._stop()
        if self._profiler is None:
            return
        timings = Timings(self._profiler.events() or (), self._names, self._whole)  # type: ignore[no-untyped-call]
        self.steps, self.step_ms = timings.steps, timings.step_ms
        self.phases, self.modules, self.operations = timings.phases(), timings.modules(), timings.operations()
        profiler, self._profiler, self._models = self._profiler, None, {}
        if trace is None or not self.steps:
            return
        try:
            trace.parent.mkdir(parents=True, exist_ok=True)
            with trace.open("wb"):
                pass
            profiler.export_chrome_trace(str(trace))
        except (OSError, RuntimeError) as error:
            warnings.warn(f"the trace {trace} was not written: {error}", TraceNotWritten, stacklevel=4)
        else:
            self.trace = trace

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from truestep.debugging._times_table import of_profile

        yield of_profile(self, options.max_width)

    def __str__(self) -> str:
        from truestep.debugging._tables import as_text

        return as_text(self)


@contextmanager
def profile(
    *models: nn.Module,
    steps: int = 10,
    skip: int = 3,
    trace: str | Path | None = None,
    names: Mapping[str, nn.Module] | None = None,
    **options: Any,
) -> Iterator[Profile]:
    """Context manager: measure `steps` steps of a loop, after `skip` steps, which are slower than the others.

    The loop goes on after the measurement. Hooks and the profiler are removed after the last measured step, or when the
    context is left, also by an exception.

    Args:
        *models: models with a row in the table for each of their modules.
        steps: number of steps (bodies of the loop) to measure, at least 1.
        skip: number of steps to skip first, at least 0: they compile, allocate and fill caches.
        trace: a file for the trace, ending with ".json" or ".json.gz".
        names: names of the models, if there are several.
        **options: options of `torch.profiler.profile`, such as record_shapes, with_stack and profile_memory.

    Raises:
        BadSettings: an invalid number of steps, or another profiler of torch is running.

    Warns:
        TraceNotWritten: the file cannot be written.

    Source: the documentation of `torch.profiler`.

    Example:
        >>> model = nn.Linear(4, 2)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> with profile(model, steps=2, skip=1) as found:
        ...     for x in found.loop(torch.ones(5, 3, 4)):
        ...         model(x).sum().backward()
        ...         optimizer.step()
        >>> found.steps, [phase.name for phase in found.phases]
        (2, ['data', 'forward', 'backward', 'optimizer', 'loss, other'])
    """
    for setting, value, least in ("steps", steps, 1), ("skip", skip, 0):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise BadSettings(
                f"{setting} must be an integer of at least {least}, got {value!r}",
                remedy=f"pass {setting}={max(least, 3)}",
            )
    found = Profile(titles(models, names), steps, skip, options)
    path = None if trace is None else Path(trace)
    try:
        yield found
    except BaseException:
        with suppress(Exception):  # the error of the training must not be replaced
            found._read(path)
        raise
    found._read(path)
