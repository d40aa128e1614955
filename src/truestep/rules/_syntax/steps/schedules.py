"""Schedules of the learning rate, from the syntax."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

from truestep import source
from truestep.rules._syntax.named import named_only
from truestep.syntax import (
    Act,
    Binding,
    Call,
    Kind,
    Loop,
    Operation,
    Program,
    Suspicion,
    Training,
    dotted,
    is_made_by_losses,
    is_result_of_loss,
    names_in,
)

_SCHEDULERS = "torch.optim.lr_scheduler."
_COSINES = (f"{_SCHEDULERS}CosineAnnealingLR", f"{_SCHEDULERS}LinearLR", f"{_SCHEDULERS}PolynomialLR")


def _built(program: Program) -> Iterator[tuple[Call, str]]:
    """Yield the constructions of schedules that are assigned to one name, and the name."""
    for call in program.starting(_SCHEDULERS):
        statement = call.statement
        if not isinstance(statement, ast.Assign):
            continue
        if statement.value is call.node and len(statement.targets) == 1 and (key := dotted(statement.targets[0])):
            yield call, key


def scheduler_never_stepped(program: Program) -> Iterator[Suspicion]:
    """Yield schedules that are built, and neither stepped nor passed on."""
    yield from named_only(program, "the learning rate keeps its first value", "step", Kind.SCHEDULER)
    trains = any(one.act is Act.STEP for loop in program.roles.trainings() for one in loop.operations)
    if not trains:
        return
    for call, key in _built(program):
        name = key.rpartition(".")[2]
        if call.name.endswith((".SWALR", "swa_utils.SWALR")) or _used(name, call, program):
            continue
        yield Suspicion(
            call.node,
            f"the schedule `{key}` is never stepped: the learning rate keeps its first value",
            "is built, and used nowhere in the file",
            f"call `{key}.step()` after `optimizer.step()`, once per epoch or per batch as the schedule needs it",
        )


def _used(name: str, call: Call, program: Program) -> bool:
    """Return True if anything in the file reads a name, also as an attribute."""
    prepared = {part for each in program.method("prepare") for part in each.node.args}
    for scope in program.scopes:
        for key, uses in scope.loads.items():
            if name in key.split(".") and any(node not in prepared for _, node in uses):
                return True
    return program.text.count(name) > 1 and any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value == name
        for node in ast.walk(program.tree)
    )


def scheduler_before_optimizer(program: Program) -> Iterator[Suspicion]:
    """Yield steps of a schedule before the step of the optimizer, in each pass of a training loop."""
    for training in program.roles.trainings():
        steps = training.direct(Act.STEP)
        if not steps or training.loop is None:
            continue
        for one in _schedules(training.loop, training, program):
            yield Suspicion(
                one.node,
                "the schedule is stepped before the optimizer, so that its first learning rate is skipped",
                "comes before the step of the optimizer",
                f"move `{ast.unparse(one.node)}` behind `{ast.unparse(steps[0].node)}`",
                ((steps[0].node, "the step of the optimizer"),),
            )


def _schedules(loop: Loop, training: Training, program: Program) -> Iterator[Operation]:
    """Yield the steps of schedules in a loop, or the loop around it, that come before all steps of optimizers."""
    for place in (loop, loop.parent):
        if place is None:
            continue
        operations = program.flow.of_loop(place)
        steps = [number for number, one in enumerate(operations) if one.act is Act.STEP]
        for number, one in enumerate(operations):
            if one.act is not Act.SCHEDULE or one.loops[-1] is not place or number > steps[0]:
                continue
            call = one.call
            if call is None or call.node.args or call.node.keywords or one.guards[len(place.guards) :]:
                continue
            if any(other.act is Act.SCHEDULE and other.key == one.key for other in operations[number + 1 :]):
                continue
            if any(other.act is Act.BACKWARD for other in operations[:number]) and place is not loop:
                continue
            if program.named(f"{_SCHEDULERS}LambdaLR"):
                continue
            yield one


def scheduler_wrong_cadence(program: Program) -> Iterator[Suspicion]:
    """Yield steps of schedules in the loop over batches if their length counts epochs, and the other way round."""
    lengths = {key: _unit(call, program) for call, key in _built(program)}
    if not lengths:
        return
    for outer in program.loops:
        operations = program.flow.of_loop(outer)
        if not any(one.act is Act.BACKWARD for one in operations):
            continue
        batches = {one.loops[-1] for one in operations if one.act is Act.STEP and one.loops[-2:-1] == (outer,)}
        for one in operations:
            unit, node, text = lengths.get(one.key, ("", None, ""))
            if one.act is not Act.SCHEDULE or node is None or one.call is None or one.call.node.args:
                continue
            if one.guards[len(outer.guards) :] or not all(map(program.roles.over_batches, batches)) or not batches:
                continue
            if one.loops[-1] in batches and unit == "epochs" and text == _epochs(outer):
                yield Suspicion(
                    one.node,
                    f"the schedule is as long as the epochs, `{text}`, and is stepped for every batch",
                    "once per batch",
                    f"move `{ast.unparse(one.node)}` behind the loop over the batches",
                    ((node, f"counts epochs: `{text}`"),),
                )
            elif one.loops[-1] is outer and unit == "batches":
                yield Suspicion(
                    one.node,
                    "the length of the schedule counts batches, and it is stepped once per epoch",
                    "once per epoch",
                    f"move `{ast.unparse(one.node)}` into the loop over the batches",
                    ((node, "counts batches"),),
                )


def _unit(call: Call, program: Program) -> tuple[str, ast.expr | None, str]:
    """Return the unit in which the length of a schedule counts, the expression and its text."""
    if call.name == f"{_SCHEDULERS}OneCycleLR":
        steps = call.argument(-1, "steps_per_epoch")
        value = steps if steps is not None else call.argument(-1, "total_steps")
        if value is None:
            return "", None, ""
        found = program.values.origin(value, call.context, call.order)[0]
        return ("batches" if "len(" in ast.unparse(found) else ""), call.node, ast.unparse(value)
    if call.name not in _COSINES:
        return "", None, ""
    value = call.argument(1, "T_max") if call.name == _COSINES[0] else call.argument(-1, "total_iters")
    if value is None:
        return "", None, ""
    found = program.values.origin(value, call.context, call.order)[0]
    text = ast.unparse(found)
    if "len(" in text and "loader" in text:
        return "batches", call.node, ast.unparse(value)
    return "epochs", call.node, ast.unparse(value)


def _epochs(loop: Loop) -> str:
    """Return the text of the number of passes of a loop over `range(n)`."""
    if isinstance(loop.node, ast.While):
        return ""
    node = loop.node.iter
    if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ("tqdm", "trange", "range"):
        while isinstance(node, ast.Call) and node.args and dotted(node.func).rpartition(".")[2] == "tqdm":
            node = node.args[0]
        if isinstance(node, ast.Call) and len(node.args) == 1:
            return ast.unparse(node.args[0])
    return ""


def plateau_without_metric(program: Program) -> Iterator[Suspicion]:
    """Yield steps of `ReduceLROnPlateau` with the loss of one training batch, an accuracy to be small, or the epoch."""
    built = {key: call for call, key in _built(program) if call.name == f"{_SCHEDULERS}ReduceLROnPlateau"}
    if not built:
        return
    losses = {one.key for training in program.roles.steps() for one in training.direct(Act.BACKWARD)}
    for call in program.method("step"):
        made = built.get(call.key)
        if made is None or not call.node.args:
            continue
        value = call.node.args[0]
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _NUMBERS:
            value = value.func.value
        name = dotted(value)
        mode = program.values.constant(made.argument(1, "mode"), made.context, made.order)
        wrong = (
            mode in (..., "min") and re.search(r"(?:^|_)(?:acc|accuracy|f1|auc|dice|iou|r2)(?:_|$)", name) is not None
        )
        if made.unpacks or (made.argument(1, "mode") is not None and mode is ...):
            wrong = False
        if wrong:
            yield Suspicion(
                call.node,
                f"the plateau schedule waits for `{name}` to fall: its mode is `min`",
                "a better value counts as a worse one",
                'build the schedule with `mode="max"`',
                ((made.node, "the mode is `min` by default"),),
            )
        elif mode == "max" and not made.unpacks and _is_loss(value, name, program):
            yield Suspicion(
                call.node,
                f"the plateau schedule waits for `{name or ast.unparse(value)}` to rise: its mode is `max`",
                "the result of a loss function, which is to fall",
                'build the schedule with `mode="min"`',
                ((made.node, "the mode is `max`"),),
            )
        elif name and name in losses and _of_one_batch(name, call, program):
            yield Suspicion(
                call.node,
                f"the plateau schedule gets the loss of one training batch, `{name}`",
                "the loss of one batch",
                "pass the mean loss of a validation set, once per epoch",
                ((made.node, "waits for a metric that stops falling"),),
            )


_NUMBERS = ("item", "detach", "cpu", "mean")


def _is_loss(value: ast.expr, name: str, program: Program) -> bool:
    return is_result_of_loss(value) or bool(name and is_made_by_losses(ast.walk(program.tree), name))


def _of_one_batch(name: str, call: Call, program: Program) -> bool:
    """Return True if a name holds the loss of a batch where a schedule gets it."""
    bindings = program.values.reaching(name, call.context, call.order) or program.values.bindings(name, call.scope)
    inside = [one for one in bindings if one.how == "=" and one.value is not None]
    if not inside or any(one.context.deferred for one in inside):
        return False
    for one in inside:
        loop = one.context.loop
        if loop is None or not program.roles.over_batches(loop):
            return False
        value = program.call_at.get(one.value) if one.value is not None else None
        if value is None or value.method in ("mean", "sum", "stack"):
            return False
    return True


def scheduler_stepped_twice(program: Program) -> Iterator[Suspicion]:
    """Yield second steps of a schedule in one pass of a loop."""
    if not any(
        program.kinds.is_a(call.receiver, Kind.SCHEDULER, call.context, call.order) for call in program.method("step")
    ):
        return
    for loop in program.loops:
        seen: dict[str, Operation] = {}
        for one in program.flow.of_loop(loop):
            call = one.call
            if one.act is not Act.SCHEDULE or call is None or call.node.args or one.loops[-1] is not loop or one.via:
                continue
            first = seen.setdefault(one.key, one)
            if first is not one and one.key and first.guards == one.guards and first.node is not one.node:
                yield Suspicion(
                    one.node,
                    f"`{one.key}` is stepped twice in one pass of the loop, and its schedule ends too early",
                    "the second step",
                    "remove one of the two steps",
                    ((first.node, "the first step"),),
                )


def learning_rate_dead(program: Program) -> Iterator[Suspicion]:
    """Yield optimizers with a learning rate of zero that nothing in the file sets."""
    for call in program.optimizers:
        value = call.argument(1, "lr")
        if not isinstance(value, ast.Constant) or value.value not in (0, 0.0) or value.value is False:
            continue
        if program.mentions("param_groups") or program.starting(_SCHEDULERS):
            continue
        steps = [one for _, one in program.roles.updates(in_loops=True) if one.built is call]
        if steps:
            yield Suspicion(
                call.node,
                "the learning rate is zero, and nothing sets another one",
                "has a learning rate of 0",
                "pass a learning rate above 0",
                ((steps[0].node, "changes nothing"),),
            )


_RATE = re.compile(r"(?:^|_)(?:lr|learning_rate)$")
_SHOWS = {
    "print", "info", "debug", "log", "append", "write", "add_scalar", "set_postfix", "set_description", "format",
}  # fmt: skip
"""Calls that only show or keep a value."""


def rate_never_set(program: Program) -> Iterator[Suspicion]:
    """Yield learning rates that a training computes and never gives to its optimizer."""
    yield from _in_an_attribute(program)
    yield from _only_shown(program)


def _in_an_attribute(program: Program) -> Iterator[Suspicion]:
    """Yield rates that are written to an attribute of an optimizer of torch, in a file that reads and sets no other."""
    if not program.optimizers or "param_groups" in program.text:
        return
    if any(name.startswith("torch.optim.") for owner in program.classes() for name in program.bases(owner)):
        return
    for key, _, bindings in program.attributes:
        holder, _, attribute = key.rpartition(".")
        if attribute not in ("lr", "learning_rate") or any(key in scope.loads for scope in program.scopes):
            continue
        for one in bindings:
            target = one.node.targets[0] if isinstance(one.node, ast.Assign) else None
            if one.how != "=" or not isinstance(target, ast.Attribute):
                continue
            if program.kinds.is_a(target.value, Kind.OPTIMIZER, one.context, one.order):
                rate = ast.unparse(one.value) if one.value is not None else "lr"
                yield Suspicion(
                    one.node,
                    f"`{key}` is an attribute that torch never reads: the optimizer keeps its rate",
                    "changes no learning rate",
                    f"""set it in the groups: `for group in {holder}.param_groups: group["lr"] = {rate}`""",
                )


def _only_shown(program: Program) -> Iterator[Suspicion]:
    """Yield learning rates that a training computes in its loop, shows, and never gives to its optimizer."""
    if "param_groups" in program.text or program.starting(_SCHEDULERS) or program.method("set_lr", "setattr", "locals"):
        return
    shown = {
        node
        for call in program.method(*_SHOWS)
        for value in (*call.arguments(), call.receiver)
        for node in (ast.walk(value) if value is not None else ())
    }
    for training in program.roles.trainings():
        loops = training.loop.chain() if training.loop is not None else ()
        built = next((step.built for step in training.steps if step.sure and step.built is not None), None)
        for key, bindings in training.scope.bindings.items() if built is not None else ():
            inside = [one for one in bindings if one.how == "=" and one.context.loop in loops]
            if not _RATE.search(key) or "." in key or not inside or len(inside) != len(bindings):
                continue
            used = [node for scope in program.scopes for _, node in scope.loads.get(key, ())]
            if all(node in shown for node in used) and all(_changes(one, training) for one in inside):
                assert built is not None
                yield Suspicion(
                    inside[0].node,
                    f"`{key}` is computed in the loop and never given to the optimizer, which keeps its first rate",
                    "changes no learning rate",
                    f"""set it before the step: `for group in optimizer.param_groups: group["lr"] = {key}`""",
                    ((built.node, "is built with the rate that it keeps"),),
                )


def _changes(one: Binding, training: Training) -> bool:
    """Return True if a value is computed from a name that a loop around it assigns."""
    value = one.value
    if value is None or not isinstance(value, ast.Call | ast.BinOp | ast.IfExp):
        return False
    return any(
        each.context.loop is not None
        for name in names_in(value)
        for each in training.scope.bindings.get(name, ())
        if each is not one
    )


@functools.lru_cache(maxsize=64)
def tries_rates(path: str) -> bool:
    """Return True if a file collects the rates that it sets, and chooses among them: a test of rates."""
    tree = source.parsed(path)
    return tree is not None and _chooses(tree)


def _chooses(tree: ast.AST) -> bool:
    """Return True if a list of pairs with a rate that is set goes to a function that chooses.

    >>> code = "group['lr'] = rate; found.append((rate, loss)); print(min(found, key=second))"
    >>> _chooses(ast.parse(code)), _chooses(ast.parse(code.replace("min", "len")))
    (True, False)
    """
    rates, kept, chosen = set(), [], set()
    for node in source.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value="lr"))], value=ast.Name(id=name)):
                rates.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[given]):
                kept.append((name, {one.id for one in ast.walk(given) if isinstance(one, ast.Name)}))
            case ast.Call(func=ast.Name(id="min" | "max" | "sorted"), args=args):
                chosen |= {one.id for given in args for one in ast.walk(given) if isinstance(one, ast.Name)}
    return any(name in chosen and names & rates for name, names in kept)
