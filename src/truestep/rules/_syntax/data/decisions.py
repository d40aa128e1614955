"""Areas under a curve that get decisions in place of scores, also from lists over the batches, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from truestep import source
from truestep.rules._syntax.data.roles import predicted, texts_in
from truestep.syntax import Binding, Call, Context, Program, Scope, Suspicion, argument, dotted, part_of

_OF_SCORES = tuple(
    f"sklearn.metrics.{name}"
    for name in ("roc_auc_score", "average_precision_score", "roc_curve", "precision_recall_curve", "det_curve")
)
"""Functions that need the order of the scores, and get one threshold from decisions."""
_SCORES = re.compile(r"(?:^|_)(?:p|probs?|probas?|scores?|logits?|preds?|outputs?|sigmoid)(?:_|$)|probabilit")
_BALANCED = re.compile(r"(?<![a-z])balanced", re.IGNORECASE)
"""The area under the curve of decisions is the balanced accuracy."""
_NEAR = 5
"""Lines around a statement outside of functions that are read with it."""
CONVERTED = frozenset({"astype", "int", "long", "float", "double", "bool", "numpy", "cpu", "tolist", "flatten"})
_WRAPPED = CONVERTED | {"detach", "squeeze", "view", "reshape", "ravel", "item", "type", "to", "contiguous", "copy"}
"""Methods that keep the order of the values."""
_JOINED = frozenset({
    "cat", "concat", "concatenate", "hstack", "stack", "array", "asarray", "tensor", "as_tensor", "list", "ravel",
    "squeeze",
})  # fmt: skip
"""Functions that make one array of their first argument."""
_HIDDEN = re.compile(r"hid|dim|width|feat|emb|units|channels|d_model|inner|size")
"""Names of sizes of hidden layers."""
_LEAST_HIDDEN = 12
_DEEPEST = 6


class _Value(NamedTuple):
    """An expression at its place."""

    node: ast.expr
    context: Context
    order: int


def ranked_by_decisions(program: Program, classes: int = 0) -> Iterator[Suspicion]:
    """Yield areas under a curve of scikit-learn that get decisions, which have one threshold, in place of scores.

    Args:
        program: the file.
        classes: number of classes of a run; 0 if it is unknown.
    """
    known: set[ast.AST] = set()
    for call in program.starting("sklearn.metrics."):
        named = next((word.value for word in call.node.keywords if word.arg == "y_score"), None)
        given = named if named is not None else call.node.args[1] if len(call.node.args) > 1 else None
        if call.name not in _OF_SCORES or call.unpacks or given is None:
            continue
        if any(word.arg == "multi_class" for word in call.node.keywords) or _BALANCED.search(_around(call, program)):
            continue
        made = program.values.origin(_unconverted(given), call.context, call.order)[0]
        place = _Value(program.values.origin(_unconverted(made), call.context, call.order)[0], call.context, call.order)
        decided = _decided(place, program)
        if decided is not None and _is_score(decided, place, program):
            related: tuple[tuple[ast.AST, str], ...] = ()
        else:
            parts = list(_parts(_Value(given, call.context, call.order), program, 0, set()))
            if not parts or not all(one is not None and _is_collected_decision(one, program, classes) for one in parts):
                continue
            nodes = [one.node for one in parts if one is not None]
            if known.issuperset(nodes):
                continue  # one mistake, which several figures read
            known.update(nodes)
            related = tuple((node, "is a decision") for node in nodes[:2])
        yield Suspicion(
            call.node,
            f"`{call.method}` gets decisions in place of scores: its curve has one point",
            "has decisions as its scores",
            "pass the scores or probabilities before the threshold",
            related,
        )


def _around(call: Call, program: Program) -> str:
    """Return the text of the function around a call, or of the lines around it."""
    node = call.context.scope.node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        first, last = node.lineno - 1, node.end_lineno
    else:
        first, last = max(call.node.lineno - 1 - _NEAR, 0), call.node.lineno + _NEAR
    return "\n".join(program.text.split("\n")[first:last])


def _is_score(node: ast.expr, place: _Value, program: Program) -> bool:
    """Return True for a value that is made of the result of a model, or has the name of scores."""
    return bool(predicted(node, place.context, place.order, program)) or any(map(_SCORES.search, texts_in(node)))


def _unconverted(node: ast.expr, methods: frozenset[str] = CONVERTED) -> ast.expr:
    """Return the value that an expression converts to another type."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
        if is_called_on_module(node):
            break
        node = node.func.value
    return node


def _decided(one: _Value, program: Program) -> ast.expr | None:
    """Return scores that are compared with a threshold, or probabilities that are rounded to a whole number."""
    node = one.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "round":
        given = [*node.args, *(word.value for word in node.keywords)]
        rounded = node.func.value if not given else given[0] if len(given) == 1 and is_called_on_module(node) else None
        return rounded if rounded is not None and _is_probability(rounded, one, program) else None
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Gt | ast.GtE):
        return node.left
    return None


def _is_probability(node: ast.expr, place: _Value, program: Program) -> bool:
    """Return True for the result of a sigmoid or softmax, and for a name of probabilities that is not calculated."""
    made = _unconverted(program.values.origin(_unconverted(node), place.context, place.order)[0])
    while isinstance(made, ast.Subscript):
        made = made.value
    if isinstance(made, ast.Call) and dotted(made.func).rpartition(".")[2] in ("sigmoid", "softmax", "expit"):
        return True
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr in ("sigmoid", "softmax"):
        return True
    calculated = isinstance(made, ast.BinOp) or (isinstance(made, ast.Call) and dotted(made.func).endswith("exp"))
    return not calculated and "prob" in dotted(_unconverted(node)).lower()


def is_called_on_module(node: ast.Call) -> bool:
    """Return True for a function of torch or NumPy."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return isinstance(owner, ast.Name) and owner.id in ("np", "numpy", "torch")


# --- values that are collected over the batches ----------------------------------------------------------------------


def _parts(one: _Value, program: Program, depth: int, seen: set[object]) -> Iterator[_Value | None]:
    """Yield the values that an array or a list is made of; None for one that is not known."""
    node = _unconverted(one.node, _WRAPPED)
    if depth > _DEEPEST:
        yield None
    elif isinstance(node, ast.Call) and node.args and _is_join(node):
        yield from _parts(_Value(node.args[0], one.context, one.order), program, depth + 1, seen)
    elif isinstance(node, ast.List | ast.Tuple):
        for part in node.elts:
            yield from _parts(_Value(part, one.context, one.order), program, depth + 1, seen)
    elif isinstance(node, ast.ListComp | ast.GeneratorExp):
        yield from _parts(_Value(node.elt, one.context, one.order), program, depth + 1, seen)
    elif key := dotted(node):
        yield from _of_name(key, one, program, depth, seen)
    else:
        yield _Value(node, one.context, one.order)


def _is_join(node: ast.Call) -> bool:
    name = dotted(node.func)
    return name == "list" or (is_called_on_module(node) and name.rpartition(".")[2] in _JOINED)


def _of_name(key: str, one: _Value, program: Program, depth: int, seen: set[object]) -> Iterator[_Value | None]:
    scope = one.context.scope
    if (key, scope) in seen:  # the list itself, which gets another part
        return
    bindings = program.values.bindings(key, scope)
    passed = program.values.passed(bindings[0], scope) if [each.how for each in bindings] == ["parameter"] else None
    if passed is not None:
        value, caller = passed
        yield from _parts(_Value(value, caller.context, caller.order), program, depth + 1, seen)
        return
    if not bindings or any(each.how not in ("=", "augmented") for each in bindings):
        yield None
        return
    seen = seen | {(key, scope)}
    for each in bindings:
        bound = _bound(each)
        if bound is not None:
            yield from _parts(_Value(bound, each.context, each.order), program, depth + 1, seen)
        else:
            yield from _returned(each, program, depth, seen)
    for call in program.method("append", "extend"):
        if call.key == key and _is_same(call.scope, scope, key):
            for value in call.node.args:
                yield from _parts(_Value(value, call.context, call.order), program, depth + 1, seen)
    if any(call.key == key and _is_same(call.scope, scope, key) for call in program.method("insert", "update")):
        yield None


def _bound(one: Binding) -> ast.expr | None:
    """Return the value of a name; the decision of `_, pred = torch.max(out, 1)` as `torch.max(out, 1)[1]`."""
    value = part_of(one)
    if value is not None or one.index != (1,) or not isinstance(one.value, ast.Call):
        return value
    is_max = isinstance(one.value.func, ast.Attribute) and one.value.func.attr == "max"
    made = ast.Subscript(one.value, ast.Constant(1), ast.Load()) if is_max else None
    return None if made is None else ast.copy_location(made, one.value)


def _is_same(first: Scope, second: Scope, key: str) -> bool:
    """Return True if a name, or an attribute of `self`, means one object in two scopes."""
    return first is second or (key.startswith("self.") and first.owner is not None and first.owner is second.owner)


def _returned(one: Binding, program: Program, depth: int, seen: set[object]) -> Iterator[_Value | None]:
    """Yield the parts of the result of a function of the file, at the place of a name."""
    call = program.call_at.get(one.value) if one.value is not None else None
    function = None if call is None else program.resolve(call) or _method(call, program)
    if function is None or not function.returns or len(one.index) > 1:
        yield None
        return
    for value, context, order in function.returns:
        part: ast.expr | None = value
        if one.index:
            known = isinstance(value, ast.Tuple) and 0 <= one.index[0] < len(value.elts)
            part = value.elts[one.index[0]] if known and isinstance(value, ast.Tuple) else None
        if part is None:
            yield None
        else:
            yield from _parts(_Value(part, context, order), program, depth + 1, seen)


def _method(call: Call, program: Program) -> Scope | None:
    """Return the only method of the file with the name of a called one."""
    found = [one for owner in program.classes() if (one := owner.inner.get(call.method)) is not None]
    return found[0] if len(found) == 1 and "." in dotted(call.node.func) and not call.name else None


def _is_collected_decision(one: _Value, program: Program, classes: int) -> bool:
    node = one.node
    decided = _decided(one, program) or _where(node)
    if decided is not None:
        return _is_score(decided, one, program)
    scores = _largest(node)
    two = classes == 2 if classes else _is_of_two_classes(one.context.scope, program)
    return scores is not None and two and _is_score(scores, one, program)


def _where(node: ast.expr) -> ast.expr | None:
    """Return the scores of `np.where(scores > 0.5, 1, 0)`."""
    if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "where" and len(node.args) == 3:
        test, *values = node.args
        numbers = [value.value for value in values if isinstance(value, ast.Constant)]
        greater = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Gt | ast.GtE)
        return test.left if greater and numbers == [1, 0] and isinstance(test, ast.Compare) else None
    return None


def _largest(node: ast.expr) -> ast.expr | None:
    """Return the scores of which an expression is the place of the largest one; None for another expression."""
    first = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == 1
    of_max = first or (isinstance(node, ast.Attribute) and node.attr == "indices")
    called = node.value if of_max and isinstance(node, ast.Subscript | ast.Attribute) else node
    if not isinstance(called, ast.Call) or not isinstance(called.func, ast.Attribute):
        return None
    if called.func.attr != ("max" if of_max else "argmax"):
        return None
    if is_called_on_module(called):
        return called.args[0] if called.args else None
    return called.func.value


def _is_of_two_classes(scope: Scope, program: Program) -> bool:
    """Return True if the layers of a file have two outputs, and no other small number that can be one of classes.

    The second column of a softmax in the function that decides shows it, too.
    """
    sizes: set[object] = set()
    for call in program.named("torch.nn.Linear", "torch.nn.LazyLinear"):
        size = call.argument(1, "out_features") if call.method == "Linear" else call.argument(0, "out_features")
        number = ... if size is None else _number(size, call, program)
        hidden = size is not None and _HIDDEN.search(ast.unparse(size).lower())
        sizes.add(None if number is ... and hidden else number)
    if 2 in sizes and ... not in sizes and not any(isinstance(one, int) and 2 < one < _LEAST_HIDDEN for one in sizes):
        return True
    return any(
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Tuple)
        and isinstance(last := node.slice.elts[-1], ast.Constant)
        and last.value == 1
        and "softmax" in ast.unparse(node.value)
        for node in source.walk(scope.node)
    )


def _number(size: ast.expr, call: Call, program: Program) -> object:
    """Return a size, also that of a parameter by its default; `Ellipsis` if it is unknown."""
    value = program.values.constant(size, call.context, call.order)
    if value is ... and isinstance(size, ast.Name) and size.id in call.scope.parameters:
        calls = program.calls_of(call.scope)
        default = call.scope.default(size.id)
        given = any(one.unpacks or argument(one, call.scope, size.id) is not None for one in calls)
        return default.value if isinstance(default, ast.Constant) and not given else ...
    return value
