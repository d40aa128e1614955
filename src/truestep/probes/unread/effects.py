"""Does an expression do more than to return its value? Objects are followed by names; no code of the program runs."""

from __future__ import annotations

import ast
import builtins
import dis
import functools
import inspect
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from truestep.probes.variables.origins import resolved
from truestep.seams.code.functions import code_of

_BUILTINS = {
    abs, bool, dict, enumerate, float, int, isinstance, len, list, max, min, range, reversed, set, sorted, sum, tuple,
    zip,
}  # fmt: skip
_LIBRARIES = ("torch", "numpy", "math", "einops", "random", "itertools", "functools", "copy")
_NATIVE = ("builtins", *_LIBRARIES)
_ACTS = {
    "add", "append", "appendleft", "backward", "clear", "extend", "insert", "load", "load_state_dict", "manual_seed",
    "pop", "popitem", "popleft", "print", "push", "put", "remove", "save", "seed", "send", "setdefault", "step",
    "train", "eval", "update", "write", "zero_grad", "next",
}  # fmt: skip
_STORES = ("STORE_ATTR", "STORE_GLOBAL", "STORE_SUBSCR", "DELETE_ATTR", "DELETE_SUBSCR", "STORE_DEREF", "STORE_SLICE")
_DEEP = 3


def is_pure(value: ast.expr, names: dict[str, Any], torch: Any) -> bool:
    """Return True if an expression only makes a new value, as far as its names show.

    Args:
        value: the expression.
        names: variables at its place.
        torch: the module.
    """
    if isinstance(value, ast.Name | ast.Attribute | ast.Subscript | ast.Constant):
        return False  # another name for a value that exists
    for node in ast.walk(value):
        if isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
            return False
        if isinstance(node, ast.Call) and not _is_pure_call(node, names, torch):
            return False
    return True


def owner_of(node: ast.expr, names: dict[str, Any], torch: Any) -> Any:
    """Return the object of a method; for the data or the gradient of a tensor, this tensor."""
    if isinstance(node, ast.Attribute) and node.attr in ("data", "grad"):
        owner = resolved(node.value, names)
        if type(owner) in (torch.Tensor, torch.nn.Parameter):
            return owner
    return resolved(node, names)


def _is_pure_call(node: ast.Call, names: dict[str, Any], torch: Any) -> bool:
    called = node.func
    if any(word.arg in ("out", "inplace") for word in node.keywords):
        return False
    if isinstance(called, ast.Name):
        return _is_pure_object(names.get(called.id, getattr(builtins, called.id, None)), torch, _DEEP)
    if not isinstance(called, ast.Attribute) or called.attr.endswith("_"):
        return False
    owner = owner_of(called.value, names, torch)
    if owner is None or _is_a(owner, torch.Tensor):
        plain = hasattr(torch.Tensor, called.attr) or called.attr in ("items", "keys", "values", "get")
        return plain and (owner is not None or called.attr != "add") and called.attr != "backward"
    if called.attr in _ACTS:
        return False
    if _is_a(owner, dict, list, tuple, str):
        return True
    if _is_a(owner, ModuleType):
        if _is_library(owner):
            return True
        return _is_pure_object(vars(owner).get(called.attr), torch, _DEEP)
    if _is_a(owner, torch.nn.Module) and called.attr in ("parameters", "named_parameters", "state_dict"):
        return True
    if type(owner).__module__.partition(".")[0] == "torch":
        return not _is_a(owner, torch.nn.Module) or not _has_hooks(owner)
    return _is_pure_object(resolved(called, names), torch, _DEEP)


def _is_pure_object(called: Any, torch: Any, depth: int) -> bool:
    called = called.__func__ if type(called) is MethodType else called
    if _is_a(called, torch.nn.Module):
        kinds = {type(module) for module in _parts(called)}
        own = [inspect.getattr_static(kind, "forward", None) for kind in kinds if not _is_library(kind)]
        return not _has_hooks(called) and all(_is_pure_object(one, torch, depth) for one in own)
    if type(called) is FunctionType and not _is_library(called):
        inner = [called.__globals__.get(name) for name in code_of(called).co_names]
        functions = [one for one in inner if type(one) is FunctionType and not _is_library(one)]
        below = depth > 0 and all(one is called or _is_pure_object(one, torch, depth - 1) for one in functions)
        return _is_pure_code(code_of(called)) and below
    if _is_a(called, type):
        return called in _BUILTINS or _is_library(called)
    if type(called) is BuiltinFunctionType and called.__module__ == "builtins":
        return called in _BUILTINS
    name = _static(called, "__name__") or "_"
    return _is_library(called) and not name.endswith("_") and name not in _ACTS


def _is_a(value: Any, *kinds: type) -> bool:
    """Return True for an instance of a class; `isinstance` can run ``__class__`` of a proxy."""
    return issubclass(type(value), kinds)


def _parts(module: Any) -> list[Any]:
    """Return a module and those below it, without methods that a program can replace."""
    found, queue = {}, [module]
    while queue:
        one = queue.pop()
        if one is not None and id(one) not in found:
            found[id(one)] = one
            queue += one.__dict__["_modules"].values()
    return list(found.values())


def _has_hooks(module: Any) -> bool:
    return any(one.__dict__["_forward_hooks"] or one.__dict__["_forward_pre_hooks"] for one in _parts(module))


def _static(thing: Any, name: str) -> str:
    """Return an attribute of a class, or of an object of Python or a library; "" if it is not a string."""
    if _is_a(thing, type):
        value = type.__getattribute__(thing, name)
    else:
        value = getattr(thing, name, "") if type(thing).__module__.partition(".")[0] in _NATIVE else ""
    return value if type(value) is str else ""


def _is_library(thing: Any) -> bool:
    home = _static(thing, "__name__" if type(thing) is ModuleType else "__module__") or type(thing).__module__
    return home.partition(".")[0] in _LIBRARIES


@functools.lru_cache(maxsize=256)
def _is_pure_code(code: CodeType) -> bool:
    """Return True if a function stores local variables only, and calls no method that changes an object."""
    names = {*code.co_names}
    if not _ACTS.isdisjoint(names) or any(name.endswith("_") and not name.endswith("__") for name in names):
        return False
    if any(one.opname.startswith(_STORES) for one in dis.get_instructions(code)):
        return False
    return all(_is_pure_code(one) for one in code.co_consts if isinstance(one, CodeType))
