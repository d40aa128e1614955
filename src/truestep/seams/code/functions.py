"""Functions of the program, observed by code that is put in their place: the same object, called by any name.

The new code has the parameters and the name of the function, and passes a call on to a hook, with a function that has
the old code; `inspect` finds the source by it, in ``__wrapped__`` (docs/decisions/0107).
"""

from __future__ import annotations

import ast
import inspect
import warnings
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from types import CodeType, FunctionType
from typing import Any

from truestep.seams.patch import UNCOUNTED, uncounted

_HOOK = "truestep hook"
"""The constant that the hook takes the place of."""
_UNLIKE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_DEEPEST = 8
"""Most calls of a function inside of each other that are passed on."""
_before: dict[int, tuple[weakref.ref[FunctionType], CodeType, CodeType]] = {}
"""Id of an observed function to its own code, and to the code that takes its place."""


def code_of(function: FunctionType) -> CodeType:
    """Return the code that the program gave to a function.

    Raises:
        AttributeError: it has none.
    """
    known = _before.get(id(function))
    return known[1] if known is not None and known[0]() is function else function.__code__


def observe(stack: ExitStack, function: FunctionType, hook: Callable[..., Any]) -> Callable[[], None] | None:
    """Pass the calls of a function to a hook until the stack unwinds, or the returned function is called.

    Args:
        stack: restores the code of the function.
        hook: takes the function with its own code, a tuple of positional arguments and a dict of the others, each with
            the defaults filled in, and returns the result of the call.

    Returns:
        A function that restores the code; None for generators, coroutines and functions that are observed already.
    """
    code = function.__code__
    if code.co_flags & _UNLIKE or code_of(function) is not code:
        return None
    key, ref = id(function), weakref.ref(function)  # the collector cannot follow references of code

    inside = 0

    def passed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        nonlocal inside
        whole = ref()
        assert whole is not None  # its call is under way
        alone = calls_itself or inside >= _DEEPEST  # then the calls inside need no more frames than without us
        if alone:
            whole.__code__ = code
        inside += 1
        try:
            return hook(_own(whole, code), args, kwargs)
        finally:
            inside -= 1
            known = _before.get(key)
            if alone and known is not None and known[0] is ref and whole.__code__ is code:
                whole.__code__ = known[2]

    calls_itself = function.__name__ in (*code.co_names, *code.co_freevars)
    made = _code(code, uncounted(passed))
    if made is None:
        return None
    own = _own(function, code)
    own.__defaults__, own.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    for name in ("__qualname__", "__module__", "__doc__", "__annotations__"):
        setattr(own, name, getattr(function, name))
    beside = weakref.ref(own)

    def restore() -> None:
        known, whole = _before.get(key), ref()
        if known is not None and known[0] is ref:
            del _before[key]
        if whole is not None and whole.__code__ is made:
            whole.__code__ = code
        wrapped = None if whole is None else vars(whole).get("__wrapped__")
        if whole is not None and wrapped is not None and wrapped is beside():
            del whole.__wrapped__  # type: ignore[attr-defined]

    _before[key] = ref, code, made
    function.__code__ = made
    vars(function).setdefault("__wrapped__", own)
    stack.callback(restore)
    return restore


def _own(function: FunctionType, code: CodeType) -> FunctionType:
    """Return a function with the code that the program gave to another one, for calls with all arguments."""
    return FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)


def _code(code: CodeType, hook: Callable[..., Any]) -> CodeType | None:
    """Return code with the parameters of another one, which passes them to a hook; None if that is not possible."""
    plain, only = code.co_posonlyargcount, code.co_kwonlyargcount
    names = code.co_varnames
    count = code.co_argcount
    positional, named = names[:count], names[count : count + only]
    rest = list(names[count + only :])
    star = rest.pop(0) if code.co_flags & inspect.CO_VARARGS else ""
    double = rest.pop(0) if code.co_flags & inspect.CO_VARKEYWORDS else ""
    if not all(name.isidentifier() for name in (*positional, *named, star or "x", double or "x")):
        return None  # the parameter of a comprehension
    given = [*positional[:plain], *(["/"] if plain else []), *positional[plain:]]
    given += [f"*{star}"] if star else ["*"] if named else []
    given += [*named, *([f"**{double}"] if double else [])]
    passed = "".join(f"{name}, " for name in positional) + (f"*{star}, " if star else "")
    others = ", ".join([*(f"{name!r}: {name}" for name in named), *([f"**{double}"] if double else [])])
    body = f"    def {_NAME}({', '.join(given)}):\n        {_free(code)}\n"
    body += f"        return ({_HOOK!r})(({passed}), {{{others}}})\n"
    outer = "".join(f"    {name} = None\n" for name in code.co_freevars) or "    pass\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        whole = compile(ast.parse(f"def _outer():\n{outer}{body}"), UNCOUNTED, "exec")
    inner = _inner(_inner(whole, "_outer"), _NAME)
    consts = tuple(hook if one == _HOOK else one for one in inner.co_consts)
    if inner.co_freevars != code.co_freevars:
        return None
    return inner.replace(co_consts=consts, co_name=code.co_name, co_qualname=code.co_qualname)


_NAME = "_truestep_observed"


def _free(code: CodeType) -> str:
    """Return a statement that reads the variables of enclosing functions, so that the new code has the same ones."""
    return f"if False: ({', '.join(code.co_freevars)},)" if code.co_freevars else "pass"


def _inner(code: CodeType, name: str) -> CodeType:
    return next(one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == name)
