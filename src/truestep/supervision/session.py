"""`Session`: one supervised run, from the probes over the rules to the summary."""

from __future__ import annotations

import os
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from truestep.config import Options
from truestep.errors import TorchMissing, UsageError
from truestep.events import Event, RunStarted
from truestep.findings import Finding, PostMortem, Summary, Verdict, shown
from truestep.rules import Rule, all_rules, rule
from truestep.supervision.children import Children
from truestep.supervision.judge import Judge
from truestep.supervision.launching.uncaught import described
from truestep.supervision.record import Recorder
from truestep.supervision.stream import EventStream, Logs
from truestep.supervision.summary import marked_findings, summarise
from truestep.timeline import Timeline

_live: weakref.WeakSet[Session] = weakref.WeakSet()


def _in_child() -> None:
    """Disable every session in a forked process, which is not part of the supervised run."""
    for session in _live:
        session.disable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def watching() -> bool:
    """Return True if a session supervises this process now."""
    return any(session.is_live for session in _live)


def current() -> Session | None:
    """Return a session that supervises this process now; None without one."""
    return next((session for session in _live if session.is_live), None)


class Stop(SystemExit):
    """Ends the script after --steps or at --stop-on, like ``sys.exit(0)``."""

    def __init__(self) -> None:
        super().__init__(0)


class Session:
    """Supervises one run from `start` to `stop`.

    Args:
        options: selection of rules, condition to stop, folder of the record.
        script: name of the supervised program, for the report.
        announce: called with the first error of high confidence.
        also: called with every event; once it returns True, the script is stopped at the next backward pass
            or step.
    """

    def __init__(
        self,
        options: Options | None = None,
        *,
        script: str = "",
        announce: Callable[[Finding], None] | None = None,
        also: Callable[[Event], object] | None = None,
    ) -> None:
        self.options = options or Options()
        self.script = script
        self.how = ""
        self._judge = Judge(chosen(self.options), announce)
        self._children = Children(self.options, script)
        self._also = also
        self._stack = ExitStack()
        self._scene: Any = None
        self._stopping = False
        """True once the script is to be stopped."""
        self._stopped = False
        self._entered = 0
        self._summary: Summary | None = None
        self._recorder: Recorder | None = None
        self._timeline: Timeline | None = None
        self._post_mortem: PostMortem | None = None
        self._error = ""

    def start(self) -> None:
        """Install the probes, and import torch if necessary. While the session runs, further calls do nothing.

        Raises:
            UsageError: the session is already over.
            TorchMissing: torch cannot be imported.
            UnwritableFolder: the record's folder cannot be written.
        """
        if self._summary is not None:
            raise UsageError(
                "cannot start a session that is over",
                expected="expected a new session: each supervises one run, from start to stop",
                remedy="create another one with truestep.watch()",
            )
        if self._scene is not None:
            return
        try:
            import torch
        except ImportError as error:
            raise TorchMissing(
                "torch cannot be imported",
                expected=f"expected PyTorch 2.8 or newer, got: {error}",
                remedy="install it with `pip install torch`, or truestep[torch]",
            ) from None
        from truestep import seams
        from truestep.probes import Listener, Scene, install
        from truestep.probes.context.listener import left_alone

        self._started = RunStarted(
            script=self.script,
            python=sys.version.split()[0],
            torch=torch.__version__,
            rank=int(os.environ.get("RANK", "0")),
            world_size=int(os.environ.get("WORLD_SIZE", "1")),
        )
        if self.options.record is not None:
            self._recorder = Recorder(self.options.record, self._started)
        if self.options.report is not None or self.options.to_tracker:
            self._timeline = Timeline(time.time())
        logs = [log for log in (self._recorder, self._timeline) if log is not None]
        self._stream = EventStream(self._judge, Logs(*logs) if logs else None)
        take = self._stream.take if self._also is None else self._emit
        starts = self._children.enrol if self._also is None else left_alone  # events of children do not reach `also`
        listener = Listener(take, self._step, self._stream.relieve, self._stop_here, starts)
        self._scene = scene = Scene(torch, listener)
        self._in_engine = seams.backward.engine_state()
        scene.coast.until = self.options.steps
        scene.sampling.budget = self.options.budget
        if self._also is None:  # `also` must get every event, without skipping repeated steps
            scene.coast.repeating, scene.coast.passed = self._stream.repeating, self._stream.passed
        self._probes = install(scene, self._stack, active=self.options.active)
        scene.sampling.begin()
        _live.add(self)

    def stop(self, how: str = "finished") -> Summary:
        """Remove the probes, and return the summary. Later calls return the same one."""
        if self._summary is not None:
            return self._summary
        self.how = "stopped" if self._stopped else how
        errors: list[str] = []
        if self._scene is not None:
            self._scene.active = False
            self._stack.close()
            self._scene.coast.end()
            try:
                for probe in self._probes:
                    for event in probe.last():
                        self._emit(event)
                self._scene.forget()
            except Exception:
                self._scene.fail()
            self._stream.close()
            self._stream.settle()
            errors = self._scene.errors
            self._probes.clear()
        else:
            self._started = RunStarted(script=self.script)
        blind, given_up = ("", "") if self._scene is None else (self._scene.blind, self._scene.sampling.given_up)
        self._judge.end("stopped" if blind else self.how, given_up)
        record = "" if self.options.record is None else str(self.options.record)
        self._summary = summarise(
            self._judge,
            self._started,
            self.how,
            errors=errors,
            record=record,
            given_up=given_up,
            blind=blind,
            post_mortem=self._post_mortem,
            error=self._error,
        )
        if self._recorder is not None:
            self._recorder.close(
                self.how,
                list(self._summary.internal_errors),
                given_up=given_up,
                blind=blind,
                post_mortem=self._post_mortem,
                error=self._error,
            )
        self._summary = self._children.merged(replace(self._summary, timeline=self._timeline))
        return self._summary

    def examine(self, error: BaseException) -> None:
        """Diagnose the error that ended the run, while the frames of its traceback exist; only text is kept."""
        scene = self._scene
        if self._summary is None:
            self._error = described(error)
        if self._summary is not None or scene is None or not (scene.active or scene.blind):
            return
        from truestep import postmortem

        self._post_mortem = postmortem.examine(error, scene)

    def disable(self) -> None:
        """Stop observing and writing, in a forked child."""
        if self._scene is not None:
            self._scene.active = self._scene.coast.on = False

    # --- events ----------------------------------------------------------------------------------------------------

    def _emit(self, event: Event) -> None:
        self._pass_on(event)
        self._stream.take(event)

    def _pass_on(self, event: Event) -> None:
        if self._also is not None and self._also(event) is True:
            self._stopping = True

    def _step(self, event: Event) -> None:
        """Process the event that closes a step; end the script if a condition to stop is met."""
        self._pass_on(event)
        self._stream.step(event)
        scene, options = self._scene, self.options
        scene.sampling.mind_budget()
        if options.steps is not None and scene.sampling.step >= options.steps:
            self._stopping = True
        if options.stop_on == "error" and self._judge.certain:
            self._stopping = True
        if not self._in_engine():
            self._stop_here()

    def _stop_here(self) -> None:
        """End the script if a condition to stop was met, perhaps inside a backward pass, which cannot be left."""
        if self._stopping:
            self._stopped = True
            raise Stop

    # --- for `truestep.watch` --------------------------------------------------------------------------------------

    @property
    def is_live(self) -> bool:
        """True while the probes are installed."""
        return self._scene is not None and self._summary is None and bool(self._scene.active or self._scene.blind)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings until the last optimizer step, or of the whole run after its end; without suppressed ones."""
        if self._summary is not None:
            return self._summary.shown()
        if self._scene is None:
            return ()
        self._scene.coast.account()
        self._stream.settle()
        return shown(tuple(marked_findings(self._judge)))

    @property
    def found_so_far(self) -> tuple[Finding, ...]:
        """Findings of the steps that were judged until now, without suppressed ones: cheaper than `findings`."""
        return shown(tuple(marked_findings(self._judge)))

    def so_far(self) -> Summary:
        """Return findings and timeline until now, for a reader that ends before the run does; without a ledger."""
        findings = self.findings
        steps = self.steps
        return Summary(self.script, "unfinished", steps, findings, torch=self._started.torch, timeline=self._timeline)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Context manager that observes nothing, for calls beside the training, such as those of an export."""
        scene = self._scene
        if scene is None or not scene.active:
            yield
            return
        scene.coast.wake()
        with scene.aside():
            yield

    @contextmanager
    def harmless(self) -> Iterator[None]:
        """Context manager for reads while the program runs: an error is an internal error of the report."""
        try:
            yield
        except Exception:
            if self._scene is not None:
                self._scene.fail()

    @property
    def ranks(self) -> int:
        """Number of processes of the run, of which this session observes one."""
        return self._started.world_size

    @property
    def limit(self) -> str:
        """Reason why parts of the run were not observed; "" without one."""
        return "" if self._scene is None else self._scene.blind or self._scene.sampling.given_up

    def ledger_so_far(self) -> dict[str, str]:
        """Return the lines of the ledger until now, by account."""
        if self._scene is not None and self._summary is None:
            self._scene.coast.account()
            self._stream.settle()
        return {name: entry.text for name, entry in self._judge.entries()}

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """Verdict of every rule by rule id: until the last optimizer step, or of the whole run after its end."""
        made = self._summary.verdicts if self._summary is not None else self._judge.verdicts()
        return {verdict.rule: verdict for verdict in made}

    @property
    def post_mortem(self) -> PostMortem | None:
        """Diagnosis of the torch error that ended the block, or None."""
        return self._post_mortem

    @property
    def steps(self) -> int:
        """Number of optimizer steps so far."""
        if self._scene is None:
            return 0
        self._scene.coast.account()
        return int(self._scene.sampling.step)

    def __enter__(self) -> Session:
        self.start()
        self._entered += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: object) -> None:
        self._entered -= 1
        if self._entered == 0:
            if isinstance(value, Exception):
                self.examine(value)
            self.stop("finished" if kind is None else "interrupted" if kind is KeyboardInterrupt else "crashed")


def chosen(options: Options) -> list[type[Rule]]:
    """Return the rules that are selected and not ignored.

    Raises:
        UnknownRule: an id is not that of a rule.
    """
    for id in (*options.select, *options.ignore):
        rule(id)
    rules = all_rules()
    names = options.select or tuple(rules)
    return [rules[id] for id in rules if id in names and id not in options.ignore]
