"""Read the user's names from the source at a site: the callee of a call, the target of an assignment."""

from __future__ import annotations

import ast
import linecache
import re

from truestep.events import Site

_PLAIN = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
"""Expressions that a method can be called on as they stand."""
_COMPREHENSIONS = (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)


def _segment(site: Site) -> str:
    lines = linecache.getlines(site.path)[site.line - 1 : max(site.end_line, site.line)]
    if not lines or site.column < 0:
        return ""
    encoded = [line.encode() for line in lines]
    encoded[-1] = encoded[-1][: site.end_column]
    encoded[0] = encoded[0][site.column :]
    return b"".join(encoded).decode(errors="replace")


def call_at(site: Site | None) -> ast.Call | None:
    """Return the call at a site; None for other code, or if the source cannot be read."""
    try:
        node = None if site is None else ast.parse(_segment(site).strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return node if isinstance(node, ast.Call) else None


def callee(site: Site | None, fallback: str) -> str:
    """Return the expression that is called at a site: "model" for ``model(x)``, "self.net" for ``self.net(x)``."""
    node = call_at(site)
    if node is None or not isinstance(node.func, ast.Name | ast.Attribute | ast.Subscript):
        return fallback
    name = ast.unparse(node.func)
    return name if len(name) <= 40 else fallback


def arguments(site: Site | None, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments of a call at a site: ("pred", "y") for ``mse_loss(pred, y)``.

    Args:
        site: place of the call.
        names: names of the parameters; keyword arguments are found too, and unreadable ones keep the parameter's name.
    """
    node = call_at(site)
    if node is None or any(isinstance(given, ast.Starred) for given in node.args):
        return names
    given = dict(zip(names, node.args, strict=False)) | {key.arg: key.value for key in node.keywords if key.arg}
    written = {name: ast.unparse(value) for name, value in given.items() if isinstance(value, _PLAIN)}
    return tuple(written[name] if len(written.get(name, " " * 41)) <= 40 else name for name in names)


def target(site: Site | None, fallback: str) -> str:
    """Return the variable that a construction at a site is assigned to: "opt" for ``opt = SGD(...)``."""
    if site is None:
        return fallback
    line = linecache.getline(site.path, site.line)
    if re.match(r"[\s(]*[\w.]+\s*,[^=(]*=(?!=)", line):
        return _one_of_several(line, site.column, fallback)
    before = line if site.column < 0 else line.encode()[: site.column].decode(errors="replace")
    match = re.search(
        r"([A-Za-z_][\w.]*(?:\[[^\]]*\])?)\s*(?::[^=]+)?=\s*$", before.rstrip() if site.column >= 0 else ""
    )
    if match is None:
        match = re.match(r"\s*([A-Za-z_][\w.]*)\s*(?::[^=]+)?=(?!=)", line)
    return match.group(1) if match and len(match.group(1)) <= 40 else fallback


def _one_of_several(line: str, column: int, fallback: str) -> str:
    """Return the variable for one of the values in ``a, b = A(), B()``, by its column in the line."""
    try:
        (statement,) = ast.parse(line.strip()).body
    except (SyntaxError, ValueError):
        return fallback
    indent = len(line.encode()) - len(line.lstrip().encode())
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Tuple | ast.List):
        names = getattr(statement.targets[0], "elts", [])
        for name, value in zip(names, statement.value.elts, strict=False):
            if value.col_offset <= column - indent < (value.end_col_offset or 0):
                return ast.unparse(name)
    return fallback


def receiver(site: Site | None, fallback: str) -> str:
    """Return the object a method is called on at a site: "model" for ``model.forward(x)``."""
    name = callee(site, "")
    owner = name.rpartition(".")[0]
    return owner or fallback


def iterated(site: Site | None, fallback: str) -> str:
    """Return the iterable of a loop: "train_loader" for ``for x in train_loader``, also inside enumerate or tqdm.

    Up to Python 3.12, the site is the whole loop, or the call around a generator expression.
    """
    if site is None:
        return fallback
    try:
        (statement,) = ast.parse(_segment(site).strip()).body
    except (SyntaxError, ValueError):
        return fallback
    if not isinstance(statement, ast.Expr | ast.For):
        return fallback
    node = statement.value if isinstance(statement, ast.Expr) else statement.iter
    while isinstance(node, _COMPREHENSIONS) or (isinstance(node, ast.Call) and node.args):
        node = node.args[0] if isinstance(node, ast.Call) else node.generators[0].iter
    name = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) else ""
    return name if 0 < len(name) <= 40 else fallback
