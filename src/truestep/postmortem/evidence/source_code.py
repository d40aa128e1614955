"""The syntax of the user's code: where a variable was set, and which of these lines ran last."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType

from truestep.events import Site

_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_BRANCHES = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.Match, ast.match_case, ast.ExceptHandler,
    ast.IfExp, ast.BoolOp, ast.comprehension, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, *_NESTED,
)  # fmt: skip
"""Nodes with children that may run never, or several times, when the node runs."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass(frozen=True, slots=True)
class Setting:
    """A statement that sets a variable or an attribute."""

    key: str
    statement: ast.stmt
    value: ast.expr | None
    """The expression it was set to, if there is a single one."""
    whole: bool = True
    """True if the value is all of that expression; it is only a part of it in ``a, b = f()``."""

    @property
    def node(self) -> ast.AST:
        return self.value if self.value is not None else self.statement


class File:
    """The syntax of one file.

    Args:
        path: the file.
        text: the contents of the file.
        check: called now and then; raises when the time for the examination is over.
    """

    def __init__(self, path: str, text: str, check: Callable[[], None] = lambda: None) -> None:
        self.path = path
        self.check = check
        self._settings: dict[ast.AST, dict[str, list[Setting]]] = {}
        self.tree = ast.parse(text)
        self._parents: dict[ast.AST, ast.AST] = {}
        self._nodes: list[ast.AST] = [self.tree]
        for number, node in enumerate(self._nodes):  # the list grows during the walk
            if not number % 4096:
                check()
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node
                self._nodes.append(child)

    def scope(self, code: CodeType) -> ast.AST | None:
        """Return the function that a code object was compiled from; the whole tree for a module."""
        if code.co_name == "<module>":
            return self.tree
        for node in self._nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                if first == code.co_firstlineno:
                    return node
        return None

    def at(self, site: Site) -> ast.AST | None:
        """Return the expression at a site."""
        place = (site.line, site.column, site.end_line, site.end_column)
        found = None
        for node in self._nodes:
            if getattr(node, "lineno", 0) == site.line and isinstance(node, ast.expr | ast.stmt):
                if (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == place:
                    found = node
        return found

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, from the inside out, up to its function or module."""
        up = self._parents.get(node)
        while up is not None:
            yield up
            if isinstance(up, _NESTED):
                return
            up = self._parents.get(up)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """Return the statement that contains a node, or the node itself if it is one."""
        if isinstance(node, ast.stmt):
            return node
        return next((up for up in self.above(node) if isinstance(up, ast.stmt)), None)

    def loops(self, node: ast.AST) -> list[ast.AST]:
        """Return the loops with a node in their body or test, from the inside out."""
        found: list[ast.AST] = []
        below = node
        for up in self.above(node):
            if isinstance(up, _LOOPS) and below not in up.orelse and below is not getattr(up, "iter", None):
                found.append(up)
            below = up
        return found

    def site(self, node: ast.AST, function: str) -> Site:
        """Return the site of a node; of a compound statement only its first line."""
        line, column = start(node)
        if hasattr(node, "body") and not isinstance(node, ast.Lambda | ast.IfExp):
            head = getattr(node, "iter", None) or (node.items[-1].context_expr if isinstance(node, ast.With) else None)
            if head is None:
                return Site(self.path, line, column, line, -1, function)
            return Site(self.path, line, column, *end(head), function)
        return Site(self.path, line, column, *end(node), function)

    # --- settings ----------------------------------------------------------------------------------------------------

    def settings(self, scope: ast.AST, key: str) -> list[Setting]:
        """Return every statement of a scope that sets a variable such as ``x`` or ``self.hidden``, in source order."""
        known = self._settings.get(scope)
        if known is None:
            self.check()
            known = self._settings[scope] = {}
            for setting in all_settings(scope):
                known.setdefault(setting.key, []).append(setting)
            for name in self._set_elsewhere():
                known.pop(name, None)
        return known.get(key, [])

    def _set_elsewhere(self) -> set[str]:
        """Return the names set inside expressions or by other functions, so not in source order."""
        found: set[str] = set()
        for node in self._nodes:
            if isinstance(node, ast.Global | ast.Nonlocal):
                found.update(node.names)
            elif isinstance(node, ast.NamedExpr):
                found.add(node.target.id)
        return found

    def reached(self, scope: ast.AST, key: str, before: ast.AST) -> Setting | None:
        """Return the last statement that set a variable before `before` runs; None if that depends on the run."""
        settings = self.settings(scope, key)
        if not settings:
            return None
        self.check()
        place = start(before)
        around = [before, *self.above(before)]
        earlier = [s for s in settings if end(s.statement) <= place or _is_head_of(s, around)]
        earlier = [s for s in earlier if not self._excludes(s.statement, around)]
        if not earlier or not self.always(earlier[-1].statement, around):
            return None
        last = earlier[-1]
        later = [s for s in settings if s not in earlier]
        for loop in self.loops(before):
            inside = set(ast.walk(loop))
            if last.statement in inside:
                break
            if any(s.statement in inside for s in later):
                return None
        return last

    def always(self, node: ast.AST, around: list[ast.AST]) -> bool:
        """Return True if a statement has run whenever the code after it, inside ``around``, runs."""
        if node in around:
            return True
        below = node
        for up in self.above(node):
            if up in around:
                inner = around[around.index(up) - 1] if around.index(up) else None
                return not isinstance(up, _BRANCHES) or inner is None or _part(up, below) == _part(up, inner)
            if isinstance(up, _BRANCHES):
                return False
            below = up
        return False

    def sources(self, scope: ast.AST, node: ast.AST, past: ast.AST | None = None) -> Iterator[ast.AST]:
        """Yield the expressions that an expression was computed from: itself, and the values of the variables in it.

        Args:
            scope: the function.
            node: the expression.
            past: an expression; expressions that lead to it alone are left out.
        """
        left = set() if past is None else set(ast.walk(past))
        todo, seen = [(node, node)], {node}
        while todo:
            one, before = todo.pop(0)
            yield one
            for name in ast.walk(one):
                if name in left:
                    continue
                if isinstance(name, ast.Name | ast.Attribute) and isinstance(name.ctx, ast.Load):
                    setting = self.reached(scope, ast.unparse(name), before)
                    if setting is not None and setting.value is not None and setting.value not in seen:
                        seen.add(setting.value)
                        todo.append((setting.value, setting.statement))

    def _excludes(self, node: ast.AST, around: list[ast.AST]) -> bool:
        """Return True if a statement is in the other branch of an ``if``."""
        below = node
        for up in self.above(node):
            if up in around:
                inner = around[around.index(up) - 1] if around.index(up) else None
                return isinstance(up, ast.If) and inner is not None and (below in up.body) != (inner in up.body)
            below = up
        return False


def _part(node: ast.AST, child: ast.AST) -> str:
    """Return the part of a statement that contains a child: body, orelse or test."""
    for name, value in ast.iter_fields(node):
        if value is child or (isinstance(value, list) and child in value):
            return name
    return ""


def _is_head_of(setting: Setting, around: list[ast.AST]) -> bool:
    return isinstance(setting.statement, ast.For | ast.AsyncFor | ast.With) and setting.statement in around


def walk(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope in source order, without those of nested functions and classes."""
    stack = list(reversed(_body(scope)))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _NESTED):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


def _body(scope: ast.AST) -> list[ast.AST]:
    body = getattr(scope, "body", [])
    return list(body) if isinstance(body, list) else [body]


def all_settings(scope: ast.AST) -> Iterator[Setting]:
    """Yield everything that a scope sets, in source order."""
    for node in walk(scope):
        match node:
            case ast.Assign():
                for target in node.targets:
                    yield from _set(target, node, node.value)
            case ast.AnnAssign() if node.value is not None:
                yield from _set(node.target, node, node.value)
            case ast.AugAssign():
                yield from _set(node.target, node, None)
            case ast.For() | ast.AsyncFor():
                yield from _set(node.target, node, None)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    if item.optional_vars is not None:
                        yield from _set(item.optional_vars, node, None)


def _set(target: ast.expr, statement: ast.stmt, value: ast.expr | None, whole: bool = True) -> Iterator[Setting]:
    if isinstance(target, ast.Tuple | ast.List):
        values: list[ast.expr | None] = [value] * len(target.elts)
        apart = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        if isinstance(value, ast.Tuple | ast.List) and apart:
            values = list(value.elts)
        for element, one in zip(target.elts, values, strict=True):
            yield from _set(element, statement, one, whole and apart)
    elif isinstance(target, ast.Starred):
        yield from _set(target.value, statement, value, False)
    elif isinstance(target, ast.Name | ast.Attribute):
        yield Setting(ast.unparse(target), statement, value, whole)


def calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls in a scope or an expression, in source order."""
    nodes = ast.walk(node) if isinstance(node, ast.expr | ast.stmt) and not isinstance(node, _NESTED) else walk(node)
    for one in nodes:
        if isinstance(one, ast.Call):
            yield one


def start(node: ast.AST) -> tuple[int, int]:
    """Return the line and column where a node begins."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def end(node: ast.AST) -> tuple[int, int]:
    """Return the line and column where a node ends."""
    return getattr(node, "end_lineno", None) or 0, getattr(node, "end_col_offset", None) or 0
