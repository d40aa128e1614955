"""Repeat the statements after a call of a model, on its detached result and on the variables of the frame."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FrameType
from typing import Any, NamedTuple

from truestep import source
from truestep.probes.context.local_variables import readable, variables
from truestep.probes.context.scene import Scene
from truestep.probes.evaluation.averages import Sums, added, divisions, divisor_of, leaves_first, wrong_average
from truestep.probes.evaluation.expressions import Expressions, wrapped
from truestep.probes.evaluation.rows import Rows, is_column, is_probability
from truestep.probes.evaluation.scales import cancels
from truestep.probes.evaluation.values import NOWHERE, Made, Unknown, Value
from truestep.probes.forward.results import call_at

_MOST_STATEMENTS = 60
_UP = 3
"""Number of functions that may return a result to their callers."""
_READING = frozenset({"print", "log", "info", "debug", "append", "extend", "update", "write", "isinstance", "len"})
"""Calls for their effect that write to no argument."""
_ENDS = (ast.For, ast.While, ast.AsyncFor, ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

Judge = Callable[[str, Value, Value, ast.expr, str], None]
"""Gets the comparisons: operation, both sides, their expression and its file."""
Tell = Callable[[str, Made | None, ast.AST, str, str], None]
"""Gets a mistake of a figure: its kind, the value, the expression, its file, and its source."""
Score = Callable[[Made, Any, ast.expr, str], None]
"""Gets rows of the result that are compared with targets: the rows, the targets, the expression and its file."""


class Behind(NamedTuple):
    """Values of the statements behind a loop or a call.

    Attributes:
        names: the variables of the function with known values.
        returned: the value that the function returns; None if unknown.
        node: its expression.
    """

    names: dict[str, Any]
    returned: Any
    node: ast.expr | None


class Statements:
    """Repeats statements.

    Args:
        scene: the scene.
        judge: gets each comparison.
        samples: number of rows of the result.
        score: gets the selected rows that are compared with targets.
        tell: gets mistakes of figures, and sizes of differences with the kind "size".
    """

    def __init__(self, scene: Scene, judge: Judge, samples: int, score: Score, tell: Tell) -> None:
        self.scene = scene
        self.judge = judge
        self.samples = samples
        self._score = score
        self._tell = tell
        self._left = _MOST_STATEMENTS
        self.end: Behind | None = None
        """Values of the statements behind the call, if no loop is around it."""

    def rows_of_inputs(self, frame: FrameType) -> list[Rows]:
        """Return the rows of the arguments of the call that a frame is at, where they are known."""
        site = self.scene.sites.at(frame)
        found = None if site is None else call_at(site)
        if site is None or found is None or not readable(frame):
            return []
        block = _Block(self, dict(frame.f_globals) | variables(frame), site.path, {})
        values = [block.known(one) for one in found[0].args]
        return [value.rows for value in values if value is not None and value.rows is not None]

    def follow(self, frame: FrameType, result: Any) -> None:
        """Follow the result of the call that a frame is at, to the end of the block and to the callers."""
        at: FrameType | None = frame
        rows = self.scene.torch.arange(self.samples)
        value: Value | None = Value(result, Made(raw=True, numbers=rows))
        for _ in range(_UP):
            site = self.scene.sites.at(at)
            if at is None or value is None or site is None or not readable(at):
                return
            found = call_at(site)
            if found is None:
                return
            call, parents = found
            held = variables(at)
            block = _Block(self, dict(at.f_globals) | held, site.path, {call: value})
            value = block.after(call, parents)
            if at is frame and block.whole:
                self.end = block.behind(held, at.f_globals)
            above = at.f_back
            at = above if above is not None and self.scene.sites.kind(above.f_code) == 0 else None

    def behind(
        self, loop: ast.For, parents: dict[ast.AST, ast.AST], frame: FrameType, made: Mapping[str, Value] | None = None
    ) -> Behind:
        """Repeat the statements behind a loop that has ended.

        Args:
            loop: the loop.
            parents: the node around each node.
            frame: its frame, with the variables.
            made: variables that were made from the results of a model.
        """
        held = variables(frame)
        block = _Block(self, dict(frame.f_globals) | held | dict(made or {}), frame.f_code.co_filename, {})
        block.rest(loop, parents)
        return block.behind(held, frame.f_globals)

    def paired(self, values: list[Value], node: ast.expr, path: str) -> None:
        """Handle two values side by side: rows of the result, and targets for them."""
        if len(values) < 2 or (values[0].made is None) == (values[1].made is None):
            return
        result, target = values if values[0].made is not None else values[::-1]
        made = result.made
        if made is not None and made.fits(result.it) and made.fits(target.it):
            self.scored(made, target.it, node, path)

    def masked(self, values: list[Value], node: ast.BinOp, path: str) -> None:
        """Handle a product: of a comparison, and a mask that selects some of its rows."""
        first = values[0].made is not None
        (result, mask), side = (values, node.right) if first else (values[::-1], node.left)
        made, chosen = result.made, mask.it
        if made is None or made.labels is None or mask.made is not None or not made.fits(chosen) or chosen.dim() != 1:
            return
        if bool(((chosen == 0) | (chosen == 1)).all()):
            kept = made.selected(chosen.bool(), self.scene.torch)
            self.scored(replace(kept, by=(chosen, ast.unparse(side))), None, node, path)

    def scored(self, made: Made, target: Any, node: ast.expr, path: str) -> None:
        """Handle rows of the result with their targets; None for those that they were compared with before."""
        if made.shares and is_column(node) and is_probability(node, path):
            self.mistaken("shares", node, path, made)
        target = made.labels if target is None else target
        if target is not None and made.numbers is not None and made.by is not None:
            self._score(made, target, node, path)

    def mistaken(self, how: str, node: ast.expr, path: str, made: Made | None = None) -> None:
        """Handle a mistake that an expression shows, of a value that was made so."""
        pair = None if made is None else made.pair
        if how != "cancelled" or cancels(pair, self.scene.torch, linecache.getline(path, node.lineno)):
            self._tell(how, made if how == "shares" else None, node, path, ast.unparse(node))

    def sized(self, made: Made, node: ast.expr, path: str) -> None:
        """Handle the sizes of differences between predictions and targets."""
        self._tell("size", made, node, path, "")

    def averaged(self, made: Made, node: ast.expr, path: str) -> None:
        """Handle a mean over comparisons."""
        self._tell("averaged", made, node, path, ast.unparse(node))

    def looped(self, loop: ast.For, parents: dict[ast.AST, ast.AST], sums: Sums, block: Expressions, path: str) -> None:
        """Handle the end of a pass of a loop: the averages behind it."""
        rows, torch = self.samples, self.scene.torch
        for name, node, whole in divisions(loop, parents):
            made = sums.made.get(name)
            if made is None or name in sums.mixed:
                continue
            elements = made.pair[1].numel() if made.pair is not None else rows
            divisor = divisor_of(node, loop, sums, rows, elements, block.known, torch)
            how = wrong_average(made, divisor)
            if how or divisor == "elements":
                self._tell(how or "averaged", made, whole, path, f"{name} / {ast.unparse(node)}")

    def left(self, loop: ast.For, block: Expressions, path: str) -> None:
        """Handle a loop over several known items that ends in its first pass, although it adds to sums."""
        leaving = leaves_first(loop)
        items = block.known(loop.iter) if leaving is not None else None
        if leaving is None or items is None:
            return
        if type(items.it) in (tuple, list, range) and len(items.it) > 1:
            self._tell("first", None, leaving, path, "return" if isinstance(leaving, ast.Return) else "break")

    def spend(self) -> None:
        """Count a statement.

        Raises:
            Unknown: there were too many.
        """
        self._left -= 1
        if self._left < 0:
            raise Unknown


class _Returned(Exception):
    def __init__(self, value: Value, node: ast.expr) -> None:
        super().__init__()
        self.value = value
        self.node = node


class _Block(Expressions):
    """The statements of one function, with its variables."""

    _sums: Sums
    _returned: tuple[Value, ast.expr] | None = None
    whole = False
    """Whether the statements up to the end of the function were repeated."""

    def after(self, call: ast.AST, parents: dict[ast.AST, ast.AST]) -> Value | None:
        """Repeat the statement of a call and those after it; return the value that the function returns, if known."""
        node = call
        self._text, self._first = ast.unparse(call), dict(self._names)
        while node in parents and not isinstance(node, ast.stmt):
            if isinstance(parents[node], ast.GeneratorExp | ast.ListComp | ast.Lambda):
                self.known(node)
                return None
            node = parents[node]
        self.rest(node, parents, also=True)
        value = None if self._returned is None else self._returned[0]
        return value if value is not None and value.made is not None else None

    def rest(self, first: ast.AST, parents: dict[ast.AST, ast.AST], *, also: bool = False) -> None:
        """Repeat the statements behind one, to the end of its function or of the loop around it.

        Args:
            first: the statement.
            parents: the node around each node.
            also: True to repeat it as well.
        """
        node, self._sums = first, Sums()
        try:
            if also:
                self._statement(node)
            while node in parents:
                up = parents[node]
                if isinstance(up, ast.For):
                    self._run.left(up, self, self._path)
                for rest in _following(up, node):
                    self._statement(rest)
                if isinstance(up, ast.For):
                    self._run.looped(up, parents, self._sums, self, self._path)
                if isinstance(up, _ENDS):
                    self.whole = isinstance(up, ast.FunctionDef)
                    return
                node = up
        except _Returned as returned:
            self.whole = not _is_in_loop(first, parents)
            self._returned = returned.value, returned.node
        except Unknown:
            pass

    def behind(self, held: dict[str, Any], others: dict[str, Any]) -> Behind:
        """Return the values of the repeated statements.

        Args:
            held: the variables of the function before.
            others: those of its module.
        """
        values = {name: one.it if isinstance(one, Value) else one for name, one in self._names.items()}
        names = {
            name: one
            for name, one in values.items()
            if one is not NOWHERE and (name in held or others.get(name, NOWHERE) is not one)
        }
        value, node = self._returned or (None, None)
        return Behind(names, None if value is None else value.it, node)

    def body(self, statements: list[ast.stmt]) -> Value:
        """Repeat the body of a function, and return its value.

        Raises:
            Unknown: it is not known.
        """
        self._sums = Sums()
        try:
            for statement in statements:
                self._statement(statement)
        except _Returned as returned:
            return returned.value
        raise Unknown

    # --- statements --------------------------------------------------------------------------------------------------

    def _statement(self, node: ast.AST) -> None:
        self._run.spend()
        match node:
            case ast.Assign() | ast.AugAssign() | ast.Expr() if (grown := added(node)) is not None:
                self._sums.grew(grown[0], self.known(grown[1]))
                if grown[0].isidentifier():
                    self._names[grown[0]] = NOWHERE
            case ast.Assign(targets=targets, value=value):
                found = self.known(value)
                for target in targets:
                    self.bind(target, found)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.bind(target, self.known(value))
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                after = ast.BinOp(ast.copy_location(ast.Name(name, ast.Load()), target), op, value)
                self.bind(target, self.known(ast.copy_location(after, node)))
            case ast.AugAssign(value=value):
                self.known(value)
            case ast.Expr(value=value):
                self.known(value)
                self._written(value)
            case ast.Return(value=ast.expr() as value):
                found = self.known(value)
                if found is None:
                    raise Unknown
                raise _Returned(found, value)
            case ast.With(body=body):
                for statement in body:
                    self._statement(statement)
            case ast.If(test=test, body=body, orelse=orelse):
                found = self.known(test)
                if found is None or found.made is not None or isinstance(found.it, self._torch.Tensor):
                    self._forget(node)
                    return
                for statement in body if found.it else orelse:
                    self._statement(statement)
            case ast.For(target=target, iter=items, body=body, orelse=[]):
                try:
                    self.repeated(target, items, lambda: self._all(body))
                except Unknown:
                    self._forget(node)
            case ast.Return() | ast.Continue() | ast.Break() | ast.Raise():
                raise Unknown
            case _:
                self._forget(node)

    def _all(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _forget(self, node: ast.AST) -> None:
        for one in source.walk(node):
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                self.bind(one, None)

    def _written(self, call: ast.expr) -> None:
        """Forget the variables that a call for its effect may write to: ``x.fill_(0)``, ``np.fill_diagonal(x, 0)``."""
        if not isinstance(call, ast.Call):
            return
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name.endswith("_") and isinstance(call.func, ast.Attribute):
            self._overwrite(call.func.value)
        elif name not in _READING:
            method = isinstance(call.func, ast.Attribute) and self.known(call.func.value) is None
            for argument in () if method else call.args:
                self._overwrite(argument)

    def _overwrite(self, node: ast.expr) -> None:
        """Forget the variables in an expression, and the others that share memory with them."""
        names = {one.id for one in source.walk(node) if isinstance(one, ast.Name)}
        memory = {self._memory(name) for name in names} - {0}
        for name in [one for one in self._names if one in names or (memory and self._memory(one) in memory)]:
            self._names[name] = NOWHERE

    def _memory(self, name: str) -> int:
        """Return the address of the memory of a tensor that a variable holds; 0 for other values."""
        held = self._names.get(name)
        it = held.it if isinstance(held, Value) else held
        return int(it.untyped_storage().data_ptr()) if it is not None and type(it) is self._torch.Tensor else 0

    def bind(self, target: ast.expr, value: Value | None) -> None:
        """Store the value of a variable; None for an unknown one."""
        match target:
            case ast.Name(id=name):
                self._names[name] = NOWHERE if value is None else value
                if name in self._text:
                    self._text = ""
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                parts = value.it if value is not None and type(value.it) in (tuple, list) else ()
                for place, part in enumerate(elts):
                    known = len(parts) == len(elts)
                    self.bind(part, wrapped(parts[place], value) if known else None)
            case ast.Subscript(value=inner) | ast.Attribute(value=inner, attr="data"):
                self._overwrite(inner)


def _is_in_loop(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return True if a loop of its function is around a node."""
    while node in parents and not isinstance(node, ast.FunctionDef):
        node = parents[node]
        if isinstance(node, ast.For | ast.While | ast.AsyncFor):
            return True
    return False


def _following(block: ast.AST, node: ast.AST) -> list[ast.stmt]:
    """Return the statements after one in the same list."""
    for name in ("body", "orelse", "finalbody"):
        statements = getattr(block, name, None)
        if isinstance(statements, list) and node in statements:
            return list(statements[statements.index(node) + 1 :])
    return []
