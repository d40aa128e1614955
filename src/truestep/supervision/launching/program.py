"""Find and check the program to run, by the rules of ``python SCRIPT`` and ``python -m MODULE``.

The process is unchanged until `Program.place` is called. A script that cannot be read or compiled is an error before
that.
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
from truestep.supervision.launching.shadowed import forget_shadowed


@dataclass(frozen=True, slots=True)
class Target:
    """The program to run, as given by the user."""

    name: str
    """Path of a script, folder or archive, or dotted name of a module, as typed."""
    arguments: tuple[str, ...] = ()
    module: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """A checked target: `place` prepares the process, ``run`` executes it in a given new ``__main__``."""

    argv: tuple[str, ...]
    folder: str | None
    """The new ``sys.path[0]``; None if python adds none."""
    run: Callable[[ModuleType], None]
    bundle: bool = False
    """True for a folder or an archive, which python adds to the path even with ``-P``."""

    def place(self) -> ModuleType:
        """Set ``sys.argv``, ``sys.path`` and a new ``__main__`` as python does; return that module."""
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
    """Return the program of a target, checked.

    Raises:
        NoSuchScript: the file does not exist, or cannot be read.
        ScriptSyntaxError: the file is not valid Python.
    """
    if target.module:
        return _module(target)
    path = target.name
    if os.path.exists(path) and pkgutil.get_importer(path) is not None:
        return _bundle(target)
    # As in python and its tracebacks: absolute, but not normalised.
    full = path if os.path.isabs(path) else f"{os.getcwd()}{os.sep}{path}"
    code, loader = _compiled(path, full)

    def run(main: ModuleType) -> None:
        names = main.__dict__
        names.update(__loader__=loader, __file__=full, __cached__=None)
        try:
            exec(code, names)
        except SystemExit:
            raise  # python exits at once here, and atexit handlers still find __file__
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
    if os.path.isfile(target.name):  # python would import the part before the dot, and then fail
        raise NoSuchScript(
            f'"{target.name}" cannot be run',
            expected="expected the name of a module after -m, got a file",
            remedy="drop -m",
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
    """Run a module as ``python -m`` does: by runpy's own function, with the same frames in tracebacks."""
    import runpy

    run = vars(runpy)["_run_module_as_main"]
    try:
        run(name, alter_argv)
    except SystemExit as exit:
        if not isinstance(exit.__context__, vars(runpy)["_Error"]):
            raise
        wanted = "a module that can be imported from here" if alter_argv else "a script, or a folder with __main__.py"
        raise NoSuchScript(
            f'"{shown}" cannot be run', expected=str(exit.__context__), remedy=f"pass {wanted}"
        ) from None
    except SyntaxError as error:
        if _in_user_code(error, runpy.__spec__.origin if runpy.__spec__ else None):
            raise
        raise _invalid(error, error.filename or shown) from None


def _in_user_code(error: SyntaxError, runner: str | None) -> bool:
    """Return True if code of the program raised the error, in one of its imports, not the start of the module."""
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
                raise ImportError(f"{path} contains no code")
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
        where = f'expected the folder "{folder}" in {os.getcwd()}'
        return NoSuchScript(f'script "{path}" does not exist', expected=where, remedy="pass the path of a script")
    near = difflib.get_close_matches(name, scripts, n=3, cutoff=0.6)
    expected = f"nearest: {', '.join(os.path.join(folder, script) for script in near)}" if near else ""
    return NoSuchScript(
        f'script "{path}" does not exist',
        expected=expected or f"expected it in {os.path.abspath(folder)}",
        remedy="pass the path of a script, or -m and the name of a module",
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
