"""Read the numbers of a run for the status line, a few times a second, and send them to the drawer."""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truestep.report.color import is_refused

if TYPE_CHECKING:
    from truestep.findings import Finding
    from truestep.supervision.session import Session

_EVERY_S = 0.5
"""Shortest time between two readings."""
_SHARE = 100
"""A reading is followed by this many times its duration without one: it costs at most 1 % of the run."""
_WAIT_S = 1.0
"""Longest time to wait for the drawer at the end."""


def refusal(environment: Mapping[str, str], rank: int = 0) -> str:
    """Return the reason why no status line can be drawn; "" if it can.

    Args:
        environment: environment variables.
        rank: number of the process among those of a run.
    """
    if rank:
        return "rank 0 has it"
    if os.name != "posix":
        return "it needs a POSIX terminal"
    if not _terminal():
        return "neither standard error nor standard output is a terminal"
    if environment.get("TERM", "dumb") == "dumb":
        return "the terminal cannot move its cursor (TERM is dumb or not set)"
    return ""


def _terminal() -> str:
    """Return the path of the terminal of standard error or standard output; "" without one."""
    for number in (2, 1):
        with contextlib.suppress(OSError):
            return os.ttyname(number)
    return ""


class StatusLine:
    """The status line of one run: hooks in the process of the script, and a pipe to the drawer.

    It starts no thread and handles no signal. The loss is read before a backward pass and the norm of the gradients
    before a step, at most twice a second and for at most 1 % of the time.

    Args:
        steps: number of steps after which the script is stopped, if there is one.
    """

    def __init__(self, steps: int | None = None) -> None:
        self._steps = steps
        self._stack = ExitStack()
        self._begun = time.monotonic()
        self._process = os.getpid()
        self._pipe = self._answer = -1
        self._count = 0
        self._read_at = (0, self._begun)
        """Step and time of the last reading."""
        self._next = 0.0
        self._spent = 0.0
        self._loss: float | None = None
        self._norm: float | None = None
        self._due = False
        self._session: Session | None = None
        self._scales: Mapping[Any, float] = {}

    def begin(self, session: Session) -> None:
        """Start the drawer, and read numbers from now on; torch is imported, and the session runs.

        Args:
            session: gives the findings.
        """
        from truestep import seams

        self._session = session
        self._open(_terminal())
        self._scales = seams.scaler.scales(self._stack)
        seams.backward.watch(self._stack, before=self._passes)
        seams.step.watch(self._stack, before=self._steps_soon, after=self._stepped)
        self._tell()

    def end(self) -> None:
        """Remove the hooks, and wait until the terminal is as before."""
        self._stack.close()
        if self._pipe < 0 or os.getpid() != self._process:
            return
        os.close(self._pipe)
        self._pipe = -1
        import select

        select.select([self._answer], [], [], _WAIT_S)  # readable when the drawer has ended
        os.close(self._answer)

    def forked(self) -> None:
        """Close the pipe in a forked child: else the drawer would wait for it."""
        for number in (self._pipe, self._answer):
            with contextlib.suppress(OSError):
                os.close(number)
        self._pipe = self._answer = -1

    def _open(self, terminal: str) -> None:
        path = str(Path(__file__).with_name("drawer.py"))
        passed = str(round(time.monotonic() - self._begun, 1))
        source, self._pipe = os.pipe()
        self._answer, answer = os.pipe()
        os.set_blocking(self._pipe, False)
        try:
            starter = subprocess.Popen(
                [sys.executable, "-I", "-S", path, terminal, str(os.getpid()), passed],
                stdin=source,
                stdout=answer,
                stderr=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C is for the script
            )
            starter.wait()
        finally:
            os.close(source)
            os.close(answer)

    # --- hooks; an error ends the status line, and never reaches the script ------------------------------------------

    def _passes(self, this: Any) -> None:
        if time.monotonic() < self._next or os.getpid() != self._process:
            return
        self._due = True
        self._guarded(self._read_loss, this.roots[0])

    def _steps_soon(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._due:
            self._guarded(self._read_norm, optimizer)

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._count += 1
        if self._due or time.monotonic() >= self._next:
            self._guarded(self._read_rest, optimizer)

    def _guarded(self, read: Any, thing: Any) -> None:
        if self._pipe < 0 or os.getpid() != self._process:
            return
        began = time.monotonic()
        scene = self._session._scene if self._session is not None else None
        aside = None if scene is None else scene.unseen.begin()
        try:
            if not _is_captured():
                read(thing)
        except Exception:
            self._stack.close()
            self.end()
        finally:
            if aside:
                aside.close()
            self._spent += time.monotonic() - began

    def _read_loss(self, root: Any) -> None:
        if root.numel() == 1:
            self._loss = float(root.detach()) / self._scales.get(root, 1.0)

    def _read_norm(self, optimizer: Any) -> None:
        import torch

        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if not gradients or any(gradient.layout is not torch.strided for gradient in gradients):
            self._norm = None
            return
        with torch.no_grad():
            norm = float(torch.nn.utils.get_total_norm(gradients))
        self._norm = norm / float(getattr(optimizer, "grad_scale", None) or 1.0)

    def _read_rest(self, optimizer: Any) -> None:
        now = time.monotonic()
        step, before = self._read_at
        speed = (self._count - step) / (now - before) if step and now > before else 0.0
        self._read_at = (self._count, now)
        rates = {float(group["lr"]) for group in optimizer.param_groups if "lr" in group}
        self._tell(
            loss="" if self._loss is None else f"loss {short(self._loss)}",
            rate=f"lr {short(max(rates))}" if rates else "",
            norm="" if self._norm is None else f"norm {short(self._norm)}",
            speed=_speed(speed),
        )
        self._due = False
        spent = self._spent + time.monotonic() - now
        self._spent = 0.0
        self._next = time.monotonic() + max(_EVERY_S, _SHARE * spent)

    def _tell(self, **state: str) -> None:
        of = f"/{self._steps:,}" if self._steps else ""
        state["step"] = f"step {self._count:,}{of}" if self._count else "no step yet"
        state["found"], state["colour"] = _found(() if self._session is None else self._session.found_so_far)
        if is_refused():
            state["colour"] = ""
        with contextlib.suppress(BlockingIOError):  # a terminal that is stopped (Ctrl-S) drops messages
            os.write(self._pipe, json.dumps(state).encode() + b"\n")


def _is_captured() -> bool:
    """Return True while a CUDA graph is captured, in which nothing may be read."""
    import torch

    if not (torch.cuda.is_available() and torch.cuda.is_initialized()):  # type: ignore[no-untyped-call]
        return False
    return bool(torch.cuda.is_current_stream_capturing())


def _found(findings: tuple[Finding, ...]) -> tuple[str, str]:
    """Return a text about the findings so far, with its colour: errors first."""
    if not findings:
        return "no findings", ""
    errors = [finding for finding in findings if finding.severity == "error"]
    first, *others = errors + [finding for finding in findings if finding not in errors]
    more = f" and {len(others)} more" if others else ""
    return f"! {first.rule}{more}", "31" if errors else "33"


def short(value: float) -> str:
    """Return a number in at most eight characters.

    >>> short(0.43210), short(0.0003), short(123456.7), short(float("nan"))
    ('0.4321', '0.0003', '1.235e+05', 'nan')
    """
    return f"{value:.4g}" if math.isfinite(value) else str(value)


def _speed(steps_per_s: float) -> str:
    if not steps_per_s:
        return ""
    return f"{steps_per_s:.3g}/s" if steps_per_s < 1000 else f"{steps_per_s:,.0f}/s"
