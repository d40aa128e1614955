"""The loop around a statement, the calls in it, and the statement of a block that contains another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from truestep.fixes.editing.edits import statements_of
from truestep.fixes.editing.program import Loop, Program, Statement, Uncertain, method


def loop_of(program: Program, node: cst.CSTNode) -> Loop | None:
    """Return the innermost loop of the same function around a node."""
    found = program.around(node, cst.For, cst.While, within=program.scope(node))
    return found if isinstance(found, Loop) else None


def loops_of(program: Program, node: cst.CSTNode) -> list[Loop]:
    """Return the loops of the same function around a node, the innermost first."""
    found: list[Loop] = []
    loop = loop_of(program, node)
    while loop is not None:
        found.append(loop)
        loop = loop_of(program, loop)
    return found


def calls(program: Program, node: cst.CSTNode, *methods: str) -> Iterator[cst.Call]:
    """Yield the calls of methods with these names that run in the function of a node, below it."""
    for call in program.here(node, cst.Call):
        if method(call) in methods:
            yield call


def trains(program: Program, node: cst.CSTNode) -> bool:
    """Return True if a backward pass or an optimizer step is written below a node."""
    return any(True for call in program.walk(node, cst.Call) if method(call) in ("backward", "step"))


def block_of(program: Program, statement: Statement) -> cst.CSTNode:
    """Return the block, the module or the one-line body that a statement is in.

    Raises:
        Uncertain: it is in none.
    """
    found = program.around(statement, cst.IndentedBlock, cst.SimpleStatementSuite, cst.Module)
    if found is None:
        raise Uncertain
    return found


def in_block(program: Program, node: cst.CSTNode, block: cst.CSTNode) -> Statement | None:
    """Return the statement of a block that a node is, or is in; None if it is elsewhere."""
    inner: Statement | None = None
    for one in (node, *program.ancestors(node)):
        if one is block:
            return inner
        if isinstance(one, cst.BaseSmallStatement | cst.BaseCompoundStatement):
            inner = one
    return None


def alone_in_if(program: Program, statement: Statement, within: cst.CSTNode) -> Statement:
    """Return the `if` without `else` around a statement that is its only one, up to a block; else the statement."""
    while True:
        block = block_of(program, statement)
        if block is within or isinstance(block, cst.Module) or len(statements_of(block)) != 1:
            return statement
        owner = program.parent(block)
        if not isinstance(owner, cst.If) or owner.orelse is not None or isinstance(program.parent(owner), cst.If):
            return statement
        statement = owner


def bound(program: Program, node: cst.CSTNode) -> set[str]:
    """Return the names that a node assigns, also as loop variables and by `with`, `import` and `def`."""
    found: set[str] = set()
    targets: list[cst.CSTNode] = []
    for one in program.all(node):
        if isinstance(one, cst.AssignTarget | cst.AnnAssign | cst.AugAssign | cst.For | cst.NamedExpr | cst.CompFor):
            targets.append(one.target)
        elif isinstance(one, cst.AsName | cst.FunctionDef | cst.ClassDef):
            targets.append(one.name)
    for target in targets:
        found.update(_names(target))
    return found


def read(program: Program, node: cst.CSTNode) -> set[str]:
    """Return all names in a node, without those of attributes."""
    return {one.value for one in program.walk(node, cst.Name) if not _is_attribute(program, one)}


def _is_attribute(program: Program, node: cst.Name) -> bool:
    parent = program.parent(node)
    return (isinstance(parent, cst.Attribute) and parent.attr is node) or (
        isinstance(parent, cst.Arg) and parent.keyword is node
    )


def _names(target: cst.CSTNode) -> Iterable[str]:
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _names(element.value)
    elif isinstance(target, cst.StarredElement):
        yield from _names(target.value)
