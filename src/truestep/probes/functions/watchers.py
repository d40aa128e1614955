"""Programs that would see that their functions are observed, by the source of their files.

They compile functions, or read frames, tracebacks or code: they would find those of this package there.
"""

from __future__ import annotations

import ast
import functools
import sys

from truestep import source

_MODULES = frozenset({"cProfile", "cloudpickle", "dill", "joblib", "marshal", "pdb", "profile", "trace", "traceback"})
_NAMES = frozenset(
    {"jit", "make_fx", "symbolic_trace", "_getframe", "currentframe", "getouterframes", "settrace", "setprofile"}
)
_ATTRIBUTES = frozenset({"f_back", "exc_info", "__traceback__", "exception"})
_OF_MODULES = {
    "inspect": frozenset({"stack", "trace", "getfile", "getsourcefile", "getmodule"}),
    "torch": frozenset({"compile", "export", "jit"}),
}
_OF_ARGUMENTS = frozenset({"argcount", "posonlyargcount", "kwonlyargcount", "varnames", "name", "qualname"})
_PACKAGES = "torch.jit", "torch.export", "torch._dynamo", "rich.traceback"
_OTHER_COMPILERS = frozenset({"re", "regex"})


@functools.lru_cache(maxsize=1024)
def watches(path: str) -> bool:
    """Return True if a file of the program compiles functions, or reads frames, tracebacks or code."""
    return any(map(_tells, source.walk(source.parsed(path) or ast.Module([], []))))


def compiled_frames() -> int:
    """Return the number of frames that `torch.compile` has compiled so far, also from another file."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    return int(counters["frames"]["total"]) if "frames" in counters else 0


def _tells(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return any(_is_watcher(one.name) for one in names)
        case ast.ImportFrom(module=str(module), names=names):
            found = {one.name for one in names}
            return _is_watcher(module) or bool(found & (_NAMES | _OF_MODULES.get(module, frozenset())))
        case ast.Attribute(value=ast.Attribute(attr="__code__"), attr=name):
            return name.removeprefix("co_") not in _OF_ARGUMENTS
        case ast.Attribute(value=owner, attr=name):
            of = owner.id if isinstance(owner, ast.Name) else ""
            if name == "compile":
                return of not in _OTHER_COMPILERS
            return name in _NAMES or name in _ATTRIBUTES or name in _OF_MODULES.get(of, ())
        case ast.keyword(arg="exc_info" | "stack_info"):
            return True
        case ast.Constant(value=str(text)):
            return text.startswith(_PACKAGES) and text.replace(".", "").isidentifier()
        case _:
            return False


def _is_watcher(module: str) -> bool:
    return module.split(".")[0] in _MODULES or module.startswith(_PACKAGES)
