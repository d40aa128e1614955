"""Operators that do the right thing at the wrong place, or too often."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from operators import Found, operator
from source import Edit, Source, name_of


def _statements(source: Source, *names: str, role: str = "") -> Iterator[ast.stmt]:
    for call, _ in source.methods(*names, role=role):
        statement = source.alone(call)
        if statement is not None:
            yield statement


def _pairs(source: Source, first: list[ast.stmt], second: list[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """Yield the statements of a block such that one of the first comes before one of the second."""
    for early in first:
        block = source.siblings(early)
        for late in second:
            if late in block and block.index(early) < block.index(late):
                yield early, late
                break


def _swapped(source: Source, early: ast.stmt, late: ast.stmt) -> list[Edit]:
    return [*source.replace(early, source.code(late)), *source.replace(late, source.code(early))]


def _steps(source: Source) -> list[ast.stmt]:
    return [*_statements(source, "step", role="optimizer"), *_statements(source, "step", role="scaler")]


def _clips(source: Source) -> list[ast.stmt]:
    calls = [call for call in source.calls if name_of(call.func).startswith("clip_grad_")]
    return [statement for call in calls if (statement := source.statement(call)) and source.whole(statement)]


@operator("zero-grad-before-step")
def zero_grad_before_step(source: Source) -> Found:
    """Gradients are cleared between backward and step."""
    steps = _steps(source)
    for cleared in _statements(source, "zero_grad"):
        block = source.siblings(cleared)
        for step in steps:
            if step in block:
                yield cleared, source.move_before(cleared, step)
                break


@operator("step-before-backward")
def step_before_backward(source: Source) -> Found:
    """The optimizer is stepped before the backward pass, with the gradients of the batch before."""
    for back, step in _pairs(source, list(_statements(source, "backward")), _steps(source)):
        yield step, _swapped(source, back, step)


@operator("scheduler-step-per-batch")
def scheduler_step_per_batch(source: Source) -> Found:
    """A schedule of epochs is stepped after each batch."""
    for scheduled in _statements(source, "step", role="scheduler"):
        block = source.siblings(scheduled)
        for step in _steps(source):
            loop = source.loop(step)
            if loop is not None and loop in block and source.whole(scheduled):
                yield scheduled, source.move_after(scheduled, step)
                break


@operator("scheduler-step-per-epoch")
def scheduler_step_per_epoch(source: Source) -> Found:
    """A schedule of batches is stepped once per epoch."""
    for scheduled in _statements(source, "step", role="scheduler"):
        loop = source.loop(scheduled)
        if loop is not None and source.loop(loop) is not None and source.siblings(scheduled) == loop.body:
            yield scheduled, source.move_after(scheduled, loop)


@operator("step-outside-of-loop")
def step_outside_of_loop(source: Source) -> Found:
    """The optimizer is stepped once after all batches."""
    for step in _steps(source):
        loop = source.loop(step)
        if loop is not None and source.loop(loop) is not None and source.siblings(step) == loop.body:
            yield step, source.move_after(step, loop)


@operator("zero-grad-outside-of-loop")
def zero_grad_outside_of_loop(source: Source) -> Found:
    """Gradients are cleared once, before all batches."""
    for cleared in _statements(source, "zero_grad"):
        loop = source.loop(cleared)
        if loop is not None and source.siblings(cleared) == loop.body:
            yield cleared, source.move_before(cleared, loop)


@operator("clip-after-step")
def clip_after_step(source: Source) -> Found:
    """Gradients are clipped after they were used."""
    for clip, step in _pairs(source, _clips(source), _steps(source)):
        yield clip, _swapped(source, clip, step)


@operator("clip-before-backward")
def clip_before_backward(source: Source) -> Found:
    """Gradients are clipped before there are any."""
    for back, clip in _pairs(source, list(_statements(source, "backward")), _clips(source)):
        yield clip, _swapped(source, back, clip)


@operator("clip-before-unscale")
def clip_before_unscale(source: Source) -> Found:
    """Scaled gradients are clipped."""
    for unscaled, clip in _pairs(source, list(_statements(source, "unscale_")), _clips(source)):
        yield clip, _swapped(source, unscaled, clip)


@operator("train-once-before-epochs")
def train_once_before_epochs(source: Source) -> Found:
    """Train mode is set once, and lost after the first evaluation."""
    for trained in _statements(source, "train"):
        loop = source.loop(trained)
        if loop is not None and source.siblings(trained) == loop.body:
            yield trained, source.move_before(trained, loop)


def _loops_of_steps(source: Source) -> Iterator[tuple[ast.stmt, list[ast.For | ast.While]]]:
    """Yield each construction of an optimizer with the loops behind it around a step, from the inside out."""
    for made in source.built("optimizer"):
        block = source.siblings(made)
        for step in _steps(source) if source.whole(made) else ():
            loops = []
            loop = source.loop(step)
            while loop is not None:
                loops.append(loop)
                if loop in block:
                    break
                loop = source.loop(loop)
            if loop is not None and block.index(made) < block.index(loop):
                yield made, loops


def _built_again(source: Source, per_epoch: bool) -> Found:
    done = set()
    for made, loops in _loops_of_steps(source):
        if made not in done and (len(loops) == 2 or not per_epoch):
            done.add(made)
            yield made, source.insert_before(loops[1 if per_epoch else 0].body[0], source.code(made))


@operator("optimizer-per-epoch")
def optimizer_per_epoch(source: Source) -> Found:
    """The optimizer is built again in each epoch, and forgets its moments."""
    return _built_again(source, per_epoch=True)


@operator("optimizer-per-batch")
def optimizer_per_batch(source: Source) -> Found:
    """The optimizer is built again for each batch."""
    return _built_again(source, per_epoch=False)


@operator("seed-in-loop")
def seed_in_loop(source: Source) -> Found:
    """The generator is seeded again in each epoch."""
    for step in _steps(source):
        loop = source.loop(step)
        outer = (source.loop(loop) or loop) if loop is not None else None
        if outer is not None:
            yield outer, source.insert_before(outer.body[0], "__import__('torch').manual_seed(0)")
            return


@operator("same-batch-each-step")
def same_batch_each_step(source: Source) -> Found:
    """Each step draws the first batch of a loader that is started again."""
    for node in source.nodes:
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Name) and source.role(node.iter) == "loader":
            inside = {name_of(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
            if "backward" in inside and node.body:
                text = f"{source.code(node.target)} = next(iter({source.code(node.iter)}))"
                yield node, source.insert_before(node.body[0], text)


def _twice(source: Source, role: str) -> Found:
    for step in _statements(source, "step", role=role):
        yield step, source.insert_after(step, source.code(step))


@operator("step-twice")
def step_twice(source: Source) -> Found:
    """The optimizer is stepped twice with the same gradients."""
    return _twice(source, "optimizer")


@operator("scheduler-step-twice")
def scheduler_step_twice(source: Source) -> Found:
    """A schedule is stepped twice in a row."""
    return _twice(source, "scheduler")


@operator("backward-twice")
def backward_twice(source: Source) -> Found:
    """The same loss is differentiated twice, and its gradient doubled."""
    for call, value in source.methods("backward"):
        statement = source.alone(call)
        if statement is not None and not call.args and not call.keywords:
            text = f"{source.code(value)}.backward(retain_graph=True)"
            yield call, [*source.insert_before(statement, text)]


@operator("retain-graph", silent=True)
def retain_graph(source: Source) -> Found:
    """Graphs are retained that nothing goes through again."""
    for call, value in source.methods("backward"):
        if source.alone(call) is not None and not call.args and not call.keywords:
            yield call, source.replace(call, f"{source.code(value)}.backward(retain_graph=True)")
