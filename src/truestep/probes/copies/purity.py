"""Analysis of code for side effects: decides from bytecode and reachable objects if code can be called again.

Code passes if it assigns no global or enclosing variable, uses only known libraries, calls nothing that prints, writes
files or changes settings, and does not modify objects that a copy shares with the program. In doubt it does not pass,
and the check is skipped.
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import itertools
import pathlib
import re
import types
from collections.abc import Callable, Iterable
from typing import Any

from truestep.seams.code.functions import code_of

LIBRARIES = frozenset({
    "torch", "torchvision", "torchaudio", "numpy", "math", "cmath", "random", "itertools", "functools", "operator",
    "collections", "typing", "einops", "timm", "PIL", "re", "string", "copy", "dataclasses", "abc", "enum", "os",
    "posixpath", "pathlib", "time", "builtins", "scipy", "albumentations", "cv2", "skimage", "statistics", "bisect",
    "warnings", "transformers", "pandas", "types", "argparse", "_functools", "_operator", "_collections", "truestep",
})  # fmt: skip
"""Trusted libraries: their code has no effect outside of its arguments."""
_BANNED = frozenset({
    "print", "input", "open", "exec", "eval", "compile", "breakpoint", "setattr", "delattr", "globals", "locals",
    "vars", "exit", "quit", "__import__", "remove", "unlink", "system", "makedirs", "mkdir", "rename",
    "rmdir", "savetxt", "tofile", "to_csv", "to_pickle", "dump", "write", "write_text", "write_bytes", "imwrite",
    "imsave", "save", "savefig", "_exit", "kill", "fork", "popen", "environ", "putenv", "chdir", "show", "imshow",
    "train", "backward", "grad", "enable_grad", "all_reduce", "all_gather", "barrier", "broadcast_object_list",
    "step", "zero_grad", "memory_allocated", "max_memory_allocated", "empty_cache", "__dict__",
})  # fmt: skip
_MUTATORS = frozenset({
    "append", "extend", "insert", "pop", "popitem", "update", "setdefault", "add", "clear", "sort", "reverse",
    "discard", "appendleft", "popleft", "extendleft", "rotate", "__setitem__", "subtract", "fill", "put",
})  # fmt: skip
_UNSEEN = frozenset({
    "__del__", "__deepcopy__", "__copy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__new__",
    "__getattribute__", "__setattr__",
})  # fmt: skip
"""Special methods that copying would call, or that change the effect of other code."""
_NOT_CALLED = frozenset({"__init__", "__repr__", "__str__", "__init_subclass__", "__class_getitem__", "__format__"})
_TESTS = ("TO_BOOL", "UNARY_NOT", "POP_JUMP")
"""Instructions that read the truth of a value."""
_ENTRIES = frozenset({"forward"})
_ATOMS = (
    int, float, complex, bool, str, bytes, type(None), range, slice, enum.Enum, re.Pattern, pathlib.PurePath,
    type(Ellipsis), type(NotImplemented),
)  # fmt: skip
_SLOTS = types.MemberDescriptorType | types.GetSetDescriptorType | types.WrapperDescriptorType
_MOST_FUNCTIONS = 400


class Purity:
    """Analyses functions and classes; `reason` is the first side effect found, in words, or empty.

    Args:
        torch: the module.
        is_users: returns True if code was written by the user.
    """

    def __init__(self, torch: Any, is_users: Callable[[types.CodeType], bool]) -> None:
        self._torch = torch
        self._is_users = is_users
        self._pool: dict[str, list[Callable[..., Any]]] = {}
        self._names: set[str] = set(_ENTRIES)
        self._classes: set[type] = set()
        self._judged: set[int] = set()
        self._todo: list[Callable[..., Any]] = []
        self._shared = self._class_used = ""
        self._writes = self._stores = ""
        self.reason = ""

    def instance(self, thing: object) -> None:
        """Add the class of an object that is copied."""
        self._class(type(thing))

    def function(self, thing: Any) -> None:
        """Add a function that is called."""
        if getattr(thing, "_torchdynamo_orig_callable", None) is not None:
            self._refuse("it is compiled")
        elif self._is_users(code_of(thing)):
            self._todo.append(thing)
        else:
            self._library(thing)

    def value(self, thing: Any) -> None:
        """Add an object that the copy shares with the original."""
        self._value(thing, str(getattr(thing, "__name__", type(thing).__name__)))

    def judge(self) -> str:
        """Return the reason why the code cannot be called again; empty if it can."""
        while self._todo and not self.reason:
            function = self._todo.pop()
            if id(function) in self._judged:
                continue
            self._judged.add(id(function))
            if len(self._judged) > _MOST_FUNCTIONS:
                self._refuse("it has too much code to analyse")
                break
            self._function(function)
        if not self.reason and self._shared and (self._writes or self._stores):
            self._refuse(f"its code reads {self._shared}, and writes in {self._writes or self._stores}")
        if not self.reason and self._class_used and self._stores:
            self._refuse(f"its code uses the class {self._class_used}, and sets attributes in {self._stores}")
        return self.reason

    def _refuse(self, reason: str) -> None:
        self.reason = self.reason or reason

    # --- classes -----------------------------------------------------------------------------------------------

    def _class(self, kind: type) -> None:
        for base in kind.__mro__:
            if base in self._classes or base is object:
                continue
            self._classes.add(base)
            if base.__module__.partition(".")[0] in LIBRARIES and base.__module__ != "__main__":
                if base.__module__.startswith(("torch.jit", "torch.distributed", "torch.fx", "torch._dynamo")):
                    self._refuse(f"it contains a {base.__name__}")
                continue
            own = [_plain(value) for value in vars(base).values()]
            functions = [value for value in own if isinstance(value, types.FunctionType)]
            if functions and not any(self._is_users(code_of(function)) for function in functions):
                self._refuse(f"its class {base.__name__} comes from {base.__module__.partition('.')[0]}")
            self._members(base)

    def _members(self, base: type) -> None:
        for name, value in vars(base).items():
            plain = _plain(value)
            if name in _UNSEEN:
                self._refuse(f"its class {base.__name__} defines {name}")
            elif isinstance(plain, types.FunctionType):
                self._pool.setdefault(name, []).append(plain)
                dunder = name.startswith("__") and name.endswith("__") and name not in _NOT_CALLED
                if dunder or name in self._names:
                    self._todo.append(plain)
            elif not (name.startswith("__") and name.endswith("__")) and not name.startswith("_abc_"):
                self._value(plain, f"{base.__name__}.{name}")

    # --- functions ---------------------------------------------------------------------------------------------

    def _function(self, function: Any) -> None:
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._value(value, "a default argument")
        for name, cell in zip(code_of(function).co_freevars, function.__closure__ or (), strict=True):
            if name != "__class__":
                try:
                    self._value(cell.cell_contents, name)
                except ValueError:
                    continue
        self._code(code_of(function), function, frozenset(code_of(function).co_freevars))

    def _code(self, code: types.CodeType, function: Any, outer: frozenset[str]) -> None:
        where = f"{function.__name__}()"
        names = set(code.co_names)
        banned = names & _BANNED - set(self._pool) - _tested(code)
        banned |= {name for name in names if name.startswith(("set_", "register_")) and name not in self._pool}
        if banned:
            self._refuse(f"its code names `{min(banned)}` in {where}")
            return
        if names & _MUTATORS or any(name.endswith("_") and not name.startswith("_") for name in names):
            self._writes = self._writes or where
        if "__class__" in names:
            self._class_used = self._class_used or "__class__"
        for instruction in dis.get_instructions(code):
            self._instruction(instruction, function, outer, where)
        for name in names - self._names:
            self._names.add(name)
            self._todo.extend(self._pool.get(name, ()))
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._code(constant, function, outer & frozenset(constant.co_freevars))

    def _instruction(self, instruction: Any, function: Any, outer: frozenset[str], where: str) -> None:
        operation, name = instruction.opname, instruction.argval
        if operation in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            self._refuse(f"its code sets the global {name} in {where}")
        elif operation in ("STORE_DEREF", "DELETE_DEREF") and name in outer:
            self._refuse(f"its code sets the outer variable {name} in {where}")
        elif operation in ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"):
            self._writes = self._writes or where
        elif operation in ("STORE_ATTR", "DELETE_ATTR"):
            self._stores = self._stores or where
        elif operation == "IMPORT_NAME" and name.partition(".")[0] not in LIBRARIES:
            self._refuse(f"its code imports {name} in {where}")
        elif operation in ("LOAD_GLOBAL", "LOAD_NAME"):
            values = function.__globals__
            value = values[name] if name in values else getattr(builtins, name, None)
            if value is type:
                self._class_used = self._class_used or "type"
            self._value(value, name)

    # --- values that a copy would share ------------------------------------------------------------------------

    def _value(self, value: Any, name: str, depth: int = 0) -> None:
        if isinstance(value, _ATOMS):
            return
        if isinstance(value, types.ModuleType):
            if value.__name__.partition(".")[0] not in LIBRARIES:
                self._refuse(f"its code uses the module {value.__name__}")
        elif isinstance(value, types.FunctionType):
            self.function(value)
        elif isinstance(value, types.MethodType):
            self._value(value.__func__, name, depth + 1)
            self._value(value.__self__, name, depth + 1)
        elif isinstance(value, type):
            self._global_class(value)
        elif isinstance(value, types.BuiltinFunctionType):
            owner = value.__self__
            outside = owner is not None and not isinstance(owner, types.ModuleType | type)
            if outside or (value.__name__ in _BANNED and not isinstance(owner, type)):
                self._refuse(f"its code uses `{name}`, which has effects outside of the model")
        elif isinstance(value, self._torch.Tensor):
            self._shared = self._shared or name
        elif isinstance(value, self._torch.nn.Module):
            if type(value).__module__ != "torch.nn.modules.activation" or any(value.state_dict()):
                self._refuse(f"its code uses the module `{name}`, which is not a part of it")
        elif isinstance(value, tuple | list | set | frozenset | dict) and depth < 4 and len(value) <= 1000:
            if not isinstance(value, tuple | frozenset):
                self._shared = self._shared or name
            for item in [*value, *value.values()] if isinstance(value, dict) else list(value):
                self._value(item, name, depth + 1)
        elif self._is_plain_value(value):
            return
        elif type(value).__name__ in ("Namespace", "SimpleNamespace") and depth < 4:
            self._value(vars(value), name, depth + 1)
        else:
            self._refuse(f"its code uses `{name}`, a {type(value).__name__}")

    def _is_plain_value(self, value: Any) -> bool:
        torch = self._torch
        kinds = (torch.dtype, torch.device, torch.Size, torch.memory_format, torch.layout)
        if isinstance(value, kinds) or type(value).__module__ in ("typing", "__future__"):
            return True
        if isinstance(value, types.GenericAlias | types.UnionType | types.MethodDescriptorType | _SLOTS):
            return True
        module = str(getattr(value, "__module__", None) or type(value).__module__).partition(".")[0]
        return callable(value) and module in ("torch", "numpy", "einops") and not hasattr(value, "__dict__")

    def _global_class(self, kind: type) -> None:
        if kind.__module__.partition(".")[0] in LIBRARIES and kind.__module__ != "__main__":
            return
        self._class_used = self._class_used or kind.__name__
        self._class(kind)
        made = vars(kind).get("__init__")
        if isinstance(made, types.FunctionType):
            self.function(made)

    def _library(self, thing: Any) -> None:
        module = str(getattr(thing, "__module__", None) or "")
        if module.partition(".")[0] not in LIBRARIES:
            self._refuse(f"its code uses {module or 'a library'}")


def _tested(code: types.CodeType) -> set[str]:
    """Return the attributes that code reads for their truth alone, such as a flag in ``if self.train:``."""
    others: set[str] = set()
    tested: set[str] = set()
    for one, after in itertools.pairwise(dis.get_instructions(code)):
        if isinstance(one.argval, str):
            flag = one.opname == "LOAD_ATTR" and after.opname.startswith(_TESTS)
            (tested if flag else others).add(one.argval)
    return tested - others


def _plain(value: Any) -> Any:
    """Return the function inside a staticmethod, classmethod or property."""
    if isinstance(value, staticmethod | classmethod):
        return value.__func__
    if isinstance(value, property):
        return value.fget
    if isinstance(value, functools.cached_property):
        return value.func
    return value


def functions_in(thing: Any) -> Iterable[Any]:
    """Yield the functions behind a callable value."""
    if isinstance(thing, types.FunctionType):
        yield thing
    elif isinstance(thing, types.MethodType):
        yield from functions_in(thing.__func__)
    elif isinstance(thing, functools.partial):
        yield from functions_in(thing.func)
