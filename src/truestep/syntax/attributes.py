"""Attributes with a next value that a local variable gets, from the syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_DYNAMIC = frozenset({"locals", "vars", "exec", "eval"})


def lost_in(
    owner: ast.ClassDef, method: ast.FunctionDef, tree: ast.AST | None = None
) -> Iterator[tuple[str, ast.Assign]]:
    """Yield the attributes of a class that a method assigns to local variables which nothing reads.

    The next value is a sum of the attribute and of another variable with a factor, as in an average: a product is often
    a setting that fits the batch, and a plain sum an index. The class reads the attribute in another expression, and
    neither another method changes it nor code outside of the class assigns it.

    Args:
        owner: the class.
        method: a method of it.
        tree: the module.

    >>> code = '''
    ... class Norm:
    ...     def __init__(self):
    ...         self.mean, self.rate = 0.0, 0.1
    ...     def __call__(self, x):
    ...         mean = (1 - self.rate) * self.mean + self.rate * x.mean()
    ...         rate = 2 * self.rate
    ...         return x - self.mean * rate'''
    >>> owner = ast.parse(code).body[0]
    >>> [(name, node.lineno) for name, node in lost_in(owner, owner.body[1])]
    [('mean', 6)]
    """
    nodes = list(ast.walk(method))
    read = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}
    declared = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    if not method.args.args or read & _DYNAMIC:
        return
    this = method.args.args[0].arg
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp() as value) if name not in read | declared:
                others = {one.id for one in ast.walk(value) if isinstance(one, ast.Name)} - {this}
                if others and _is_mixed(value, name) and not _changes(owner, name):
                    if _reads(owner, name) > _reads(value, name) and not _is_renewed(tree or owner, name, this):
                        yield name, node


def _is_mixed(value: ast.BinOp, name: str) -> bool:
    """Return True for a sum that begins or ends with an attribute, one part of which has a factor.

    >>> texts = "0.9 * self.m + x", "self.m + r * (x - self.m)", "self.m + x", "2 * (x + self.m)", "x - r * self.m"
    >>> [_is_mixed(ast.parse(text, mode="eval").body, "m") for text in texts]
    [True, True, False, False, False]
    """
    if not isinstance(value.op, ast.Add | ast.Sub):
        return False
    parts = [value.left, value.right] if isinstance(value.op, ast.Add) else [value.left]
    own = any(isinstance(one, ast.BinOp | ast.Attribute) and _reads(one, name) for one in parts)
    return own and any(isinstance(one, ast.Mult | ast.Div) for one in ast.walk(value))


def _is_renewed(tree: ast.AST, name: str, this: str) -> bool:
    """Return True if a module assigns a value to an attribute of this name of an object other than ``self``."""
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            match target:
                case ast.Attribute(attr=attribute, value=whose) if attribute == name:
                    if not (isinstance(whose, ast.Name) and whose.id in (this, "self")):
                        return True
    return False


def _reads(whole: ast.AST, name: str) -> int:
    """Return the number of places that read an attribute of this name."""
    attributes = [one for one in ast.walk(whole) if isinstance(one, ast.Attribute) and one.attr == name]
    return sum(isinstance(one.ctx, ast.Load) for one in attributes)


def _changes(owner: ast.ClassDef, name: str) -> bool:
    """Return True if a method other than ``__init__`` can change an attribute of this name."""
    for method in owner.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            continue
        for node in ast.walk(method):
            match node:
                case ast.Assign(targets=targets):
                    places: Iterable[ast.AST] = (one for target in targets for one in ast.walk(target))
                    if any(isinstance(one, ast.Attribute) and one.attr == name for one in places):
                        return True
                case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                    if any(isinstance(one, ast.Attribute) and one.attr == name for one in ast.walk(target)):
                        return True
                case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=attribute), attr=called)):
                    if attribute == name and called.endswith("_"):
                        return True
                case ast.Call(func=ast.Name(id="setattr")):
                    return True
    return False
