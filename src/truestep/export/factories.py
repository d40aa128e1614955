"""A model from `module:factory`: a function or a class that returns the model."""

from __future__ import annotations
import __future__

import ast
import importlib
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from truestep.errors import UsageError


def build(factory: str, arguments: Mapping[str, Any]) -> nn.Module:
    """Return the model of a factory.

    Args:
        factory: "module:function" or "module:Class"; the module is found as from the working folder.
        arguments: keyword arguments of the factory.

    Raises:
        UsageError: the factory is missing, its module starts a training, or its result is not a model.
    """
    found = imported(factory)
    try:
        model = found(**arguments)
    except NameError as error:
        script = _training_script(factory.partition(":")[0])
        if script is None:
            raise
        raise script.needs(error) from None
    except TypeError as error:
        raise UsageError(
            f"{factory} cannot be called with the arguments {', '.join(arguments) or 'none'}: {error}",
            expected="expected a function that returns the model",
            remedy="pass each argument as --argument NAME=VALUE",
        ) from error
    if not isinstance(model, nn.Module):
        raise UsageError(
            f"{factory} returns a {type(model).__name__}",
            expected="expected an nn.Module",
            remedy="name a function or a class that returns the model",
        )
    return model


def imported(target: str) -> Any:
    """Return the object at "module:name", importing its module as from the working folder.

    Of a script that trains, only the imports, functions, classes and constants are read.

    Raises:
        UsageError: the object is missing.
    """
    name, colon, attribute = target.partition(":")
    if not colon or not attribute:
        raise UsageError(f'"{target}" names no object', expected="expected MODULE:NAME", remedy="write it as model:Net")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    script = _training_script(name)
    try:
        module = importlib.import_module(name) if script is None else script.definitions(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        raise UsageError(
            f"module {name!r} was not found",
            expected=f"expected {name.replace('.', '/')}.py below {here}, or an installed package",
            remedy="run the command in the folder of the module",
        ) from None
    try:
        return getattr(module, attribute)
    except AttributeError:
        own = {each for each, value in vars(module).items() if getattr(value, "__module__", None) == name}
        named = [each for each in vars(module) if not each.startswith("_") and (script is None or each in own)]
        raise UsageError(
            f"module {name!r} has no {attribute!r}" + ("" if script is None else f" among its definitions; {script}"),
            expected=f"expected one of {', '.join(named[:12])}",
            remedy="correct the name"
            if script is None
            else "name a function or a class of the script; inputs can be a file of tensors",
        ) from None


@dataclass(frozen=True)
class _Script:
    """A script with a training at its top level, which an import would start.

    Attributes:
        path: its file.
        tree: its syntax.
        line: the line that starts the training.
    """

    path: str
    tree: ast.Module
    line: int

    def __str__(self) -> str:
        return f"the rest was not run, since line {self.line} of {Path(self.path).name} starts a training"

    def definitions(self, name: str) -> ModuleType:
        """Return a module with the imports, functions, classes and constants of the script.

        Raises:
            UsageError: one of them needs a value that the script computes.
        """
        if name in sys.modules:
            return sys.modules[name]
        module = sys.modules[name] = ModuleType(name, ast.get_docstring(self.tree))
        module.__file__, module.__package__ = self.path, name.rpartition(".")[0]
        _SCRIPTS[name] = self
        later = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in self.tree.body)
        flags = __future__.annotations.compiler_flag if later else 0
        for node in filter(_defines, self.tree.body):
            part = ast.Module([node], type_ignores=[])
            try:
                exec(compile(part, self.path, "exec", flags=flags, dont_inherit=True), vars(module))
            except NameError as error:
                if not isinstance(node, ast.Assign | ast.AnnAssign):
                    del sys.modules[name]
                    raise self.needs(error) from None
            except BaseException:
                del sys.modules[name]
                raise
        return module

    def needs(self, error: NameError) -> UsageError:
        """Return the error for a definition that needs a value which the script computes."""
        return UsageError(
            f"a definition of {self.path} needs {error.name}, which the script computes: {self}",
            expected="expected functions and classes that need imports, constants and each other only",
            remedy="pass the value as an argument of the factory, or move the model to a separate module",
        )


_SCRIPTS: dict[str, _Script] = {}
"""Scripts with definitions that were read, by name of the module."""


def _defines(node: ast.stmt) -> bool:
    """Return True for an import, a function, a class, and an assignment without calls."""
    if isinstance(node, ast.Try):
        return all(map(_defines, node.body))
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return not any(isinstance(each, ast.Call | ast.Await | ast.NamedExpr) for each in ast.walk(node))
    return isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _training_script(name: str) -> _Script | None:
    """Return a script with a training at its top level; None for any other module, and one that was imported."""
    if name in sys.modules:
        read = _SCRIPTS.get(name)
        return read if read is not None and read.path == sys.modules[name].__file__ else None
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        return None
    try:
        tree = ast.parse(Path(found.origin).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            continue
        called = node.func if isinstance(node, ast.Call) else None
        word = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        if word in ("Run", "backward") and isinstance(node, ast.Call):
            return _Script(found.origin, tree, node.lineno)
        waiting += ast.iter_child_nodes(node)
    return None
