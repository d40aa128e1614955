"""Data, loaders and splits, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.syntax import (
    Act,
    Binding,
    Call,
    Context,
    Loop,
    Program,
    Scope,
    Suspicion,
    argument,
    dotted,
    evaluates,
    names_in,
    part_of,
)

_SCALERS = re.compile(
    r"^sklearn\.(?:preprocessing\.(?:StandardScaler|MinMaxScaler|RobustScaler|MaxAbsScaler|Normalizer|PowerTransformer|"
    r"QuantileTransformer)|impute\.\w+|decomposition\.(?:PCA|TruncatedSVD)|feature_selection\.\w+)$"
)
_SPLITS = ("sklearn.model_selection.train_test_split",)
_SEEDS = ("torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all")


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


_STATISTIC = re.compile(r"\.(?:mean|std|min|max|amin|amax|var|median|quantile)\(")


def _by_hand(program: Program) -> Iterator[Suspicion]:
    """Yield tables that are standardised as a whole before they are cut, and parts that are scaled separately."""
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


def seed_in_training_loop(program: Program) -> Iterator[Suspicion]:
    """Yield seeds with the same value in every pass of a training loop."""
    for call in program.named(*_SEEDS):
        if not call.node.args or _changes(call.node.args[0], call, program):
            continue
        loop = _loop_around(call, program)
        if loop is None or any(one.method in ("set_rng_state", "fork_rng") for one in call.scope.calls):
            continue
        if evaluates(call.scope.name) or any(
            name.endswith(("no_grad", "inference_mode")) for name in call.scope.decorators
        ):
            continue
        operations = program.flow.of_loop(loop)
        trains = {one.act for one in operations} >= {Act.STEP, Act.BACKWARD}
        if not trains or _builds(loop, program):
            continue
        yield Suspicion(
            call.node,
            "the generator gets the same seed in every pass of the training loop, and repeats its random numbers",
            "draws the same numbers again",
            f"call `{ast.unparse(call.node)}` once, before the loop",
            ((loop.node.iter if not isinstance(loop.node, ast.While) else loop.node.test, "the loop"),),
        )


def _loop_around(call: Call, program: Program, depth: int = 0) -> Loop | None:
    """Return the loop around a call, or around the only calls of its function."""
    if call.loop is not None:
        return call.loop if call.context.guards == call.loop.guards else None
    if call.context.guards or depth > 2 or call.scope.kind != "function":
        return None
    loops = [_loop_around(one, program, depth + 1) for one in program.calls_of(call.scope)]
    return next((loop for loop in loops if loop is not None), None)


def _builds(loop: Loop, program: Program) -> bool:
    """Return True if a loop builds an optimizer, as one over folds or trials does."""
    waiting = [call for call in loop.scope.calls if call.loop is not None and call.loop.within(loop)]
    seen: set[Scope] = set()
    while waiting:
        call = waiting.pop()
        if call.name.startswith("torch.optim."):
            return True
        function = program.resolve(call)
        if function is not None and function not in seen:
            seen.add(function)
            waiting += function.calls
    for one in program.flow.of_loop(loop):
        if one.act is Act.STEP and one.call is not None:
            scope = one.context.scope
            made = scope.bindings.get(one.call.key.partition(".")[0], ())
            if scope is not loop.scope and any(each.how != "parameter" for each in made):
                return True
    return False


def _changes(value: ast.expr, call: Call, program: Program) -> bool:
    """Return True if a value may differ between the passes of the loops around a call."""
    if isinstance(value, ast.Constant):
        return False
    for name in names_in(value):
        bindings = program.values.bindings(name, call.scope)
        if not bindings or any(one.how in ("for", "augmented") or one.context.loop is not None for one in bindings):
            return True
        if any(one.how == "parameter" and not _default(name, one.context.scope, program) for one in bindings):
            return True
    return any(isinstance(node, ast.Call) for node in ast.walk(value))


def _default(name: str, function: Scope, program: Program) -> bool:
    """Return True if all calls of a function leave a parameter at its default, or pass a constant."""
    passed = [argument(call, function, name) for call in program.calls_of(function)]
    return bool(passed) and all(value is None or isinstance(value, ast.Constant) for value in passed)


def one_batch_per_epoch(program: Program) -> Iterator[Suspicion]:
    """Yield `return` and `break` at the end of the body of a loop over batches."""
    for training in program.roles.trainings():
        loop = training.loop
        if loop is None or program.roles.over_loader(loop) is None or not training.direct(Act.BACKWARD):
            continue
        last = loop.node.body[-1]
        if not isinstance(last, ast.Return) or loop.guards:
            continue
        if any(isinstance(node, ast.Continue | ast.Yield) for node in ast.walk(loop.node)) or _whole(loop, program):
            continue
        added = {key for key, ones in loop.scope.bindings.items() for one in ones if one.how == "augmented"}
        if last.value is not None and not added & set(names_in(last.value)):
            continue
        yield Suspicion(
            last,
            "the loop over the batches is left after its first batch",
            "ends the loop in its first pass",
            "move the statement out of the loop over the batches",
            ((loop.node.iter if not isinstance(loop.node, ast.While) else loop.node, "the batches"),),
        )


def _whole(loop: Loop, program: Program) -> bool:
    """Return True if the loader of a loop gives all samples in one batch."""
    node = program.roles.over_loader(loop)
    if not isinstance(node, ast.expr):
        return True
    made = program.call_at.get(
        program.values.origin(node, Context(loop.scope, loop.parent, loop.guards), loop.first)[0]
    )
    size = None if made is None else made.argument(1, "batch_size")
    return size is not None and not isinstance(size, ast.Constant | ast.Name | ast.Attribute)


def sampler_epoch_not_set(program: Program) -> Iterator[Suspicion]:
    """Yield distributed samplers without a call that sets their epoch."""
    made = program.named("torch.utils.data.DistributedSampler")
    if not made or program.method("set_epoch") or "set_epoch" in program.text:
        return
    for call in made:
        shuffle = call.argument(3, "shuffle")
        if isinstance(shuffle, ast.Constant) and not shuffle.value:
            continue
        statement = call.statement
        if not isinstance(statement, ast.Assign) or statement.value is not call.node:
            continue
        key = dotted(statement.targets[0])
        loader = _loader_of(key, program)
        if loader is None or not _trained_with(loader, program):
            continue
        yield Suspicion(
            loader.node,
            "the distributed sampler gives the same order in every epoch",
            f"`{key}.set_epoch` is never called",
            f"call `{key}.set_epoch(epoch)` at the start of each epoch",
            ((call.node, "the sampler"),),
        )


def _loader_of(key: str, program: Program) -> Call | None:
    for call in program.named("torch.utils.data.DataLoader"):
        sampler = call.argument(3, "sampler")
        if key and sampler is not None and dotted(sampler) == key:
            return call
    return None


def _trained_with(loader: Call, program: Program, *, labels: bool = False) -> bool:
    """Return True if a training loop with more than one epoch reads a loader; with `labels`, also the labels."""
    statement = loader.statement
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    key = dotted(statement.targets[0])
    for training in program.roles.trainings():
        loop = training.loop
        if loop is None or loop.parent is None or not training.of(Act.BACKWARD):
            continue
        node = program.roles.over_loader(loop)
        if isinstance(node, ast.expr) and dotted(node) == key:
            names = [] if isinstance(loop.node, ast.While) else [dotted(one) for one in ast.walk(loop.node.target)]
            return not labels or "_" not in names
    return False


def train_validation_overlap(program: Program) -> Iterator[Suspicion]:
    """Yield training loaders of a whole data set of which a part is held out for the evaluation."""
    for split in program.named("torch.utils.data.random_split"):
        whole = split.argument(0, "dataset")
        statement = split.statement
        if whole is None or not dotted(whole) or not isinstance(statement, ast.Assign) or split.loop is not None:
            continue
        target = statement.targets[0]
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or statement.value is not split.node:
            continue
        train, held = (dotted(one) for one in target.elts)
        read = {
            dotted(value): call for call in _loaders(split.scope, program) if (value := call.argument(0, "dataset"))
        }
        if dotted(whole) not in read or held not in read or train in read or _read_elsewhere(train, split, program):
            continue
        yield Suspicion(
            read[dotted(whole)].node,
            f"the training reads all of `{dotted(whole)}`, and so the samples that are held out",
            f"reads the samples of `{held}` too",
            f"build the loader on `{train}`",
            ((split.node, "the split"),),
        )


def _loaders(scope: Scope, program: Program) -> list[Call]:
    return [call for call in program.named("torch.utils.data.DataLoader") if call.scope is scope]


def _read_elsewhere(name: str, split: Call, program: Program) -> bool:
    return any(key == name or key.startswith(f"{name}.") for scope in program.scopes for key in scope.loads)


def training_data_not_shuffled(program: Program) -> Iterator[Suspicion]:
    """Yield training loaders of images in folders by class that are read in their order."""
    for call in program.named("torch.utils.data.DataLoader"):
        if call.unpacks or any(call.argument(place, name) is not None for place, name in _ORDERS):
            continue
        value = call.argument(0, "dataset")
        made = None if value is None else program.call_at.get(program.values.origin(value, call.context, call.order)[0])
        if made is None or made.name not in ("torchvision.datasets.ImageFolder", "torchvision.datasets.DatasetFolder"):
            continue
        if _trained_with(call, program, labels=True):
            yield Suspicion(
                call.node,
                "the training reads the classes one after another, in the order of their folders",
                "does not shuffle",
                "pass `shuffle=True`",
                ((made.node, "sorts its samples by class"),),
            )


_ORDERS = ((2, "shuffle"), (3, "sampler"), (4, "batch_sampler"))


def augmentation_in_evaluation(program: Program) -> Iterator[Suspicion]:
    """Yield data sets of an evaluation with a random transform of the training."""
    for call in program.calls:
        if not re.match(r"^torchvision\.datasets\.(?!ImageFolder|DatasetFolder)\w+$", call.name):
            continue
        train = call.argument(1, "train")
        if not (isinstance(train, ast.Constant) and train.value is False):
            continue
        value = call.argument(2, "transform")
        if value is None:
            continue
        found = program.values.origin(value, call.context, call.order)[0]
        random = next(
            (
                inner
                for node in ast.walk(found)
                if (inner := program.call_at.get(node)) is not None
                and re.match(
                    r"^torchvision\.transforms\.(?:v2\.)?(?:Random\w+|AutoAugment|TrivialAugmentWide|ColorJitter)$",
                    inner.name,
                )
            ),
            None,
        )
        if random is not None:
            yield Suspicion(
                call.node,
                f"the evaluation reads its samples through the random transform `{random.method}`",
                "is the test set",
                "pass a transform without random parts",
                ((random.node, "changes its results from read to read"),),
                Confidence.MEDIUM if "tta" in program.text.lower() else Confidence.HIGH,
            )
