"""Run a program in this process as python does, and report how it ended.

The order at the end is that of python: the traceback, the wait for threads, the program's atexit handlers; then the
report, and finally the teardown of the interpreter, with the exit code. The wait and the handlers are therefore called
from here, while the exit code can still be chosen; python then has nothing left to do for them.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from truestep.errors import UsageError
from truestep.supervision.launching import uncaught
from truestep.supervision.launching.first_import import FirstImport
from truestep.supervision.launching.process_exit import Endings
from truestep.supervision.launching.program import Program, Target, prepare

__all__ = ["Target", "launch"]


def launch(
    target: Target,
    *,
    torch_imported: Callable[[], None],
    ended: Callable[[str], int | None],
    forked: Callable[[], None] = lambda: None,
    crashed: Callable[[BaseException], None] = lambda error: None,
    played: Callable[[], None] = lambda: None,
) -> NoReturn:
    """Run a script, folder, archive or module to its end, then end the process in the same way as the program.

    Args:
        target: the program to run.
        torch_imported: called right after the program's own first import of torch.
        ended: called once, at the end of the program, with the kind of end (see `truestep.events.RunEnded`). It can
            return an exit code, which is used if the program itself succeeded.
        forked: called in a forked child, which is not supervised.
        crashed: called with the exception that ended the program, after its traceback was printed.
        played: called when the program's code is over, before its threads are joined and its atexit handlers run.

    Raises:
        NoSuchScript: the program does not exist, or cannot be read.
        ScriptSyntaxError: the program is not valid Python.
        SystemExit: the program is over.
        KeyboardInterrupt: the program was ended by Ctrl-C; must not be caught.
    """
    program = prepare(target)
    ending = _Ending(ended)
    hook = FirstImport("torch", torch_imported)

    def in_child() -> None:
        hook.remove()
        forked()

    endings = Endings(ending, in_child, lambda: ending.busy)
    program.place()
    endings.install()
    hook.install()
    try:
        how, code, by_signal = _play(program, crashed)
    except UsageError:
        ending.over = True
        endings.remove()
        hook.remove()
        raise
    played()
    _finish_threads_and_handlers()
    chosen = ending(how)
    endings.remove()
    hook.remove()
    if by_signal:
        # An uncaught KeyboardInterrupt makes python kill itself by SIGINT. Its traceback is already printed.
        sys.excepthook = lambda *_: None
        raise KeyboardInterrupt
    raise SystemExit(chosen if chosen is not None and code in (None, 0) else code)


class _Ending:
    """Calls `ended` once, and only in the launched process, not in its forks."""

    def __init__(self, ended: Callable[[str], int | None]) -> None:
        self._ended = ended
        self._launched = os.getpid()
        self.over = False
        self.busy = False

    def __call__(self, how: str) -> int | None:
        if self.over or os.getpid() != self._launched:
            return None
        self.over = self.busy = True
        try:
            return self._ended(how)
        except KeyboardInterrupt:
            return None
        except Exception as error:
            note = str(error) if isinstance(error, UsageError) else f"{type(error).__name__}: {error}"
            with contextlib.suppress(OSError):
                os.write(2, f"truestep: no report: {note}\n".encode(errors="replace"))
            return None
        finally:
            self.busy = False


def _play(program: Program, crashed: Callable[[BaseException], None]) -> tuple[str, object, bool]:
    """Run the program; return the kind of end, the exit code, and True if python would kill itself by SIGINT."""
    failure: BaseException | None = None
    launched = os.getpid()
    try:
        program.run(sys.modules["__main__"])
    except UsageError as error:
        if error.__traceback__ is not None and _raised_by_us(error):
            raise
        failure = error
    except BaseException as error:
        failure = error
    if failure is None:
        return "finished", 0, False
    if isinstance(failure, SystemExit):
        code = uncaught.exit_code(failure)
        how = "stopped" if _is_stop(failure) else "exited" if code else "finished"
        failure.__traceback__ = None  # python frees the objects in the frames before it calls the atexit handlers
        return how, code, False
    how = "interrupted" if isinstance(failure, KeyboardInterrupt) else "crashed"
    code = uncaught.show(failure)
    if isinstance(failure, Exception) and os.getpid() == launched:
        with contextlib.suppress(Exception, KeyboardInterrupt):
            crashed(failure)
    return how, code, type(failure) is KeyboardInterrupt


def _raised_by_us(error: UsageError) -> bool:
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is not None and step.tb_frame.f_globals.get("__name__") == prepare.__module__


def _is_stop(error: SystemExit) -> bool:
    stop = getattr(sys.modules.get("truestep.supervision.session"), "Stop", None)
    return isinstance(stop, type) and isinstance(error, stop)


def _finish_threads_and_handlers() -> None:
    threading = sys.modules.get("threading")
    if threading is not None:
        try:
            vars(threading)["_shutdown"]()
        except BaseException as error:
            uncaught.show_in_shutdown(error, threading)
    atexit._run_exitfuncs()
