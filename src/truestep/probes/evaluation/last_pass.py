"""Find a metric of a loop that is the one of its last batch, since each pass overwrites it.

The source shows the assignment: a value made of a model's result and of a part of the batch that is not given to the
model, never read in the loop, and read behind it; or a result that is compared behind the loop with such a part. A
batch is the value of the loop, or rows of a whole set that follow each other: ``x[i:i + 128]``. The program shows the
rest, in a later pass: the value is a single number, or has the rows of the batch, the part of the batch is none, and
the functions that are called keep nothing of the pass.
"""

from __future__ import annotations

import ast
import builtins
import dis
import functools
import re
from collections.abc import Mapping
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

from truestep import source
from truestep.events import Site
from truestep.probes.context.local_variables import variables
from truestep.probes.evaluation.loops import assignments, is_read, place_of, rows_of
from truestep.probes.forward.results import call_at
from truestep.seams.code.functions import code_of

_RESULT = "result"
_LIBRARIES = frozenset({"torch", "numpy", "sklearn"})
"""Libraries with functions that keep nothing."""
_SHOWN = re.compile(r"print|plot|show|draw|save|write|log|image|figure|zip|display|scatter|add_")
"""Names of functions that show the last batch."""
_STORES = frozenset({"STORE_ATTR", "STORE_SUBSCR", "STORE_GLOBAL"})
_KEEPING = frozenset({"append", "appendleft", "extend", "insert", "setdefault", "update", "print", "write"})
"""Names of functions and methods that keep or show a value."""
_DEEPEST = 3
_LAST = re.compile(r"last|final|batch|sample|example", re.IGNORECASE)
"""Words of a program that means its last batch."""


class LastPass(NamedTuple):
    """A variable that each pass of a loop overwrites.

    Attributes:
        name: the variable.
        place: the assignment.
        rows: True if it holds the results of the batch, which the code behind the loop compares with their targets.
        parts: variables with the other parts of the batch.
        called: functions and objects that the loop calls except for the model, each a variable and its attributes.
    """

    name: str
    place: Site
    parts: frozenset[str]
    called: frozenset[tuple[str, ...]]
    rows: bool = False

    def is_metric(self, torch: Any, frame: FrameType) -> bool:
        """Return True if the variable holds a single number, or its rows, and nothing that the loop calls keeps it.

        Args:
            torch: the module.
            frame: a frame in the loop, after its first pass.
        """
        held = variables(frame)
        value = held.get(self.name)
        several = issubclass(type(value), torch.Tensor) and value.dim() > 0 and len(value) > 1  # type: ignore[attr-defined, arg-type]
        fits = several if self.rows else _is_number(torch, value)
        if not fits or all(_is_number(torch, held.get(one)) for one in self.parts):
            return False
        known = vars(builtins) | frame.f_globals | held
        return all(_keeps_nothing(torch, _found(known, path)) for path in self.called)


@functools.lru_cache(maxsize=256)
def last_pass(site: Site) -> LastPass | None:
    """Return the variable that the loop around the call at a site overwrites with a metric; None without one."""
    found = call_at(site)
    if found is None:
        return None
    call, parents = found
    loop: ast.AST = call
    while loop in parents and not isinstance(loop, ast.For | ast.FunctionDef | ast.Lambda | ast.While | ast.ClassDef):
        loop = parents[loop]
    if not isinstance(loop, ast.For) or _collects(loop) or _recurs(loop):
        return None
    function: ast.AST = loop
    while function in parents and not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        function = parents[function]
    called = _called(loop, call)
    sources = _Sources(loop, call)
    behind = _behind(function, loop)
    statement = _metric(behind, loop, sources)
    if called is None:
        return None
    if statement is None:
        return _compared(behind, loop, sources, site, called)
    parts = frozenset(re.split(r"\W", one)[0] for one in sources.of(statement.value) - sources.given - {_RESULT})
    return LastPass(statement.targets[0].id, place_of(statement, site), parts, called)  # type: ignore[attr-defined]


def _behind(function: ast.AST, loop: ast.For) -> list[ast.AST]:
    """Return the nodes behind a loop, without those of functions that are defined there."""
    end, found = loop.end_lineno or 0, []
    nodes: list[ast.AST] = [function]
    while nodes:
        node = nodes.pop()
        found += [node] if getattr(node, "lineno", 0) > end else []
        apart = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node is not function
        nodes += [] if apart else ast.iter_child_nodes(node)
    return found


def _metric(behind: list[ast.AST], loop: ast.For, sources: _Sources) -> ast.Assign | None:
    """Return the assignment of a value that compares the result with the rest of the batch, and is read behind it."""
    if not sources.given:
        return None
    for statement in assignments(loop.body):
        name = statement.targets[0].id  # type: ignore[attr-defined]
        made_of = sources.of(statement.value)
        if is_read(name, loop) or _RESULT not in made_of or not made_of - sources.given - {_RESULT}:
            continue
        uses = [one for one in behind if isinstance(one, ast.Name) and one.id == name]
        first = min(uses, key=lambda one: (one.lineno, one.col_offset), default=None)
        if first is not None and isinstance(first.ctx, ast.Load) and not _is_last(name, first, behind):
            return statement
    return None


def _is_last(name: str, use: ast.Name, behind: list[ast.AST]) -> bool:
    """Return True if a program says that a value is one of the last batch: by its name, or by texts beside its use."""
    statements = [one for one in behind if isinstance(one, ast.stmt)]
    around = [one for one in statements if one.lineno <= use.lineno <= (one.end_lineno or 0)]
    texts = [
        part.value
        for one in around[-1:]
        for part in ast.walk(one)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    return any(map(_LAST.search, (name, *texts)))


def _compared(
    behind: list[ast.AST], loop: ast.For, sources: _Sources, site: Site, called: frozenset[tuple[str, ...]]
) -> LastPass | None:
    """Return the result of a pass that the code behind the loop compares with the targets of the same pass."""
    stored = _stored(loop)
    results = {name for name in stored if _RESULT in sources.of_name(name)}
    targets = {name: parts for name in stored if (parts := sources.of_name(name) - sources.given - {_RESULT})}
    targets = {name: parts for name, parts in targets.items() if name not in results}
    for node in sorted(
        (one for one in behind if isinstance(one, ast.expr)), key=lambda one: (one.lineno, one.col_offset)
    ):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in results | set(targets):
            return None
        pair = _sides(node)
        result = next((name for name in pair if name in results), "")
        target = next((name for name in pair if name in targets), "")
        if result and target:
            place = _assignment(result, loop)
            names = frozenset(re.split(r"\W", one)[0] for one in targets[target])
            return None if place is None else LastPass(result, place_of(place, site), names, called, rows=True)
    return None


def _sides(node: ast.expr) -> list[str]:
    """Return the variables that an expression compares: of a difference, a comparison, or a function of both."""
    match node:
        case (
            ast.BinOp(left=left, op=ast.Sub(), right=right)
            | ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])
        ):
            return [_of_value(left), _of_value(right)]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[left, right, *_]):
            return [_of_value(left), _of_value(right)] if _SHOWN.search(name.lower()) is None else []
    return []


def _of_value(node: ast.expr) -> str:
    """Return the variable of an expression: also with a method, and with arithmetic of others; "" for a part of it."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Call(func=ast.Attribute(value=inner)) | ast.BinOp(left=inner):
            return _of_value(inner)
    return ""


def _assignment(name: str, loop: ast.For) -> ast.Assign | None:
    for node in source.walk(loop):
        if isinstance(node, ast.Assign):
            names = [one for target in node.targets for one in source.walk(target) if isinstance(one, ast.Name)]
            if any(one.id == name for one in names):
                return node
    return None


def _stored(loop: ast.For) -> set[str]:
    names = (one for one in source.walk(loop) if isinstance(one, ast.Name))
    return {one.id for one in names if isinstance(one.ctx, ast.Store)}


class _Sources:
    """The parts of a batch, and the result of a model, that the values of a loop are made of."""

    def __init__(self, loop: ast.For, call: ast.Call) -> None:
        self._call = call
        self._known = {one.id: {one.id} for one in source.walk(loop.target) if isinstance(one, ast.Name)}
        self._made = _stored(loop)
        self._rows = rows_of(loop)
        self.given: set[str] = set()
        """Arguments of the model."""
        for one in ast.walk(ast.Module(loop.body, [])):
            if isinstance(one, ast.Assign):
                self._assign(one)
        for given in (*call.args, *(keyword.value for keyword in call.keywords)):
            self.given |= self.of(given)

    def _assign(self, statement: ast.Assign) -> None:
        value, parts = statement.value, self.of(statement.value)
        for target in statement.targets:
            names = [one.id for one in source.walk(target) if isinstance(one, ast.Name)]
            apart = isinstance(target, ast.Tuple) and isinstance(value, ast.Name) and parts == {value.id}
            each = value.elts if isinstance(value, ast.Tuple) and isinstance(target, ast.Tuple) else ()
            for place, name in enumerate(names):
                made_of = self.of(each[place]) if len(each) == len(names) else parts
                self._known[name] = {f"{name} of a batch"} if apart else made_of

    def of_name(self, name: str) -> set[str]:
        """Return the sources of a variable."""
        return self._known.get(name, set())

    def of(self, node: ast.AST) -> set[str]:
        """Return the sources of an expression."""
        if node is self._call:
            return {_RESULT}
        if isinstance(node, ast.Name):
            return self.of_name(node.id)
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.value, ast.Name)
        ):
            whole = self.of(node.value)
            return {f"{node.value.id}[{node.slice.value!r}]"} if whole == {node.value.id} else whole
        if isinstance(node, ast.Subscript) and self._rows(node.slice):
            names = {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)}
            if isinstance(node.value, ast.Name | ast.Attribute) and names and names.isdisjoint(self._made):
                return {ast.unparse(node)}
        return set().union(*(self.of(one) for one in ast.iter_child_nodes(node)))


def _called(loop: ast.For, call: ast.Call) -> frozenset[tuple[str, ...]] | None:
    """Return all that a loop calls but the model and methods of its values; None if names do not lead to it."""
    made = {one.id for one in source.walk(loop) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    paths = set()
    for node in (
        one for part in loop.body for one in source.walk(part) if isinstance(one, ast.Call) and one is not call
    ):
        path: list[str] = []
        owner: ast.expr = node.func
        while isinstance(owner, ast.Attribute):
            path.insert(0, owner.attr)
            owner = owner.value
        while isinstance(owner, ast.Subscript):
            owner, path = owner.value, ["[]"]
        if isinstance(owner, ast.Name):
            paths.add((owner.id,) if owner.id in made else (owner.id, *path))
        elif not path or isinstance(owner, ast.Attribute):
            return None
    return frozenset(paths)


def _found(known: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Return the function or object that has this name and attributes; None if it is not found."""
    value = known.get(path[0])
    for name in path[1:]:
        try:
            held = object.__getattribute__(value, "__dict__")  # without code of the object
        except AttributeError:
            return None
        value = held.get(name, held.get("_modules", {}).get(name, vars(type(value)).get(name)))
    return value


def _keeps_nothing(torch: Any, called: Any) -> bool:
    """Return True if a call leaves nothing behind: of a function, or of a module that computes a loss."""
    if type(called) is functools.partial:
        called = called.func
    kind = type(called)  # without code of the object
    if issubclass(kind, torch.Tensor | type | int | float) or _is_library(kind):
        return True
    if issubclass(kind, torch.nn.Module):
        called = kind.forward
    if type(called) is BuiltinFunctionType:
        return issubclass(type(called.__self__), ModuleType | type | None)
    return type(called) is FunctionType and not stores(called)


def stores(function: FunctionType, deep: int = _DEEPEST) -> bool:
    """Return True if a function may keep something of its call, or one that it calls by a global name."""
    if _is_library(function):
        return False
    code, known = code_of(function), function.__globals__
    inner = [known.get(name) for name in code.co_names] if deep else []
    return _stores(code) or any(stores(one, deep - 1) for one in inner if type(one) is FunctionType)


def _is_library(made: Any) -> bool:
    return str(getattr(made, "__module__", "")).partition(".")[0] in _LIBRARIES


@functools.lru_cache(maxsize=256)
def _stores(code: CodeType) -> bool:
    """Return True if a function writes to anything but its local variables, or may keep or show a value."""
    if not _KEEPING.isdisjoint(code.co_names) or any(map(_in_place, code.co_names)):
        return True
    free = code.co_freevars
    instructions = dis.get_instructions(code)
    return any(one.opname in _STORES or (one.opname == "STORE_DEREF" and one.argval in free) for one in instructions)


def _in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__") and name != "requires_grad_"


def _is_number(torch: Any, value: Any) -> bool:
    if issubclass(type(value), torch.Tensor) or type(value).__module__ == "numpy":
        return getattr(value, "ndim", 1) == 0
    return type(value) in (int, float)


def _collects(loop: ast.For) -> bool:
    """Return True if a loop keeps or shows something of each pass, or may end early."""
    for node in source.walk(loop):
        match node:
            case ast.AugAssign() | ast.Yield() | ast.Return() | ast.Break() | ast.NamedExpr():
                return True
            case ast.Subscript(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
                return True
            case ast.Expr(value=inner) if not isinstance(inner, ast.Constant):
                return True
            case ast.Call(func=ast.Attribute(attr=name)) if _in_place(name):
                return True
    return False


def _recurs(loop: ast.For) -> bool:
    """Return True if a pass reads a value that the pass before has written."""
    names = [one for part in loop.body for one in source.walk(part) if isinstance(one, ast.Name)]
    for name in {one.id for one in names if isinstance(one.ctx, ast.Store)}:
        uses = [one for one in names if one.id == name]
        first = min(one.lineno for one in uses if isinstance(one.ctx, ast.Store))
        if any(one.lineno <= first for one in uses if isinstance(one.ctx, ast.Load)):
            return True
    return False
