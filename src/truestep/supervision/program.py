"""What is to be run, found and checked as ``python SCRIPT`` and ``python -m MODULE`` find it.

Nothing of the process changes before `Program.place` is called, and a script that cannot be read or compiled is
refused before that.
"""

from __future__ import annotations

import builtins
import difflib
import io
import os
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from types import CodeType, ModuleType

from truestep.errors import NoSuchScript, ScriptSyntaxError
from truestep.supervision.shadowed import forget_shadowed


@dataclass(frozen=True, slots=True)
class Target:
    """What the user wants to run."""

    name: str
    """As typed: the path of a script, folder or archive, or the dotted name of a module."""
    arguments: tuple[str, ...] = ()
    module: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """A checked target: `place` prepares the process, ``run`` executes it in the fresh ``__main__`` it is given."""

    argv: tuple[str, ...]
    folder: str | None
    """What becomes ``sys.path[0]``; None where python puts nothing there."""
    run: Callable[[ModuleType], None]
    bundle: bool = False
    """Whether it is a folder or an archive, which python puts on the path even when told to be safe."""

    def place(self) -> ModuleType:
        """Set ``sys.argv``, ``sys.path`` and a fresh ``__main__`` as python does; return that module."""
        sys.argv[:] = self.argv
        if self.folder is not None:
            if not sys.flags.safe_path:
                sys.path[0] = self.folder
            elif self.bundle:
                sys.path.insert(0, self.folder)
            forget_shadowed(self.folder)
        main = ModuleType("__main__")
        if sys.version_info < (3, 14):
            vars(main).update(__annotations__={})
        vars(main).update(__builtins__=builtins)
        sys.modules["__main__"] = main
        return main


def prepare(target: Target) -> Program:
    """Check that a target can be run.

    Raises:
        NoSuchScript: there is no such file, or it cannot be read.
        ScriptSyntaxError: it is not valid Python.
    """
    if target.module:
        return _module(target)
    path = target.name
    if os.path.exists(path) and pkgutil.get_importer(path) is not None:
        return _bundle(target)
    # As python does, and as tracebacks show it: made absolute, but not normalised.
    full = path if os.path.isabs(path) else f"{os.getcwd()}{os.sep}{path}"
    code, loader = _compiled(path, full)

    def run(main: ModuleType) -> None:
        names = main.__dict__
        names.update(__loader__=loader, __file__=full, __cached__=None)
        try:
            exec(code, names)
        except SystemExit:
            raise  # python leaves at once here, and its atexit handlers still see __file__
        except BaseException:
            _forget_file(names)
            raise
        _forget_file(names)

    folder = os.path.dirname(os.path.realpath(path))
    return Program((path, *target.arguments), None if sys.flags.safe_path else folder, run)


def _forget_file(names: dict[str, object]) -> None:
    names.pop("__file__", None)
    names.pop("__cached__", None)


def _module(target: Target) -> Program:
    if os.path.isfile(target.name):  # python would import what stands before the dot, and then fail
        raise NoSuchScript(
            f'"{target.name}" cannot be run', expected="-m takes a module's name; got a file", remedy="drop -m"
        )
    try:
        here = None if sys.flags.safe_path else os.getcwd()
    except OSError:
        here = None
    return Program(("-m", *target.arguments), here, lambda main: _run_by_name(target.name, target.name, True))


def _bundle(target: Target) -> Program:
    path = target.name
    folder = path if os.path.isabs(path) else f"{os.getcwd()}{os.sep}{path}"
    argv = (path, *target.arguments)
    return Program(argv, folder, lambda main: _run_by_name("__main__", path, False), bundle=True)


def _run_by_name(name: str, shown: str, alter_argv: bool) -> None:
    """Run a module as ``python -m`` does: by runpy's own function, whose frames python shows in tracebacks too."""
    import runpy

    run = vars(runpy)["_run_module_as_main"]
    try:
        run(name, alter_argv)
    except SystemExit as exit:
        if not isinstance(exit.__context__, vars(runpy)["_Error"]):
            raise
        wanted = "a module that can be imported from here" if alter_argv else "a script, or a folder with __main__.py"
        raise NoSuchScript(
            f'"{shown}" cannot be run', expected=str(exit.__context__), remedy=f"give {wanted}"
        ) from None
    except SyntaxError as error:
        if _in_user_code(error, runpy.__spec__.origin if runpy.__spec__ else None):
            raise
        raise _invalid(error, error.filename or shown) from None


def _in_user_code(error: SyntaxError, runner: str | None) -> bool:
    """Whether a line of the program was running already: its own failed import, not a module we cannot start."""
    step, met = error.__traceback__, False
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        met = met or not (name in (__file__, runner) or name.startswith("<frozen "))
        step = step.tb_next
    return met


def _compiled(path: str, full: str) -> tuple[CodeType, SourceFileLoader | SourcelessFileLoader]:
    try:
        if path.endswith(".pyc"):
            compiled = SourcelessFileLoader("__main__", full)
            code = compiled.get_code("__main__")
            if code is None:
                raise ImportError(f"{path} holds no code")
            return code, compiled
        with io.open_code(full) as file:
            source = file.read()
    except (OSError, ImportError, EOFError) as error:
        raise _missing(path, error) from None
    try:
        code = compile(source, full, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise _invalid(error, path) from None
    return code, SourceFileLoader("__main__", full)


def _missing(path: str, error: Exception) -> NoSuchScript:
    if os.path.exists(path):
        reason = getattr(error, "strerror", None) or str(error)
        return NoSuchScript(f'"{path}" cannot be read', expected=reason, remedy="make the file readable")
    folder, name = os.path.split(path)
    try:
        scripts = [entry for entry in os.listdir(folder or ".") if entry.endswith(".py")]
    except OSError:
        where = f'there is no folder "{folder}" in {os.getcwd()}'
        return NoSuchScript(f'there is no script "{path}"', expected=where, remedy="give the path of a script")
    near = difflib.get_close_matches(name, scripts, n=3, cutoff=0.6)
    expected = f"nearest: {', '.join(os.path.join(folder, script) for script in near)}" if near else ""
    return NoSuchScript(
        f'there is no script "{path}"',
        expected=expected or f"looked in {os.path.abspath(folder)}",
        remedy="give the path of a script, or -m and the name of a module",
    )


def _invalid(error: SyntaxError | ValueError, path: str) -> ScriptSyntaxError:
    if not isinstance(error, SyntaxError):
        return ScriptSyntaxError(f"{path} is not valid Python", expected=str(error), remedy="save it as text")
    line = (error.text or "").strip()
    place = f"line {error.lineno}: " if error.lineno else ""
    return ScriptSyntaxError(
        f"{path} is not valid Python",
        expected=f"{place}{error.msg}" + (f": {line}" if line else ""),
        remedy="correct that line" if error.lineno else "save it as UTF-8",
    )
