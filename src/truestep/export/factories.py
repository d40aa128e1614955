"""A model from `module:factory`: a function or a class that returns the model."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
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

    Raises:
        UsageError: the object is missing, or the module would start a training.
    """
    name, colon, attribute = target.partition(":")
    if not colon or not attribute:
        raise UsageError(f'"{target}" names no object', expected="expected MODULE:NAME", remedy="write it as model:Net")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    _refuse_training(name)
    try:
        module = importlib.import_module(name)
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
        named = [each for each in vars(module) if not each.startswith("_")]
        raise UsageError(
            f"module {name!r} has no {attribute!r}",
            expected=f"expected one of {', '.join(named[:12])}",
            remedy="correct the name",
        ) from None


def _refuse_training(name: str) -> None:
    """Raise an error for a script with a training at its top level, which an import would start."""
    if name in sys.modules:
        return
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        return
    try:
        tree = ast.parse(Path(found.origin).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return
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
            raise UsageError(
                f"importing {name} would start the training in {found.origin}, line {node.lineno}",
                expected="expected a module that only defines the model",
                remedy="move the model to a separate module, or call run.export(model, ...) in the script",
            )
        waiting += ast.iter_child_nodes(node)
