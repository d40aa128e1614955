"""Data and files of several ranks, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.syntax import Act, Call, Context, Guard, Kind, Program, Scope, Suspicion, Training, dotted, names_in

_GROUP = ("torch.distributed.init_process_group", "torch.distributed.distributed_c10d.init_process_group")
_WRAPPER = "torch.nn.parallel.DistributedDataParallel"
_STARTERS = ("spawn", "start_processes", "Process")
_CHOSEN = re.compile(
    r"rank|main|master|leader|primary|chief|coordinator|world|local|proc|node|write|save", re.IGNORECASE
)
"""Words in a condition that may choose one rank."""
_DIVIDED = re.compile(r"sampler|shard|split_dataset|num_replicas|\.prepare|\bpartition", re.IGNORECASE)
_WITHOUT_DATA = (*_GROUP, _WRAPPER, "torch.cuda.set_device", "torch.device", "print")
"""Calls with a rank among their arguments that have nothing to do with data."""


def saved_by_every_rank(program: Program) -> Iterator[Suspicion]:
    """Yield saves to one file, under no condition, in functions that every rank runs."""
    if not _of_ranks(program):
        return
    for call in program.named("torch.save"):
        target = call.argument(1, "f")
        if target is None or not _by_all(call.context, program) or not _by_all_callers(call.scope, program):
            continue
        if _own_file(target, call, program) or _chosen_elsewhere(call, program):
            continue
        yield Suspicion(
            call.node,
            f"every rank saves to the same file, `{ast.unparse(target)}`",
            "runs on every rank",
            "save on one rank: `if torch.distributed.get_rank() == 0:`",
            ((program.named(*_GROUP)[0].node, "starts the ranks"),),
        )


def ranks_see_same_data(program: Program) -> Iterator[Suspicion]:
    """Yield training loaders of a whole data set in a program of several ranks that divides no data."""
    if not _of_ranks(program) or _DIVIDED.search(program.text) or _reads_ranks(program):
        return
    for training in program.roles.trainings():
        node = None if training.loop is None else program.roles.over_loader(training.loop)
        if training.loop is None or not isinstance(node, ast.expr) or not training.of(Act.BACKWARD):
            continue
        where = Context(training.loop.scope, training.loop.parent, training.loop.guards)
        made = program.call_at.get(program.values.origin(node, where, training.loop.first)[0])
        if (
            made is None
            or made.name != "torch.utils.data.DataLoader"
            or made.unpacks
            or not _wrapped(training, program)
        ):
            continue
        data = made.argument(0, "dataset")
        if data is not None and program.kinds.is_a(data, Kind.DATASET, made.context, made.order, sure=True):
            yield Suspicion(
                made.node,
                "every rank trains on the whole data set: the ranks repeat the same samples",
                "reads all samples on each rank",
                "divide the samples: `sampler=DistributedSampler(...)`",
                ((program.named(*_GROUP)[0].node, "starts the ranks"),),
            )


def _of_ranks(program: Program) -> bool:
    """Return True if a file starts several ranks that train one model."""
    groups = program.named(*_GROUP)
    sizes = [program.values.constant(one.argument(3, "world_size"), one.context, one.order) for one in groups]
    return bool(groups) and 1 not in sizes and bool(program.named(_WRAPPER))


def _by_all(context: Context, program: Program) -> bool:
    """Return True if no condition or context manager around a line may choose one rank."""
    return not any(_chooses(guard) for guard in context.guards) and not context.withs


def _chosen_elsewhere(call: Call, program: Program) -> bool:
    """Return True if the other branch of a condition around a save has a save too, as of a run of one process."""
    branches = dict(call.context.guards)
    return any(
        branches.get(node, branch) != branch
        for other in program.named("torch.save")
        for node, branch in other.context.guards
    )


def _chooses(guard: Guard) -> bool:
    test = getattr(guard.node, "test", None)
    return not isinstance(test, ast.expr) or _CHOSEN.search(ast.unparse(test)) is not None or not _plain(test)


def _plain(test: ast.expr) -> bool:
    """Return True if a condition only compares numbers, as those of epochs and losses."""
    return not any(isinstance(node, ast.Call) for node in ast.walk(test))


def _by_all_callers(scope: Scope, program: Program, depth: int = 0) -> bool:
    """Return True if every rank runs a function: one that starts with the process, or is called by such a one."""
    if scope.kind == "module":
        return True
    if scope.kind != "function" or depth > 3:
        return False
    name = scope.name.rpartition(".")[2]
    if any(dotted(part) == name for call in program.method(*_STARTERS) for part in call.arguments()):
        return True
    calls = program.calls_of(scope)
    return bool(calls) and all(
        _started(call.context.guards)
        or (_by_all(call.context, program) and _by_all_callers(call.scope, program, depth + 1))
        for call in calls
    )


def _started(guards: tuple[Guard, ...]) -> bool:
    """Return True for the condition of a script: `if __name__ == "__main__":`."""
    return len(guards) == 1 and "__name__" in ast.unparse(getattr(guards[0].node, "test", guards[0].node))


def _own_file(target: ast.expr, call: Call, program: Program) -> bool:
    """Return True if the file may be another one on each rank, or is in memory."""
    waiting, seen = [target], 0
    while waiting and seen < 20:
        node, seen = waiting.pop(), seen + 1
        for name in names_in(node):
            if re.search(r"rank|gpu|device|pid|time|buffer|io\b|tmp|temp|uuid|worker|proc", name, re.IGNORECASE):
                return True
            made = program.values.bindings(name, call.scope)
            waiting += [one.value for one in made if one.value is not None and one.how == "="]
    return seen >= 20


def _reads_ranks(program: Program) -> bool:
    """Return True if a rank is read anywhere but in conditions, and in calls that concern no data."""
    allowed: set[ast.AST] = set()
    for call in program.calls:
        if call.name in _WITHOUT_DATA or call.method in ("to", "cuda", "info", "print", *_STARTERS):
            allowed.update(part for value in call.arguments() for part in ast.walk(value))
    for scope in program.scopes:
        if any("seed" in call.method and "rank" in ast.unparse(call.node) for call in scope.calls):
            return True
    tests = {
        part for node in ast.walk(program.tree) if isinstance(node, ast.If | ast.IfExp) for part in ast.walk(node.test)
    }
    for scope in program.scopes:
        for key, uses in scope.loads.items():
            if re.search(r"rank|world", key, re.IGNORECASE):
                if any(node not in allowed and node not in tests for _, node in uses):
                    return True
    return bool([call for call in program.method("get_rank", "get_world_size") if call.node not in allowed | tests])


def _wrapped(training: Training, program: Program) -> bool:
    """Return True if a training calls a model that the ranks share."""
    for one in training.of(Act.FORWARD):
        if one.call is not None:
            made = program.values.origin(one.call.node.func, one.call.context, one.call.order)[0]
            call = program.call_at.get(made)
            if call is not None and call.name == _WRAPPER:
                return True
    return False
