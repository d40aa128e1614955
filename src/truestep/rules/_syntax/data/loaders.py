"""Loaders and samplers of a training, from the syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep.syntax import Act, Call, Context, Loop, Program, Suspicion, dotted, names_in


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
