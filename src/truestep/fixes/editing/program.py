"""The syntax of a file with positions and parents, and the nodes at the places of a finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar, cast

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, ParentNodeProvider, PositionProvider

from truestep.events import Site
from truestep.fixes.proposal import lines

Statement = cst.BaseSmallStatement | cst.BaseCompoundStatement
Function = cst.FunctionDef | cst.Lambda
Loop = cst.For | cst.While
T = TypeVar("T", bound=cst.CSTNode)
U = TypeVar("U")


class Uncertain(Exception):
    """Several edits are possible, or none."""


class Program:
    """A parsed file.

    Args:
        text: the file, with its line ends.

    Raises:
        Uncertain: the text is not Python, or nested too deeply.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = lines(text)
        try:
            wrapper = MetadataWrapper(cst.parse_module(text))
            self._parents = wrapper.resolve(ParentNodeProvider)
            self._positions = wrapper.resolve(PositionProvider)
        except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError, UnicodeError) as error:
            raise Uncertain from error
        self.module = wrapper.module
        self.nodes = [
            node
            for node in self.all(self.module)
            if isinstance(node, cst.BaseExpression | cst.BaseSmallStatement | cst.BaseCompoundStatement)
        ]
        """Expressions and statements, the outer ones first."""

    def span(self, node: cst.CSTNode) -> CodeRange:
        return self._positions[node]

    def line(self, node: cst.CSTNode) -> int:
        return self.span(node).start.line

    def code(self, node: cst.CSTNode) -> str:
        return self.module.code_for_node(node)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self._parents.get(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the parents of a node, the nearest first."""
        parent = self.parent(node)
        while parent is not None:
            yield parent
            parent = self.parent(parent)

    def around(self, node: cst.CSTNode, *kinds: type[T], within: cst.CSTNode | None = None) -> T | None:
        """Return the nearest ancestor of these kinds, below another node; None without one."""
        for parent in self.ancestors(node):
            if parent is within:
                return None
            if isinstance(parent, kinds):
                return parent
        return None

    def inside(self, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
        return node is outer or any(parent is outer for parent in self.ancestors(node))

    def all(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield a node and all below it, in the order of the source."""
        yield node
        for child in node.children:
            yield from self.all(child)

    def walk(self, node: cst.CSTNode, *kinds: type[T]) -> Iterator[T]:
        """Yield a node and those below it that are of these kinds, in the order of the source."""
        for one in self.all(node):
            if isinstance(one, kinds):
                yield one

    def function(self, node: cst.CSTNode) -> Function | None:
        """Return the function that runs a node; None at the level of the module or of a class."""
        found = self.around(node, cst.FunctionDef, cst.Lambda)
        return found if isinstance(found, Function) else None

    def scope(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the function that runs a node, or the module."""
        return self.function(node) or self.module

    def here(self, node: cst.CSTNode, *kinds: type[T]) -> Iterator[T]:
        """Yield the nodes below one that run in the same function, in the order of the source."""
        for child in node.children:
            if isinstance(child, kinds):
                yield child
            if not isinstance(child, cst.FunctionDef | cst.Lambda | cst.ClassDef):
                yield from self.here(child, *kinds)

    def at(self, site: Site, *kinds: type[T]) -> T:
        """Return the node of these kinds at a place.

        Raises:
            Uncertain: the place has no such node, or several.
        """
        if not 1 <= site.line <= len(self.lines):
            raise Uncertain
        begin = self._place(site.line, site.column)
        if begin is None:
            return only(node for node in self.nodes if isinstance(node, kinds) and self.line(node) == site.line)
        starting = [node for node in self.nodes if isinstance(node, kinds) and self._start(node) == begin]
        if not starting:
            raise Uncertain
        end = self._place(site.end_line, site.end_column)
        exact = [node for node in starting if self._end(node) == end]
        return exact[0] if exact else max(starting, key=self._end)

    def statement_at(self, site: Site) -> Statement:
        """Return the innermost statement at a place.

        Raises:
            Uncertain: the place has no statement, or several and no column.
        """
        statements = [
            node for node in self.nodes if isinstance(node, cst.BaseSmallStatement | cst.BaseCompoundStatement)
        ]
        begin = self._place(site.line, site.column)
        if begin is not None:
            around = [one for one in statements if self._start(one) <= begin < self._end(one)]
        else:
            around = [one for one in statements if self._start(one)[0] <= site.line <= self._end(one)[0]]
            small = [one for one in around if isinstance(one, cst.BaseSmallStatement)]
            if len(small) > 1:
                raise Uncertain
        if not around:
            raise Uncertain
        return around[-1]

    def statement(self, node: cst.CSTNode) -> Statement:
        """Return the statement around a node.

        Raises:
            Uncertain: the node is in the head of no statement.
        """
        for one in (node, *self.ancestors(node)):
            if isinstance(one, cst.BaseSmallStatement | cst.BaseCompoundStatement):
                return one
        raise Uncertain

    def _place(self, line: int, column: int) -> tuple[int, int] | None:
        """Return a place with its column in characters; None if it is unknown."""
        if column < 0 or not 1 <= line <= len(self.lines):
            return None
        text = self.lines[line - 1]
        return line, column if text.isascii() else len(text.encode()[:column].decode(errors="replace"))

    def _start(self, node: cst.CSTNode) -> tuple[int, int]:
        start = self.span(node).start
        return start.line, start.column

    def _end(self, node: cst.CSTNode) -> tuple[int, int]:
        end = self.span(node).end
        return end.line, end.column


def dotted(node: cst.BaseExpression) -> str:
    """Return the text of a name or of attributes of a name; empty for other expressions."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr.value}" if before else ""
    return ""


def method(node: cst.CSTNode) -> str:
    """Return the name of the method that a call calls; empty for other nodes."""
    called = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    return cast("cst.Attribute", cast("cst.Call", node).func).attr.value if called else ""


def receiver(call: cst.Call) -> cst.BaseExpression:
    """Return the object of the method that a call calls.

    Raises:
        Uncertain: it calls a function.
    """
    if not isinstance(call.func, cst.Attribute):
        raise Uncertain
    return call.func.value


def argument(call: cst.Call, position: int, keyword: str) -> cst.Arg | None:
    """Return an argument of a call by its position or its keyword; None if it is absent.

    Raises:
        Uncertain: the call has starred arguments.
    """
    if any(arg.star for arg in call.args):
        raise Uncertain
    named = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value == keyword]
    if named:
        return named[0]
    positional = [arg for arg in call.args if arg.keyword is None]
    return positional[position] if 0 <= position < len(positional) else None


def only(found: Iterable[U]) -> U:
    """Return the only element.

    Raises:
        Uncertain: there is none, or several.
    """
    chosen = list(found)
    if len(chosen) != 1:
        raise Uncertain
    return chosen[0]
