"""Point a finding at the line where the statement of its remedy belongs, by the syntax of the file.

The rules know the calls that ran; only the syntax knows the loops around them. A place that is not certain is left out.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
import traceback
from collections.abc import Callable
from dataclasses import replace

from truestep.events import Site
from truestep.findings import Finding, Mark
from truestep.syntax import Act, Call, Context, Loop, Program, Training, dotted, names_in

_LARGEST = 1_000_000
"""Characters of the largest file that is read."""
_STATEMENT = re.compile(r"`([\w.\[\]'\"]+\([^`]*\))`")
_LENGTHS = ("T_max", "total_iters", "epochs")
"""Arguments of schedules that are numbers of their steps."""
Place = tuple[ast.AST, str]
"""A statement and the label of its line."""


def placed(finding: Finding) -> Finding:
    """Return the finding with the line where the remedy belongs, if its file shows one that no other mark has."""
    site, find = finding.primary.site, _PLACES.get(finding.rule)
    if site is None or find is None:
        return finding
    try:
        text = "".join(linecache.getlines(site.path))
        program = _program(text) if 0 < len(text) <= _LARGEST else None
        call = None if program is None else _call(program, site)
        found = None if program is None or call is None else find(program, call, finding)
    except Exception:  # the report never ends with an error of this file
        if os.environ.get("TRUESTEP_DEBUG"):
            traceback.print_exc()
        return finding
    if found is None or call is None:
        return finding
    place = _site(found[0], site.path, call.scope.name)
    marked = [mark.site for mark in (finding.primary, *finding.related) if mark.site is not None]
    if any(place.path == one.path and place.line == one.line for one in marked):
        return finding
    return replace(finding, related=(*finding.related, Mark(place, found[1], of_remedy=True)))


@functools.lru_cache(maxsize=4)
def _program(text: str) -> Program | None:
    try:
        return Program.from_text(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _call(program: Program, site: Site) -> Call | None:
    """Return the call at a place, which must be the very same expression."""
    place = (site.line, site.column, site.end_line, site.end_column)
    for call in program.calls:
        node = call.node
        if (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == place:
            return None if call.context.deferred or call.scope.kind not in ("module", "function") else call
    return None


def _site(node: ast.AST, path: str, function: str) -> Site:
    """Return the place of a statement; of one with a body, that of its head."""
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    end: ast.AST = node
    if isinstance(node, ast.For | ast.AsyncFor):
        end = node.iter
    elif isinstance(node, ast.While):
        end = node.test
    elif isinstance(node, ast.With | ast.AsyncWith):
        end = node.items[-1].optional_vars or node.items[-1].context_expr
    return Site(path, line, column, getattr(end, "end_lineno", line), getattr(end, "end_col_offset", -1), function)


def _statement(finding: Finding) -> str:
    """Return the call that the help names first; "" without one."""
    found = _STATEMENT.search(finding.help)
    return found[1] if found is not None else ""


def _training(program: Program, call: Call) -> Training | None:
    """Return the training loop that has a call in its own lines."""
    for training in program.roles.trainings():
        if training.loop is not None and call.loop is training.loop and call.scope is training.scope:
            return training
    return None


def _train_mode(program: Program, call: Call, finding: Finding) -> Place | None:
    """Return the training loop, or the statement that calls the model if the evaluation may be inside the loop."""
    training, statement = _training(program, call), _statement(finding)
    if training is None or training.loop is None or not statement.endswith(".train()"):
        return None
    loop, head = training.loop, training.loop.node
    inside = any(one.act in (Act.EVAL, Act.UNKNOWN) for one in training.operations)
    outside = loop.parent is not None and not inside
    for mark in finding.related:
        if mark.site is not None and mark.site.path == (finding.primary.site.path if finding.primary.site else ""):
            outside = outside and not head.lineno <= mark.site.line <= (head.end_lineno or head.lineno)
            outside = outside and mark.site.function.rpartition(".")[2] == call.scope.name.rpartition(".")[2]
        elif mark.site is not None:
            outside = False
    if outside:
        return head, f"`{statement}` belongs before this loop"
    return call.statement, f"`{statement}` belongs before this line"


def _evaluation(program: Program, call: Call) -> Loop | None:
    """Return the largest loop around a call that takes no step and runs no backward pass."""
    found = None
    for loop in reversed(call.loop.chain() if call.loop is not None else ()):
        acts = {one.act for one in program.flow.of_loop(loop)}
        if acts & {Act.BACKWARD, Act.STEP, Act.UNKNOWN} or isinstance(loop.node, ast.While):
            return found
        found = loop
    return found


def _eval_mode(program: Program, call: Call, finding: Finding) -> Place | None:
    """Return the loop of the evaluation."""
    statement = _statement(finding)
    if not statement.endswith(".eval()"):
        return None
    loop = _evaluation(program, call)
    if loop is None or "before the evaluation" not in finding.help:
        return None
    return loop.node, f"`{statement}` belongs before this loop"


def _no_grad(program: Program, call: Call, finding: Finding) -> Place | None:
    loop = _evaluation(program, call)
    return None if loop is None else (loop.node, "this loop belongs in `with torch.no_grad():`")


def _last_window(program: Program, call: Call, finding: Finding) -> Place | None:
    training = _training(program, call)
    if (
        training is None
        or training.loop is None
        or call.receiver is None
        or not program.roles.over_batches(training.loop)
    ):
        return None
    return training.loop.node, f"`{ast.unparse(call.node)}` belongs after this loop too, for the remaining batches"


def _after_step(program: Program, scheduler: Call, finding: Finding) -> Place | None:
    """Return the only step of the optimizer of a schedule, for a schedule that counts steps."""
    if "after every" not in finding.help:
        return None
    found = [
        (one, step) for one in program.roles.trainings() for step in one.steps if _holds(program, scheduler, step.node)
    ]
    if len(found) != 1:
        return None
    training, step = found[0]
    call = step.operation.call
    if call is None or step.operation.via:
        return None
    updates = [one.call for one in training.direct(Act.UPDATE) if one.call is not None and one.call.order > call.order]
    if step.operation.scaled and not updates:
        return None
    return (
        updates[-1] if step.operation.scaled else call
    ).statement, f"`{_statement(finding)}` belongs after this line"


def _holds(program: Program, scheduler: Call, step: ast.AST) -> bool:
    """Return True if the optimizer of a schedule takes a step, by the call or the name of the optimizer."""
    call, given = program.call_at.get(step), scheduler.argument(0, "optimizer")
    if call is None or given is None:
        return False
    node = call.node.args[0] if call.node.args else call.receiver
    if node is None:
        return False
    values = program.values
    return values.identity(node, call.context, call.order) == values.identity(given, scheduler.context, scheduler.order)


def _never_stepped(program: Program, call: Call, finding: Finding) -> Place | None:
    """Return the loop over batches, for a schedule that is as long as the loop over epochs around it."""
    statement = _statement(finding)
    length = next((value for name in _LENGTHS if (value := call.argument(1, name)) is not None), None)
    loops = [
        training.loop
        for training in program.roles.trainings()
        if any(_holds(program, call, step.node) and not step.operation.via for step in training.steps)
    ]
    loop = loops[0] if len(loops) == 1 else None
    epochs = None if loop is None else loop.parent
    if length is None or loop is None or epochs is None or call.method in ("OneCycleLR", "CyclicLR", "LambdaLR"):
        return None
    times = epochs.node.iter if isinstance(epochs.node, ast.For) else None
    counted = isinstance(times, ast.Call) and dotted(times.func) in ("range", "trange") and len(times.args) == 1
    if not counted or not isinstance(times, ast.Call) or ast.unparse(times.args[0]) != ast.unparse(length):
        return None
    return loop.node, f"`{statement}` belongs after this loop"


def _before_optimizer(program: Program, call: Call, finding: Finding) -> Place | None:
    """Return the loop that contains the step of the optimizer, if the schedule is stepped in the loop around it."""
    if call.loop is None or not finding.related or finding.related[0].site is None:
        return None
    step = _call(program, finding.related[0].site)
    inner = None if step is None or step.scope is not call.scope else step.loop
    while inner is not None and inner.parent is not call.loop:
        inner = inner.parent
    return None if inner is None else (inner.node, f"`{ast.unparse(call.node)}` belongs after this loop")


def _per_epoch(program: Program, call: Call, finding: Finding) -> Place | None:
    if "once per epoch" not in finding.help or call.loop is None or not program.roles.over_batches(call.loop):
        return None
    return call.loop.node, f"`{ast.unparse(call.node)}` belongs after this loop"


def _once(program: Program, call: Call, finding: Finding) -> Place | None:
    """Return the largest loop around a call that assigns nothing which the call reads."""
    names = {name.partition(".")[0] for value in call.arguments() for name in names_in(value)}
    found = None
    for loop in reversed(call.loop.chain() if call.loop is not None else ()):
        bound = {
            key.partition(".")[0]
            for key, ones in call.scope.bindings.items()
            for one in ones
            if one.context.loop is not None and one.context.loop.within(loop)
        }
        if names & bound:
            break
        found = loop
    return None if found is None else (found.node, f"`{ast.unparse(call.statement)}` belongs before this loop")


def _epoch_of_sampler(program: Program, call: Call, finding: Finding) -> Place | None:
    """Return the loop over the batches of a loader, inside a loop that counts epochs."""
    sampler = call.argument(-1, "sampler")
    name = "" if sampler is None else dotted(sampler)
    found = []
    for loop in call.scope.loops:
        loader = program.roles.over_loader(loop)
        if not isinstance(loader, ast.expr) or loop.parent is None or not isinstance(loop.parent.node, ast.For):
            continue
        if program.values.origin(loader, Context(loop.scope, loop.parent, loop.guards), loop.first)[0] is call.node:
            found.append(loop)
    outer = found[0].parent if len(found) == 1 else None
    epoch = dotted(outer.node.target) if outer is not None and isinstance(outer.node, ast.For) else ""
    if not name or not epoch:
        return None
    return found[0].node, f"`{name}.set_epoch({epoch})` belongs before this loop"


_PLACES: dict[str, Callable[[Program, Call, Finding], Place | None]] = {
    "accumulation-window-dropped": _last_window,
    "eval-mode-missing": _eval_mode,
    "learning-rate-dead": _after_step,
    "no-grad-missing": _no_grad,
    "optimizer-rebuilt": _once,
    "sampler-epoch-not-set": _epoch_of_sampler,
    "scheduler-before-optimizer": _before_optimizer,
    "scheduler-never-stepped": _never_stepped,
    "scheduler-wrong-cadence": _per_epoch,
    "seed-in-training-loop": _once,
    "train-mode-not-restored": _train_mode,
}
