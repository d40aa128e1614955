"""Point a finding at the line that names the missing call without its parentheses, such as ``optimizer.zero_grad``."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import replace

from truestep import source
from truestep.events import Site
from truestep.findings import Finding, Mark
from truestep.rules import all_rules

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def pointed(finding: Finding) -> Finding:
    """Return the finding with the line of such a statement, if the functions around its lines have exactly one."""
    rule = all_rules().get(finding.rule)
    if rule is None or not rule.missing_call:
        return finding
    places = [mark.site for mark in (finding.primary, *finding.related) if mark.site is not None]
    found = {line: named for site in places for named, line in _named(site.path, rule.missing_call, site.line)}
    if len(found) != 1:
        return finding
    ((place, named),) = found.items()
    mark = Mark(place, f"`{named}` is named here without parentheses, and is not called")
    return replace(finding, related=(*finding.related, mark), help=f"write `{named}()`, with parentheses")


@functools.lru_cache(maxsize=64)
def _named(path: str, method: str, line: int) -> tuple[tuple[str, Site], ...]:
    """Return the statements in the scope of a line that only name a method, such as ``optimizer.zero_grad``."""
    tree = source.parsed(path)
    if tree is None:
        return ()
    scope = _scope(tree, line)
    function = scope.name if isinstance(scope, _Function) else "<module>"
    return tuple(
        (
            ast.unparse(node),
            Site(path, node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0, function),
        )
        for node in _statements(scope)
        if isinstance(node, ast.Attribute) and node.attr == method
    )


def _scope(tree: ast.Module, line: int) -> ast.AST:
    """Return the innermost function around a line, or the module."""
    around = [
        node
        for node in source.walk(tree)
        if isinstance(node, _Function) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(around, key=lambda node: node.lineno, default=tree)


def _statements(scope: ast.AST) -> Iterator[ast.expr]:
    """Yield the expression statements of a scope, without those of nested functions."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, ast.Expr):
            yield child.value
        elif not isinstance(child, _Function | ast.ClassDef | ast.Lambda):
            yield from _statements(child)
