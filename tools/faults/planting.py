"""Places of faults in the source, and the source with a fault or with marks."""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import libcst as cst
from libcst.metadata import (
    Assignment,
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    Scope,
    ScopeProvider,
)

MARKS = "_marks_of_faults"
"""The name of `marks.py` in a marked tree."""
OPERATORS: dict[type[cst.CSTNode], type[cst.CSTNode]] = {
    cst.Add: cst.Subtract, cst.Subtract: cst.Add, cst.Multiply: cst.Divide, cst.Divide: cst.Multiply,
    cst.LessThan: cst.LessThanEqual, cst.LessThanEqual: cst.LessThan, cst.GreaterThan: cst.GreaterThanEqual,
    cst.GreaterThanEqual: cst.GreaterThan, cst.Equal: cst.NotEqual, cst.NotEqual: cst.Equal, cst.Is: cst.IsNot,
    cst.IsNot: cst.Is, cst.In: cst.NotIn, cst.NotIn: cst.In, cst.And: cst.Or, cst.Or: cst.And,
    cst.Break: cst.Continue, cst.Continue: cst.Break,
}  # fmt: skip
NAMES = {"True": "False", "all": "any", "min": "max"}
NAMES |= {after: before for before, after in NAMES.items()}


@dataclass(frozen=True, slots=True)
class Fault:
    """One changed line.

    Attributes:
        number: number of the fault and of its mark.
        file: path of the file, relative to the folder of the tree.
        line: number of the line.
        name: the change.
        before: the line without the fault.
        changed: source of the file with the fault.
    """

    number: int
    file: str
    line: int
    name: str
    before: str
    changed: str


def change_of(node: cst.CSTNode) -> tuple[str, cst.CSTNode] | None:
    """Return the name of the fault that can be planted at a node, and the node with it."""
    swapped = OPERATORS.get(type(node))
    if swapped is not None:
        return f"{type(node).__name__} becomes {swapped.__name__}", swapped()
    if isinstance(node, cst.If | cst.While | cst.IfExp):
        negated = cst.UnaryOperation(cst.Not(), node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]))
        return "condition negated", node.with_changes(test=negated)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        return "not removed", node.expression
    if isinstance(node, cst.Name) and node.value in NAMES:
        return f"{node.value} becomes {NAMES[node.value]}", node.with_changes(value=NAMES[node.value])
    if isinstance(node, cst.Integer):
        return f"{node.value} becomes {node.evaluated_value + 1}", cst.Integer(str(node.evaluated_value + 1))
    if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
        statement = node.body[0]
        text = isinstance(statement, cst.Expr) and isinstance(statement.value, cst.BaseString)
        if isinstance(statement, cst.Expr | cst.Assign | cst.AugAssign | cst.Return | cst.Raise) and not text:
            return "statement deleted", node.with_changes(body=[cst.Pass()])
    return None


def faults(tree: Path, files: list[Path], count: int, seed: int) -> list[Fault]:
    """Return faults at random lines of all files; the same ones for the same source and seed."""
    chance = random.Random(seed)
    lines = [(file, line) for file in files for line in sorted(_candidates(file))]
    chance.shuffle(lines)
    places: dict[Path, tuple[cst.Module, dict[int, list[cst.CSTNode]]]] = {}
    planted: list[Fault] = []
    for file, line in lines:
        if len(planted) == count:
            break
        if file not in places:
            wrapper = MetadataWrapper(cst.parse_module(file.read_text(encoding="utf-8")), unsafe_skip_copy=True)
            visitor = _Places()
            wrapper.visit(visitor)
            places[file] = wrapper.module, visitor.found
        module, found = places[file]
        if line not in found:
            continue
        node = chance.choice(found[line])
        change = change_of(node)
        assert change is not None
        source = module.visit(_Replace(node, change[1])).code
        before = file.read_text(encoding="utf-8").splitlines()[line - 1].strip()
        planted.append(Fault(len(planted), str(file.relative_to(tree)), line, change[0], before, source))
    return planted


def _candidates(file: Path) -> set[int]:
    """Return the lines of functions; libcst, which is slow, finds those where a fault can be planted."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {line for node in functions for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def mark(tree: Path, planted: list[Fault]) -> None:
    """Insert a mark before the statement of each fault."""
    numbers: dict[str, dict[int, list[int]]] = {}
    for fault in planted:
        numbers.setdefault(fault.file, {}).setdefault(fault.line, []).append(fault.number)
    for file, lines in numbers.items():
        wrapper = MetadataWrapper(cst.parse_module((tree / file).read_text(encoding="utf-8")))
        (tree / file).write_text(wrapper.visit(_Mark(lines)).code, encoding="utf-8")


class _Places(cst.CSTVisitor):
    """Collects the nodes in functions where a fault can be planted, with their lines."""

    METADATA_DEPENDENCIES = (PositionProvider, ScopeProvider)

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[int, list[cst.CSTNode]] = {}
        self._functions = 0
        self._last: set[cst.CSTNode] = set()

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef):
            self._functions += 1
            self._last.add(node.body.body[-1])
        if isinstance(node, cst.Annotation):
            return False
        if self._functions and change_of(node) is not None and not self._useless(node):
            self.found.setdefault(self._line(node), []).append(node)
        return super().on_visit(node)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self._functions -= isinstance(original_node, cst.FunctionDef)

    def _useless(self, node: cst.CSTNode) -> bool:
        """Return True if no test is needed to notice that a statement is missing, or if none can.

        Without the first assignment to a variable, any test that reaches the next use fails. A function that ends
        without `return None` or `return False` does the same.
        """
        if not isinstance(node, cst.SimpleStatementLine):
            return False
        statement = node.body[0]
        if isinstance(statement, cst.Return) and node in self._last:
            value = statement.value
            return value is None or (isinstance(value, cst.Name) and value.value in ("None", "False"))
        if not isinstance(statement, cst.Assign):
            return False
        scope = self.get_metadata(ScopeProvider, node)
        assert isinstance(scope, Scope)
        for name in (target.target.value for target in statement.targets if isinstance(target.target, cst.Name)):
            bound = [self._line(one.node) for one in scope[name] if isinstance(one, Assignment)]
            if self._line(node) == min(bound, default=0):
                return True
        return False

    def _line(self, node: cst.CSTNode) -> int:
        return self.get_metadata(PositionProvider, node).start.line


class _Replace(cst.CSTTransformer):
    """Replaces one node."""

    def __init__(self, place: cst.CSTNode, by: cst.CSTNode) -> None:
        super().__init__()
        self._place, self._by = place, by

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        return self._by if original_node is self._place else updated_node


class _Mark(cst.CSTTransformer):
    """Inserts calls of `hit` before the statements that contain given lines."""

    METADATA_DEPENDENCIES = (PositionProvider, ParentNodeProvider)

    def __init__(self, lines: dict[int, list[int]]) -> None:
        super().__init__()
        self._lines = lines
        self._before: dict[cst.CSTNode, list[int]] = {}

    def on_visit(self, node: cst.CSTNode) -> bool:
        if change_of(node) is not None:
            line = self.get_metadata(PositionProvider, node).start.line
            for number in self._lines.get(line, ()):
                found = self._before.setdefault(self._statement(node), [])
                if number not in found:
                    found.append(number)
        return super().on_visit(node)

    def _statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the statement of a block that contains a node."""
        while True:
            parent = self.get_metadata(ParentNodeProvider, node)
            if isinstance(parent, cst.IndentedBlock | cst.Module):
                return node
            node = parent

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode):  # type: ignore[no-untyped-def]
        numbers = self._before.get(original_node)
        if numbers is None:
            return updated_node
        calls = [cst.parse_statement(f'__import__("{MARKS}").hit({number})') for number in numbers]
        return cst.FlattenSentinel([*calls, cast(cst.BaseStatement, updated_node)])
