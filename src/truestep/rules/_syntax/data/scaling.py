"""Features that are scaled with statistics of the evaluation data, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.syntax import Binding, Program, Scope, Suspicion, dotted, names_in, part_of

_SCALERS = re.compile(
    r"^sklearn\.(?:preprocessing\.(?:StandardScaler|MinMaxScaler|RobustScaler|MaxAbsScaler|Normalizer|PowerTransformer|"
    r"QuantileTransformer)|impute\.\w+|decomposition\.(?:PCA|TruncatedSVD)|feature_selection\.\w+)$"
)
_SPLITS = ("sklearn.model_selection.train_test_split",)


def scaled_with_evaluation_data(program: Program) -> Iterator[Suspicion]:
    """Yield scalers that are fitted on all samples before these are split into parts."""
    for split in program.named(*_SPLITS):
        for part in split.node.args[:2]:
            name = dotted(part)
            if not name:
                continue
            bindings = program.values.reaching(name, split.context, split.order) or []
            for one in bindings:
                call = program.call_at.get(one.value) if one.value is not None else None
                if call is None or call.method != "fit_transform" or call.receiver is None or one.index:
                    continue
                made = program.values.origin(call.receiver, call.context, call.order)[0]
                scaler = program.call_at.get(made)
                if scaler is None or not _SCALERS.match(scaler.name):
                    continue
                yield Suspicion(
                    call.node,
                    f"`{scaler.method}` is fitted on all samples before they are split",
                    "its statistics contain the samples of the evaluation",
                    "split first, then fit on the training part: `fit_transform(x_train)`, `transform(x_test)`",
                    ((split.node, "the split"),),
                )
    yield from _fitted_twice(program)
    yield from _by_hand(program)


_STATISTICS = ("mean", "std", "min", "max", "amin", "amax", "var", "median", "quantile")
_STATISTIC = re.compile(rf"\.(?:{'|'.join(_STATISTICS)})\(")


def _by_hand(program: Program) -> Iterator[Suspicion]:
    """Yield tables that are standardised as a whole before they are cut, and parts that are scaled separately."""
    if not program.method(*_STATISTICS):
        return
    for scope in program.scopes:
        for key, bindings in scope.bindings.items():
            for one in bindings:
                if one.how != "=" or not isinstance(one.value, ast.BinOp) or not isinstance(one.value.op, ast.Div):
                    continue
                if not _own_statistics(key, one, program):
                    continue
                if re.search(r"(?:^|_)(?:test|val|valid)(?:$|_)", key):
                    other = re.sub(r"test|valid|val", "train", key, count=1)
                    twin = [each for each in scope.bindings.get(other, ()) if isinstance(each.value, ast.BinOp)]
                    if any(_own_statistics(other, each, program) for each in twin):
                        yield Suspicion(
                            one.node,
                            f"`{key}` is scaled with its own statistics, not with those of `{other}`",
                            "reads the statistics of the evaluation",
                            f"use the mean and the deviation of `{other}` for both",
                            ((twin[0].node, "scaled with other statistics"),),
                        )
                elif (cut := _cut_later(key, one, scope)) is not None:
                    yield Suspicion(
                        one.node,
                        f"`{key}` is scaled with statistics of all samples before it is split",
                        "its statistics contain the samples of the evaluation",
                        "compute the statistics of the training part only",
                        ((cut, "the part for the evaluation"),),
                        Confidence.HIGH if _by_range(one, program) else Confidence.LOW,
                    )


def _own_statistics(key: str, one: Binding, program: Program) -> bool:
    """Return True if an assignment scales a table with statistics of that table."""
    assert one.value is not None
    parts = [ast.unparse(one.value)]
    for name in set(names_in(one.value)):
        known = program.values.only(name, one.context, one.order) if name != key and "." not in name else None
        if known is not None and known.value is not None:
            parts.append(ast.unparse(known.value))
    if key not in set(names_in(one.value)):
        return False
    own = re.compile(rf"(?<![\w.]){re.escape(key)}{_STATISTIC.pattern}")
    return sum(len(own.findall(part)) for part in parts) >= 2


def _by_range(one: Binding, program: Program) -> bool:
    """Return True if a table is scaled by its extremes, which single samples decide."""
    assert one.value is not None
    texts = [ast.unparse(one.value)]
    for name in set(names_in(one.value)):
        known = program.values.only(name, one.context, one.order) if "." not in name else None
        if known is not None and known.value is not None and known is not one:
            texts.append(ast.unparse(known.value))
    return any(re.search(r"\.(?:min|max|amin|amax)\(", text) for text in texts)


def _cut_later(key: str, one: Binding, scope: Scope) -> ast.AST | None:
    """Return the assignment of a later slice of a table to the data of the evaluation."""
    found = None
    train = False
    for name, bindings in scope.bindings.items():
        for each in bindings:
            if each.order < one.order or each.value is None or each.how != "=":
                continue
            part = part_of(each)
            if (
                not isinstance(part, ast.Subscript)
                or dotted(part.value) != key
                or not isinstance(part.slice, ast.Slice)
            ):
                continue
            train = train or "train" in name
            if re.search(r"test|val", name):
                found = each.node
    return found if train else None


def _fitted_twice(program: Program) -> Iterator[Suspicion]:
    """Yield scalers that are fitted again on the samples of the evaluation."""
    for call in program.method("fit_transform"):
        value = call.argument(0, "X")
        if value is None or call.receiver is None or not re.search(r"(?:^|_)test(?:_|$)|^test", dotted(value).lower()):
            continue
        scaler = program.call_at.get(program.values.origin(call.receiver, call.context, call.order)[0])
        if scaler is None or not re.match(r"^sklearn\.(?:preprocessing|impute|decomposition)\.", scaler.name):
            continue
        if "Encoder" in scaler.method or "Binarizer" in scaler.method:
            continue
        if not any(
            "train" in ast.unparse(other.node) for other in program.method("fit_transform", "fit") if other is not call
        ):
            continue
        yield Suspicion(
            call.node,
            f"`{scaler.method}` is fitted on the samples of the evaluation",
            "scales them with their own statistics",
            f"call `transform({dotted(value)})` with the scaler that was fitted on the training part",
        )
