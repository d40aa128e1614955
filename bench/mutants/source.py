"""A program as operators read it: the roles of its names, its loops and its statements, with edits of its text."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

_OPTIMIZERS = {
    "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "LBFGS", "Rprop", "ASGD",
    "SparseAdam", "Adafactor", "Muon",
}  # fmt: skip
_SCHEDULERS = re.compile(r"LR$|LROnPlateau$|WarmRestarts$|OneCycle$")
_LOADERS = {"DataLoader"}
_SCALERS = {"GradScaler"}
_BY_NAME = {
    "optimizer": re.compile(r"^(opt|optim|optimizer)s?(_\w+)?$|_(opt|optim|optimizer)s?$", re.I),
    "scheduler": re.compile(r"sched", re.I),
    "scaler": re.compile(r"scaler", re.I),
    "loader": re.compile(r"loader|^dl$", re.I),
    "model": re.compile(r"^(model|net|network|encoder|decoder|generator|discriminator|critic|actor|policy)\w*$", re.I),
}


@dataclass(frozen=True)
class Edit:
    """Replacement of a part of a text."""

    start: int
    end: int
    text: str


def name_of(expression: ast.expr) -> str:
    """Return the last name of an expression: ``step`` of ``self.opt.step``, "" if it has none."""
    if isinstance(expression, ast.Name):
        return expression.id
    if isinstance(expression, ast.Attribute):
        return expression.attr
    if isinstance(expression, ast.Subscript | ast.Starred):
        return name_of(expression.value)
    if isinstance(expression, ast.Call):
        return name_of(expression.func)
    return ""


class Source:
    """A program."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self.lines = text.splitlines(keepends=True)
        # ast counts columns in bytes of UTF-8, the text in characters.
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))
        self.nodes = list(ast.walk(self.tree))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.roles = self._roles()

    def _roles(self) -> dict[str, str]:
        modules = {
            node.name
            for node in self.nodes
            if isinstance(node, ast.ClassDef) and any(name_of(base).endswith("Module") for base in node.bases)
        }
        roles: dict[str, str] = {}
        for node in self.nodes:
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            made = name_of(node.value.func)
            if isinstance(node.value.func, ast.Attribute) and made in ("to", "cuda", "double", "float"):
                made = name_of(node.value.func.value)
            role = (
                "optimizer"
                if made in _OPTIMIZERS
                else "scheduler"
                if _SCHEDULERS.search(made)
                else "loader"
                if made in _LOADERS
                else "scaler"
                if made in _SCALERS
                else "model"
                if made in modules or made == "Sequential"
                else ""
            )
            for target in node.targets if role else ():
                roles[name_of(target)] = role
        return roles

    def role(self, expression: ast.expr) -> str:
        """Return the role of the object that an expression names, by its construction or else by its name."""
        name = name_of(expression)
        if name in self.roles:
            return self.roles[name]
        return next((role for role, pattern in _BY_NAME.items() if name and pattern.search(name)), "")

    # --- nodes -------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def calls(self) -> list[ast.Call]:
        """All calls, in the order of the text."""
        found = [node for node in self.nodes if isinstance(node, ast.Call)]
        return sorted(found, key=lambda call: (call.lineno, call.col_offset))

    def methods(self, *names: str, role: str = "") -> Iterator[tuple[ast.Call, ast.expr]]:
        """Yield the calls of a method, each with the expression of its object."""
        for call in self.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr in names:
                if not role or self.role(call.func.value) == role:
                    yield call, call.func.value

    def built(self, role: str) -> Iterator[ast.Assign]:
        """Yield the assignments that construct an object of a role."""
        for node in self.nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                if self.roles.get(name_of(node.targets[0])) == role:
                    yield node

    def alone(self, call: ast.Call) -> ast.stmt | None:
        """Return the statement that consists of a call and stands alone on its lines."""
        statement = self.parents[call]
        if not isinstance(statement, ast.Expr) or statement.value is not call:
            return None
        return statement if self.whole(statement) else None

    def whole(self, statement: ast.stmt) -> bool:
        """Return True if a statement shares its lines with no other."""
        before = self.lines[statement.lineno - 1][: self._column(statement.lineno, statement.col_offset)]
        last = statement.end_lineno or statement.lineno
        after = self.lines[last - 1][self._column(last, statement.end_col_offset or 0) :].strip()
        return not before.strip() and (not after or after.startswith("#"))

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the statement that holds a node."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def up(self, node: ast.AST, *kinds: type[ast.AST]) -> ast.AST | None:
        """Return the nearest parent of some kinds, within the same function."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, kinds):
                return node
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
                return None
        return None

    def loop(self, node: ast.AST) -> ast.For | ast.While | None:
        """Return the loop around a node, within the same function."""
        found = self.up(node, ast.For, ast.While)
        return found if isinstance(found, ast.For | ast.While) else None

    def siblings(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the block of a statement."""
        parent = self.parents[statement]
        for field in ("body", "orelse", "finalbody"):
            block = getattr(parent, field, None)
            if isinstance(block, list) and statement in block:
                return block
        return [statement]

    # --- text --------------------------------------------------------------------------------------------------------

    def _column(self, line: int, column: int) -> int:
        return len(self.lines[line - 1].encode()[:column].decode())

    def start(self, node: ast.expr | ast.stmt) -> int:
        """Return the offset of the first character of a node."""
        return self._starts[node.lineno - 1] + self._column(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Return the offset behind the last character of a node."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + self._column(node.end_lineno, node.end_col_offset)

    def code(self, node: ast.expr | ast.stmt) -> str:
        """Return the text of a node."""
        return self.text[self.start(node) : self.end(node)]

    def replace(self, node: ast.expr | ast.stmt, text: str) -> list[Edit]:
        """Return the edits that replace a node."""
        return [Edit(self.start(node), self.end(node), text)]

    def delete(self, statement: ast.stmt) -> list[Edit]:
        """Return the edits that leave a ``pass`` in place of a statement."""
        return self.replace(statement, "pass")

    def indent(self, statement: ast.stmt) -> str:
        """Return the indentation of a statement."""
        return self.lines[statement.lineno - 1][: self._column(statement.lineno, statement.col_offset)]

    def insert_before(self, statement: ast.stmt, text: str) -> list[Edit]:
        """Return the edits that put lines before a statement, with its indentation."""
        at = self._starts[statement.lineno - 1]
        return [Edit(at, at, self._block(text, self.indent(statement)))]

    def insert_after(self, statement: ast.stmt, text: str) -> list[Edit]:
        """Return the edits that put lines after a statement, with its indentation."""
        at = self._starts[statement.end_lineno or statement.lineno]
        lead = "" if self.text[:at].endswith("\n") else "\n"
        return [Edit(at, at, lead + self._block(text, self.indent(statement)))]

    def move_before(self, statement: ast.stmt, target: ast.stmt) -> list[Edit]:
        """Return the edits that move a statement in front of another."""
        return [*self.delete(statement), *self.insert_before(target, self.code(statement))]

    def move_after(self, statement: ast.stmt, target: ast.stmt) -> list[Edit]:
        """Return the edits that move a statement behind another."""
        return [*self.delete(statement), *self.insert_after(target, self.code(statement))]

    @staticmethod
    def _block(text: str, indent: str) -> str:
        lines = text.splitlines()
        return "".join(f"{indent}{line.lstrip() if number else line}\n" for number, line in enumerate(lines))

    def edited(self, edits: list[Edit]) -> str:
        """Return the text after edits, which must not overlap."""
        text = self.text
        for edit in sorted(edits, key=lambda one: (one.start, one.end), reverse=True):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return text
