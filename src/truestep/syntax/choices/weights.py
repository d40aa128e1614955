"""Weights that a program chooses by samples of its test, loads again, and evaluates on the same samples."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from truestep.syntax.choices.nodes import calls_in, given_to, last_name, names_of, pairs_of, stored_in, texts_of
from truestep.syntax.choices.words import FOR_CHOICE, OPEN, OTHER, TEST, words_of

_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_KEEPING = frozenset({"state_dict", "save", "deepcopy"})
_COPYING = frozenset({"clone", "deepcopy"})
"""Functions and methods that copy plain tensors."""
_SHOWING = frozenset({
    "add_scalar", "append", "debug", "float", "format", "info", "item", "join", "log", "max", "min", "print", "round",
    "save", "step", "write",
})  # fmt: skip
"""Functions that get figures."""
_TESTS = frozenset({"test", "testset", "testloader"})
_OF_SAMPLES = frozenset({
    "x", "y", "data", "dataset", "dl", "ds", "features", "images", "inputs", "labels", "loader", "set", "targets",
    "cand", "candidates", "items", "pairs", "idx", "index", "indices", "rows", "mask",
})  # fmt: skip
_APART = OTHER - {"train", "training", "tr", "trn"}
_BEST = frozenset({"best", "max", "min", "highest", "lowest"})


class WeightsByTest(NamedTuple):
    """Weights that are kept in a branch for a new best figure of the test.

    Attributes:
        name: the figure, such as "accuracy".
        by: the samples, such as "test_loader".
        branch: the comparison with the best figure so far.
        figure: the call that evaluates the chosen weights on the same samples.
        given: True if this call gets the chosen weights, plain tensors, and nothing loads them.
        whole: True if models are kept whole, one for each setting that the loop tries.
    """

    name: str
    by: str
    branch: ast.expr
    figure: ast.Call
    given: bool = False
    whole: bool = False


def weights_by_test(tree: ast.Module) -> list[WeightsByTest]:
    """Return the choices of weights by the test, in a file without a part for choices, or one that nothing evaluates.

    >>> text = '''
    ... for epoch in range(9):
    ...     step()
    ...     acc = evaluate(net, x_test)
    ...     if acc > best_acc:
    ...         best_acc, best = acc, copy.deepcopy(net.state_dict())
    ... net.load_state_dict(best)
    ... print(evaluate(net, x_test))
    ... '''
    >>> [(one.name, one.by, one.figure.lineno) for one in weights_by_test(ast.parse(text))]
    [('acc', 'x_test', 8)]
    >>> weights_by_test(ast.parse(text.replace("acc = evaluate(net, x_test)", "acc = evaluate(net, x_dev)")))
    []
    >>> text = '''
    ... for width in (8, 16, 32):
    ...     net = fit(width, x_train)
    ...     loss = evaluate(net, x_test)
    ...     if loss < lowest_loss:
    ...         lowest_loss, chosen = loss, net
    ... print(evaluate(chosen, x_test))
    ... '''
    >>> [(one.by, one.whole) for one in weights_by_test(ast.parse(text))]
    [('x_test', True)]
    """
    if not any(words_of(one) & TEST for one in names_of(tree)):
        return []
    found: list[WeightsByTest] = []
    has_part = _has_part_for_choice(tree)
    for scope in ast.walk(tree):
        body = scope.body if isinstance(scope, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) else []
        for block in _blocks(body):
            found += _chosen(block, tree if has_part else None)
    return found


def _is_set_aside(statements: list[ast.stmt], tree: ast.Module) -> bool:
    """Return True if the part for choices is made, and neither statements nor the functions that they call read it."""
    functions = {one: one.name for one in ast.walk(tree) if isinstance(one, _INNER) and not isinstance(one, ast.Lambda)}
    methods = {one for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for one in node.body}
    waiting: list[ast.AST] = list(statements)
    reached: set[ast.AST] = set()
    while waiting:
        node = waiting.pop()
        if _has_part_for_choice(node):
            return False
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        attributes = {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
        found = {one for one, name in functions.items() if name in (attributes if one in methods else names)} - reached
        reached |= found
        waiting += found
    return True


def _has_part_for_choice(tree: ast.AST) -> bool:
    """Return True if a call, a loop or an index has samples with the name of a validation."""
    for one in ast.walk(tree):
        if isinstance(one, ast.Call) and _name(one) not in _SHOWING:
            parts = [*given_to(one), *([one.func.value] if isinstance(one.func, ast.Attribute) else [])]
        elif isinstance(one, ast.For | ast.AsyncFor | ast.comprehension):
            parts = [one.iter]
        else:
            parts = [one] if isinstance(one, ast.Subscript) else []
        if any(words_of(name) & FOR_CHOICE for part in parts for name in names_of(part)):
            return True
    return False


def _blocks(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements of a function, without those of inner functions and loops."""
    yield body
    for one in body:
        if isinstance(one, ast.If | ast.With | ast.AsyncWith | ast.Try):
            for part in ("body", "orelse", "finalbody"):
                yield from _blocks(getattr(one, part, []))


def _chosen(block: list[ast.stmt], tree: ast.Module | None) -> Iterator[WeightsByTest]:
    """Yield the choices of the loops of a block; with a tree, it has a part for choices, which is to be set aside."""
    for at, loop in enumerate(block):
        if not isinstance(loop, _LOOPS):
            continue
        branches = list(_branches(loop))
        for branch, figure in branches:
            made = _made(loop, figure, branch.lineno)
            samples = None if made is None else _samples(made)
            if made is None or samples is None:
                continue
            later = block[at + 1 :]
            load = next((number for number, one in enumerate(later) if _loads(one, branch)), len(later))
            given = load == len(later)
            after = later if given else later[load:]
            call = next(_again(after, made, samples), None)
            if call is None or _are_bound(loop, later, samples) or _are_others(after, made):
                continue
            models = _models(loop, branch, made)
            if given and not _is_only_use(call, later, models or _copies(branch)):
                continue
            if (tree is None and not given) or (len(branches) == 1 and _is_plain([loop, *later], tree)):
                yield WeightsByTest(figure, min(samples), branch.test, call, given, bool(models))


def _is_plain(statements: list[ast.stmt], tree: ast.Module | None) -> bool:
    """Return True if no part for choices is read, and the program does not call the figure an upper bound."""
    texts = (text for one in statements for text in texts_of(one))
    shown = {
        part.value
        for one in statements
        for call in calls_in(one)
        if _name(call) == "print"
        for part in given_to(call)
        if isinstance(part, ast.Constant)
    }
    others = (words_of(name) & _APART for one in statements[1:] for name in names_of(one) if name not in shown)
    return not any(map(OPEN.search, texts)) and not any(others) and (tree is None or _is_set_aside(statements, tree))


def _is_only_use(figure: ast.Call, statements: list[ast.stmt], kept: frozenset[str]) -> bool:
    """Return True if a figure is computed with weights that were kept, and no other one is."""
    uses = [call for one in statements for call in calls_in(one) if kept & _names_given(call)]
    return figure in uses and all(one is figure or _name(one) in _SHOWING | {"dump"} for one in uses)


def _copies(branch: ast.If) -> frozenset[str]:
    """Return the variables that get copies of tensors in a branch."""
    return frozenset(
        name
        for part in branch.body
        for target, value in pairs_of(part)
        if any(_name(call) in _COPYING for call in calls_in(value))
        for name in stored_in(target)
    )


def _models(loop: ast.stmt, branch: ast.If, made: ast.Call) -> frozenset[str]:
    """Return the variables that get, in a branch, a model that a call in the loop has made, and the figure is of."""
    fresh = _called_for(loop) & _names_given(made)
    return frozenset(
        name
        for part in branch.body
        for target, value in pairs_of(part)
        if isinstance(value, ast.Name) and value.id in fresh
        for name in stored_in(target)
    )


def _called_for(loop: ast.stmt) -> set[str]:
    """Return the variables that get the results of calls in a loop."""
    pairs = (pair for one in _inside(loop) if isinstance(one, ast.stmt) for pair in pairs_of(one))
    return {name for target, value in pairs if isinstance(value, ast.Call) for name in stored_in(target)}


def _names_given(call: ast.Call) -> set[str]:
    return {one.id for part in given_to(call) for one in ast.walk(part) if isinstance(one, ast.Name)}


def _loads(statement: ast.stmt, branch: ast.If) -> bool:
    """Return True if a statement loads the weights that a branch has kept: by their variable, or the name of a file."""
    kept = {name for part in branch.body for one in ast.walk(part) if isinstance(one, ast.stmt)
            for target, _ in pairs_of(one) for name in _targets(target)}  # fmt: skip
    saved = {ast.dump(call.args[1]) for part in branch.body for call in calls_in(part)
             if _name(call) == "save" and len(call.args) > 1}  # fmt: skip
    for call in calls_in(statement):
        for one in given_to(call) if _name(call) == "load_state_dict" else ():
            if kept & {ast.unparse(part) for part in ast.walk(one) if isinstance(part, ast.Name | ast.Attribute)}:
                return True
            if saved & {ast.dump(part) for part in ast.walk(one)}:
                return True
    return False


def _targets(target: ast.expr) -> Iterator[str]:
    for one in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
        while isinstance(one, ast.Subscript):
            one = one.value
        yield ast.unparse(one)


def _again(statements: list[ast.stmt], made: ast.Call, samples: frozenset[str]) -> Iterator[ast.Call]:
    """Yield the calls of simple statements that evaluate the same samples again; a check of the load is not one."""
    for at, one in enumerate(statements):
        if at and "load_state_dict" in map(_name, calls_in(one)):  # other weights
            return
        if not isinstance(one, (ast.Assert, ast.If, *_INNER, *_LOOPS)):
            yield from (call for call in calls_in(one) if _name(call) == _name(made) and _samples(call) == samples)


def _are_others(statements: list[ast.stmt], made: ast.Call) -> bool:
    """Return True if the chosen weights are evaluated on samples of another name, that of no test and no training."""
    known = {ast.unparse(one) for one in given_to(made)}
    for call in (call for one in statements for call in calls_in(one) if _name(call) == _name(made)):
        given = [ast.unparse(one) for one in given_to(call) if isinstance(one, ast.Name | ast.Attribute)]
        others = [name for name in given if name not in known and words_of(name) & _OF_SAMPLES]
        if others and not any(words_of(name) & (OTHER | TEST | _TESTS) for name in given):
            return True
    return False


def _are_bound(loop: ast.stmt, later: list[ast.stmt], samples: frozenset[str]) -> bool:
    """Return True if a variable with the samples gets another value in the loop or behind it."""
    nodes = [node for one in (loop, *later) for node in (one, *_inside(one)) if isinstance(node, ast.stmt)]
    return any(name in samples for node in nodes for target, _ in pairs_of(node) for name in _targets(target))


def _branches(loop: ast.stmt) -> Iterator[tuple[ast.If, str]]:
    """Yield the branches of a loop that keep weights at a new best figure, with the name of the figure."""
    for one in _inside(loop):
        if not isinstance(one, ast.If) or not isinstance(one.test, ast.Compare) or len(one.test.ops) != 1:
            continue
        if not isinstance(one.test.ops[0], ast.Gt | ast.GtE | ast.Lt | ast.LtE):
            continue
        sides = [one.test.left, one.test.comparators[0]]
        best = [side for side in sides if isinstance(side, ast.Name) and words_of(side.id) & _BEST]
        figures = [side for side in sides if isinstance(side, ast.Name) and side not in best]
        stored = {name for part in ast.walk(one) if isinstance(part, ast.stmt) for target, _ in pairs_of(part)
                  for name in stored_in(target)}  # fmt: skip
        names = {value.id for part in one.body for _, value in pairs_of(part) if isinstance(value, ast.Name)}
        whole = not names.isdisjoint(_called_for(loop) - {side.id for side in figures})
        keeps = whole or any(_name(call) in _KEEPING | _COPYING for part in one.body for call in calls_in(part))
        if len(best) == len(figures) == 1 and keeps and best[0].id in stored:
            yield one, figures[0].id


def _made(loop: ast.stmt, figure: str, before: int) -> ast.Call | None:
    """Return the call that a figure is the result of; None if another statement gives it a value, too."""
    made = [
        value
        for one in _inside(loop)
        if isinstance(one, ast.stmt)
        for target, value in pairs_of(one)
        if figure in stored_in(target)
    ]
    call = made[0] if len(made) == 1 else None
    return call if isinstance(call, ast.Call) and call.lineno < before else None


def _samples(call: ast.Call) -> frozenset[str] | None:
    """Return the arguments that are variables with the name of a test; None without one, or with those of others."""
    given = [one for one in given_to(call) if isinstance(one, ast.Name | ast.Attribute)]
    found = frozenset(ast.unparse(one) for one in given if _is_test(ast.unparse(one)))
    return found if found and not any(words_of(ast.unparse(one)) & OTHER for one in given) else None


def _is_test(name: str) -> bool:
    """Return True for samples of a test: ``x_test``, ``test_loader``, ``testset``; not for ``test_transform``."""
    words = set(words_of(name.removeprefix("self.")))
    return bool(words & _TESTS) and words <= _TESTS | _OF_SAMPLES


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, _INNER):
            yield from _inside(child)


def _name(call: ast.Call) -> str:
    return last_name(call.func)
