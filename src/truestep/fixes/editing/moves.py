"""Statements that move past others, unless a name between them changes its meaning."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from truestep.fixes.editing.edits import statements_of
from truestep.fixes.editing.loops import block_of, bound, in_block, read
from truestep.fixes.editing.program import Program, Statement, Uncertain


def check_move(program: Program, statement: Statement, target: Statement) -> None:
    """Check that a statement can move beside another one: no name between them changes its meaning.

    Raises:
        Uncertain: the statements are in different functions, or one between them binds a name that the statement
            reads, or reads one that it binds.
    """
    if program.scope(statement) is not program.scope(target):
        raise Uncertain
    uses, binds = read(program, statement), bound(program, statement)
    for one in passed(program, statement, target):
        if bound(program, one) & uses or read(program, one) & binds:
            raise Uncertain


def passed(program: Program, statement: Statement, target: Statement) -> Sequence[Statement]:
    """Return the statements between two, in the innermost block that has both; those with the target are left out.

    Raises:
        Uncertain: no block has both.
    """
    block: cst.CSTNode | None = block_of(program, statement)
    while block is not None:
        first, last = in_block(program, statement, block), in_block(program, target, block)
        if first is not None and last is not None:
            body = statements_of(block)
            places = sorted((body.index(first), body.index(last)))
            return body[places[0] + 1 : places[1]]
        block = program.around(block, cst.IndentedBlock, cst.SimpleStatementSuite, cst.Module)
    raise Uncertain
