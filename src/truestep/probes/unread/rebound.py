"""Variables of loops that a statement binds to a new value, as in ``for p in params: p = p - lr * p.grad``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep import source

_ASIDE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.If, ast.IfExp, ast.Try, ast.Match)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def rebound(scope: ast.AST) -> Iterator[tuple[ast.Assign, str]]:
    """Yield the statements that make a new value of the variable of their loop, which nothing reads, with its name.

    >>> code = "for p in params:\\n    p = p - 0.1 * p.grad\\nfor q in params:\\n    q = 2 * q\\n    kept.append(q)"
    >>> [(statement.lineno, name) for statement, name in rebound(ast.parse(code))]
    [(2, 'p')]
    """
    for loop in _own(scope):
        if not isinstance(loop, ast.For):
            continue
        names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
        body = list(_straight(loop.body))
        for at, statement in enumerate(body):
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp() as value):
                    later = _loads(*body[at + 1 :], *loop.orelse)
                    if name in names & _loads(value) - later and not _read_behind(scope, loop, name):
                        yield statement, name


def lost_states(tree: ast.AST, scope: ast.AST) -> Iterator[tuple[ast.Assign, str]]:
    """Yield the statements that make the next state of an update by hand, as of a momentum, and lose it.

    The state is an item of a list that begins as zeros, and no statement stores a new one in it; the update of another
    variable of the loop reads it. ``velocity`` stays zero here:

    >>> code = "velocity = [torch.zeros_like(p) for p in ps]\\nfor p, g, v in zip(ps, gs, velocity):\\n"
    >>> code += "    v = 0.9 * v + g\\n    p.sub_(0.1 * v)"
    >>> tree = ast.parse(code)
    >>> [(statement.lineno, name) for statement, name in lost_states(tree, tree)]
    [(3, 'v')]
    """
    for loop in _own(scope):
        match loop:
            case ast.For(
                target=ast.Tuple(elts=targets), iter=ast.Call(func=ast.Name(id="zip"), args=lists), body=block
            ) if len(targets) == len(lists):
                body = list(_straight(block))
            case _:
                continue
        pairs = {one.id: many for one, many in zip(targets, lists, strict=True) if isinstance(one, ast.Name)}
        changed = {name for statement in body for name in _changed(statement)}
        for at, statement in enumerate(body):
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp() as value) if name in pairs:
                    state = _name(pairs[name]) if isinstance(pairs[name], ast.Name) else ""
                    used = name in _loads(value) & _loads(*body[at + 1 :]) and name not in changed
                    if state and used and changed & pairs.keys() and _stays_zero(tree, state):
                        yield statement, name


def reads_gradients(scope: ast.AST, statement: ast.Assign) -> bool:
    """Return True if a statement of a loop reads an item of a list that ``torch.autograd.grad`` returned.

    >>> code = "gs = torch.autograd.grad(loss, ps)\\nfor p, g in zip(ps, gs):\\n    p = p - 0.1 * g"
    >>> tree = ast.parse(code)
    >>> reads_gradients(tree, tree.body[1].body[0])
    True
    """
    taken = {
        place.id
        for node in source.walk(scope)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if ast.unparse(node.value.func).rpartition(".")[2] == "grad"
        for place in node.targets
        if isinstance(place, ast.Name)
    }
    for loop in source.walk(scope):
        match loop:
            case ast.For(target=ast.Tuple(elts=targets), iter=ast.Call(func=ast.Name(id="zip"), args=lists)) if any(
                statement is one for one in ast.walk(loop)
            ):
                pairs = zip(targets, lists, strict=False)
                items = {one.id for one, many in pairs if isinstance(one, ast.Name) and _loads(many) & taken}
                if items & _loads(statement.value):
                    return True
    return False


def _changed(statement: ast.stmt) -> Iterator[str]:
    """Yield the variables that a statement changes in place."""
    for node in ast.walk(statement):
        match node:
            case ast.AugAssign(target=place):
                yield _name(place)
            case ast.Assign(targets=targets):
                yield from (_name(place) for place in targets if not isinstance(place, ast.Name))
            case ast.Call(func=ast.Attribute(value=place, attr=method)) if method.endswith("_"):
                yield _name(place)


def _name(place: ast.expr) -> str:
    """Return the variable that an item or an attribute belongs to."""
    while isinstance(place, ast.Subscript | ast.Attribute):
        place = place.value
    return place.id if isinstance(place, ast.Name) else ""


def _stays_zero(tree: ast.AST, name: str) -> bool:
    """Return True if a file makes a list of zeros by this name, and never stores anything else in it."""
    made: list[ast.expr] = []
    for node in source.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                for place in targets:
                    places = place.elts if isinstance(place, ast.Tuple | ast.List) else [place]
                    if any(_name(one) == name for one in places):
                        made.append(value)
            case ast.AugAssign(target=place) | ast.NamedExpr(target=place) if _name(place) == name:
                return False
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner))) if owner == name:
                return False
            case ast.For(iter=over, body=body) if name in _loads(over) and not _is_zipped(over, name):
                if body:
                    return False
    zeros = [_is_zero(value) for value in made]
    return len(zeros) == 1 and zeros[0]


def _is_zipped(over: ast.expr, name: str) -> bool:
    """Return True for ``zip`` with a list beside others."""
    names = [one.id for one in over.args if isinstance(one, ast.Name)] if isinstance(over, ast.Call) else []
    return isinstance(over, ast.Call) and ast.unparse(over.func) == "zip" and name in names


def _is_zero(value: ast.expr) -> bool:
    calls = (node.func for node in ast.walk(value) if isinstance(node, ast.Call))
    return any(ast.unparse(one).rpartition(".")[2] in ("zeros_like", "zeros", "new_zeros") for one in calls)


def is_descent(value: ast.expr, name: str) -> bool:
    """Return True if a new value of a variable is made from its gradient: the variable is a tensor."""
    parts = (node for node in ast.walk(value) if isinstance(node, ast.Attribute) and node.attr == "grad")
    return any(isinstance(part.value, ast.Name) and part.value.id == name for part in parts)


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run whenever a scope does: not those of functions and classes, or under a condition."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, _ASIDE):
            yield child
            yield from _own(child)


def _straight(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that every pass runs, with those of `with` blocks, in their order."""
    for statement in body:
        if isinstance(statement, ast.With):
            yield from _straight(statement.body)
        else:
            yield statement


def _loads(*nodes: ast.AST) -> set[str]:
    """Return the names that are read."""
    found = (one for node in nodes for one in ast.walk(node))
    return {one.id for one in found if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Store)}


def _read_behind(scope: ast.AST, loop: ast.For, name: str) -> bool:
    """Return True if a variable is read outside of a loop, other than in loops that bind it themselves."""
    inside = {id(node) for node in ast.walk(loop)}
    for node in source.walk(scope):
        binds = node.generators if isinstance(node, _COMPREHENSIONS) else []
        targets = [node.target] if isinstance(node, ast.For | ast.AsyncFor) else [bind.target for bind in binds]
        if any(isinstance(one, ast.Name) and one.id == name for target in targets for one in ast.walk(target)):
            inside.update(id(one) for one in ast.walk(node))
    reads = (node for node in source.walk(scope) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store))
    return any(node.id == name and id(node) not in inside for node in reads)
