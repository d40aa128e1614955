"""Profile the time and memory of a script's steps."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import weakref
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from truestep import seams
from truestep.debugging.timings import BETWEEN
from truestep.experiments.instruments.instrument import Instrument
from truestep.experiments.instruments.profiling.compilations import Compiled, compilations
from truestep.experiments.instruments.profiling.marks import Marks
from truestep.experiments.instruments.profiling.memory import held
from truestep.experiments.instruments.profiling.processors import waited, waits
from truestep.experiments.instruments.profiling.record import ProfilerRecord
from truestep.experiments.instruments.profiling.sampler import Sample, Sampler
from truestep.experiments.instruments.timing.clock import ALONE, PHASES, PhaseClock
from truestep.probes.context.sites import Sites
from truestep.supervision.session import Stop

_LONGEST_S = 20.0
"""Longest window in seconds, once it has `_FEW` steps."""
_FEW = 3
_SEEN_S = 1.0
"""Shortest window of the sampler in seconds: with short steps it takes more of them."""
_MOST_STEPS = 2000
TRACE = "trace.json.gz"


class StepProfile(Instrument):
    """Measures times, lines, modules, operations and memory of some steps; then the script is stopped.

    Steps of the first optimizer pass through four windows: skipped steps, steps that are only timed, steps with a
    sample of the thread every millisecond, and steps under torch's profiler. The overhead of a window does not affect
    the windows before it: the times are those without a profiler.

    Args:
        folder: folder for its files.
        script: path or name of the script.
        steps: steps of a window.
        warmup: skipped steps.
        trace: True writes the profiler's trace, as `trace.json.gz`.
    """

    name = "profile"
    alone = ALONE

    def __init__(self, folder: Path, script: str, steps: int = 20, warmup: int = 5, trace: bool = False) -> None:
        super().__init__(folder, script)
        self._wanted, self._warmup, self._trace = steps, warmup, trace
        self.clock = PhaseClock()
        self._compiled = Compiled()
        self._window = 0
        self._begun = time.perf_counter()
        self._steps: list[list[dict[str, float]]] = [[], [], [], []]
        self._ends: list[float] = []
        self._looks: list[list[Sample]] = [[], []]
        self._compilations: list[int] = []
        """Number of compilations at the end of each window."""
        self._waits: list[dict[str, tuple[int, int]]] = []
        """Running and waiting time of each thread, at the beginning and end of the timed steps."""
        self._before: dict[str, Any] = {}
        self._after: dict[str, Any] = {}
        self._profiler: Any = None
        self._lost = ""
        self._resident = 0
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._kinds: list[str] = []
        """Classes of the optimizers that stepped; the objects are freed when the script ends."""

    def install(self, stack: ExitStack) -> None:
        import torch

        self._sites = Sites(os.path.dirname(torch.__file__))
        self._marks = Marks(self._sites)
        self._sampler = Sampler(self.clock, self._sites)
        self._compiled.install(stack)
        self.clock.on_step(self._stepped)
        self.clock.install(stack)
        seams.step.watch(stack, after=self._met)

    def _met(self, optimizer: Any, *_: Any) -> None:
        if optimizer not in self._optimizers:
            self._optimizers.add(optimizer)
            self._kinds.append(type(optimizer).__name__)

    # --- windows -----------------------------------------------------------------------------------------------

    def _stepped(self, spent: dict[str, float]) -> None:
        if self._window > 3:
            raise Stop
        self._steps[self._window].append(spent)
        if self._window == 3:
            self._mark()
            self._after, self._resident = self._held(), _resident()  # the script may end before the window does
        taken, steps = time.perf_counter() - self._begun, len(self._steps[self._window])
        wanted = self._warmup if self._window == 0 else self._wanted
        over = steps >= wanted
        if self._window == 2 and taken < _SEEN_S:
            over = steps >= _MOST_STEPS
        if over or (self._window and steps >= _FEW and taken > _LONGEST_S):
            self._next()

    def _next(self) -> None:
        self._window += 1
        self._compilations.append(compilations())
        if self._window <= 2:
            self._waits.append(waits())
        if self._window == 2:
            self._sampler.start()
        elif self._window == 3:
            self._looks[0] = self._look_away()
            self._profile()
            self._sampler.start()
        elif self._window == 4:
            self._end()
            raise Stop
        self._begun = time.perf_counter()

    def _look_away(self) -> list[Sample]:
        self._sampler.stop()
        samples, self._sampler.samples = self._sampler.samples, []
        return samples

    def _profile(self) -> None:
        import torch

        if torch._C._autograd._profiler_enabled():
            self._lost = "the script runs torch's profiler itself, and only one can be active"
            self._window = 4
            raise Stop
        self._before = self._held()
        self._profiler = torch.profiler.profile(record_shapes=True, profile_memory=True)
        self._profiler.start()
        self.clock.calls, self.clock.mark = self._marks, self._marks.data
        self._mark()

    def _mark(self) -> None:
        from torch.profiler import record_function

        with record_function(BETWEEN):
            self._ends.append(time.perf_counter())

    def _end(self) -> None:
        """Stop the sampler and the profiler, in any window."""
        looks = self._look_away()
        if self._profiler is not None and self.clock.calls is not None:
            self._looks[1] = looks
            self.clock.calls = self.clock.mark = None
            self._profiler.stop()
        elif looks:
            self._looks[0] = looks

    def _held(self) -> dict[str, Any]:
        return held(list(self._marks.models.values()), list(self._optimizers))

    # --- results -----------------------------------------------------------------------------------------

    def results(self, how: str) -> dict[str, Any]:
        import torch

        self._end()
        results = {
            "warmup": len(self._steps[0]),
            "phases": list(PHASES),
            "timed": _mean(self._steps[1]),
            "looked": _mean(self._steps[2]),
            "profiled": _mean(self._steps[3]),
            "loaders": dict(self.clock.loaders),
            "optimizers": self._kinds,
            "threads": torch.get_num_threads(),
            "accelerator": _accelerator(),
            "resident": self._resident,
            "lines": self._lines(),
            "compiled": self._compiled.results(),
            "timed_compilations": self._compilations[1] - self._compilations[0] if len(self._compilations) > 1 else 0,
            "models": sorted(self._marks.models),
            "hidden": dict(self._marks.hidden),
            "lost": self._lost,
            "waited": waited(*self._waits) if len(self._waits) == 2 else 0.0,
        }
        if self._profiler is not None and len(self._ends) > 1:
            reading = ProfilerRecord(self._profiler, self._marks, self._ends, self.clock.spans, self._looks[1])
            results |= {"modules": reading.modules(), "operations": reading.operations()}
            results["memory"] = reading.memory(self._before, self._after)
            if self._trace:
                self._profiler.export_chrome_trace(str(self.folder / TRACE))
        return results

    def _lines(self) -> list[dict[str, Any]]:
        """Return the seconds of a step by phase and by the user's lines, from the innermost to the outermost."""
        spent: defaultdict[tuple[str, Any], float] = defaultdict(float)
        looks: Counter[tuple[str, Any]] = Counter()
        for sample in self._looks[0]:
            phase = "evaluation" if sample.stretch in self.clock.evaluations else sample.phase
            spent[phase, sample.lines] += sample.seconds
            looks[phase, sample.lines] += 1
        steps = max(1, len(self._steps[2]))
        return [
            {
                "phase": phase,
                "lines": [list(line) for line in lines],
                "seconds": seconds / steps,
                "looks": looks[phase, lines],
            }
            for (phase, lines), seconds in sorted(spent.items(), key=lambda item: -item[1])
        ]


def _mean(steps: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Return the number of steps, and the mean seconds of each phase."""
    count = len(steps)
    return {
        "steps": count,
        "seconds": {phase: sum(step[phase] for step in steps) / max(1, count) for phase in PHASES},
        "batches": sum(step["batches"] for step in steps) / max(1, count),
        "each": [round(sum(step[phase] for phase in PHASES), 6) for step in steps],
    }


def _accelerator() -> str:
    torch = sys.modules["torch"]
    for name in ("cuda", "xpu"):
        part = getattr(torch, name, None)
        if part is not None and part.is_available() and part.is_initialized() and part.max_memory_allocated():
            return name
    return ""


def _resident() -> int:
    """Return the resident bytes of the process; 0 if unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/statm", encoding="ascii") as numbers:
        return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0
