"""A backward pass that needs values which were overwritten since: by an optimizer's step, or in place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from truestep.events import Site
from truestep.findings import Mark, PostMortem
from truestep.postmortem import _code, _values
from truestep.postmortem._code import File
from truestep.postmortem._crash import MISSING, Crash, Frame

MESSAGE = (
    r"modified by an inplace operation: \[[\w.]+ \[(?P<shape>[\d, ]*)\]\](?:, which is output \d+ of (?P<op>\w+),)? "
    r"is at version (?P<got>\d+); expected version (?P<want>\d+) instead"
)
SLUG = "modified-in-place"
_SAVE_THEIR_OUTPUT = {"sigmoid", "tanh", "exp", "softmax", "logsoftmax", "sqrt", "rsqrt", "relu", "leakyrelu", "elu"}
_NAMED_ALIKE = {
    "gelu",
    "silu",
    "softplus",
    "sin",
    "cos",
    "log",
    "clamp",
    "cat",
    "stack",
    "bmm",
    "matmul",
    "mul",
    "addmm",
}
_VIEWS = {"AsStrided", "T", "Transpose", "Permute", "View", "ReshapeAlias", "UnsafeView", "Expand", "Select", "Slice"}
_ARITHMETIC = {"add", "sub", "mul", "div", "mm", "bmm", "pow", "neg"}
_NOT_WRITES = {"requires_grad_", "detach_", "retain_grad_", "share_memory_", "rename_", "__"}


@dataclass(frozen=True, slots=True)
class Write:
    """A line that overwrites a tensor."""

    site: Site
    node: ast.AST
    name: str
    """What is overwritten, as the code calls it; empty where the code does not say."""
    rewritten: str
    """The same without writing in place."""
    made_by: ast.expr | None = None
    """What it was set to before, where the code says it."""


def explain(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    sizes = tuple(int(size) for size in match["shape"].split(",")) if match["shape"].strip() else ()
    got, want = int(match["got"]), int(match["want"])
    versions = ("expected", f"version {want}, as the forward pass saved it; got version {got}")
    op = match["op"] or ""
    died = None if _readable(op) else _stepped(crash, sizes, got, versions)
    return died or _written(crash, sizes, (want, got), versions, op)


# --- by an optimizer -------------------------------------------------------------------------------------------------


def _stepped(crash: Crash, sizes: tuple[int, ...], got: int, versions: tuple[str, str]) -> PostMortem | None:
    """Find the step that changed weights between the forward pass and this backward pass."""
    weights = [entry for entry in _weights(crash) if _fits(entry[1], sizes, got)]
    for frame in crash.frames[-1:]:
        if frame.node is None or frame.file is None or frame.scope is None:
            continue
        steps: dict[ast.Call, tuple[str, list[tuple[str, Any]]]] = {}
        for call, optimizer in _steps(frame):
            theirs = {id(p) for group in optimizer.param_groups for p in group["params"]}
            hit = [(name, weight) for name, weight in weights if id(weight) in theirs]
            if hit and _between(frame, call, {id(weight) for _, weight in hit}) is not None:
                steps[call] = (ast.unparse(call.func), hit)
        if len(steps) == 1:
            ((call, (step, hit)),) = steps.items()
            forward = _between(frame, call, {id(weight) for _, weight in hit})
            if forward is not None:
                return _by_step(crash, frame, call, step, hit, forward, versions)
        if steps:
            return None
    return None


def _by_step(
    crash: Crash,
    frame: Frame,
    call: ast.AST,
    step: str,
    hit: list[tuple[str, Any]],
    forward: ast.Call,
    versions: tuple[str, str],
) -> PostMortem:
    name, weight = hit[0]
    what = f"`{name}` {_values.shape(weight.shape)}"
    if len(hit) > 1:
        what = f"`{name}` or another of {len(hit)} weights of shape {_values.shape(weight.shape)}"
    called = ast.unparse(forward) if len(ast.unparse(forward)) <= 40 else f"{ast.unparse(forward.func)}(...)"
    return PostMortem(
        slug=SLUG,
        error="",
        message=f"`{step}()` changed weights that this backward pass still needs",
        primary=crash.fails("fails here: the weights are no longer those of the forward pass"),
        related=(
            Mark(frame.place(forward), "the forward pass used the weights as they were"),
            Mark(frame.place(call), f"changed {what}" if len(hit) == 1 else f"changed them, among them {what}"),
        ),
        facts=(versions,),
        help=f"call `{called}` again after `{step}()`, and compute this loss from that",
    )


def _weights(crash: Crash) -> Iterator[tuple[str, Any]]:
    seen: set[int] = set()
    for root, module, _ in crash.modules():
        for path, one in _values.tree(module, "" if root == "self" else root):
            crash.check()
            for key, weight in _values.parameters(one).items():
                if _values.is_tensor(weight) and id(weight) not in seen:
                    seen.add(id(weight))
                    yield (f"{path}.{key}" if path else key), weight


def _fits(weight: Any, sizes: tuple[int, ...], got: int) -> bool:
    """Whether the message speaks of a tensor: saved ones may be transposed, which shares the version."""
    return weight._version == got and sorted(weight.shape) == sorted(sizes)


def _steps(frame: Frame) -> Iterator[tuple[ast.Call, Any]]:
    """Yield the calls in a frame's code that step an optimizer, by its own method or by a scaler's."""
    if frame.scope is None:
        return
    for call in _code.calls(frame.scope):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
            continue
        for node in (call.func.value, *call.args[:1]):
            value = frame.value(node)
            if value is not MISSING and _values.is_optimizer(value):
                yield call, value


def _between(frame: Frame, step: ast.AST, weights: set[int]) -> ast.Call | None:
    """Return the call of a model with these weights that ran before the step, which ran before what failed."""
    file, scope, failing = frame.file, frame.scope, frame.node
    if file is None or scope is None or failing is None:
        return None
    around = [failing, *file.above(failing)]
    loops = file.loops(failing)
    begun = failing.func.value if isinstance(failing, ast.Call) and isinstance(failing.func, ast.Attribute) else failing
    made = [call for node in file.sources(scope, begun) for call in _calls_in(node) if _uses(frame, call, weights)]
    if not made:
        everywhere = [call for call in _code.calls(scope) if _uses(frame, call, weights)]
        made = everywhere if len(everywhere) == 1 and file.always(everywhere[0], around) else []
    earlier = [call for call in made if _code.end(call) <= _code.start(failing)]
    if not earlier:
        return None
    forward = max(
        (call for call in earlier if _code.end(call) <= _code.start(step)), default=earlier[-1], key=_code.start
    )
    if _code.end(forward) <= _code.start(step) and _code.end(step) <= _code.start(failing):
        return forward if file.always(step, around) else None
    # It ran in an earlier round of a loop that the forward pass is not in.
    outside = [loop for loop in loops if forward not in set(ast.walk(loop))]
    return forward if any(step in set(ast.walk(loop)) for loop in outside) else None


def _calls_in(node: ast.AST) -> Iterator[ast.Call]:
    yield from (one for one in ast.walk(node) if isinstance(one, ast.Call))


def _uses(frame: Frame, call: ast.Call, weights: set[int]) -> bool:
    value = frame.value(call.func)
    if value is MISSING or not _values.is_module(value):
        return False
    return any(id(p) in weights for _, one in _values.tree(value) for p in _values.parameters(one).values())


# --- by a line of the program ----------------------------------------------------------------------------------------


def _written(
    crash: Crash, sizes: tuple[int, ...], numbers: tuple[int, int], versions: tuple[str, str], op: str
) -> PostMortem | None:
    """Find the one line that wrote into a tensor of this shape and version."""
    want, got = numbers
    live = [write for frame in crash.frames for write in _writes_in(frame, sizes, got)]
    found = live or _made_by(crash, op, [*_writes_behind(crash), *_modules_in_place(crash)])
    sites = list(dict.fromkeys(write.site for write in found))
    if not sites or (len(sites) > 1 and not _is_one_tensor(found, None if live else got - want)):
        return None
    write = found[0]
    name = f"`{write.name}`" if write.name else "its input"
    readable = _readable(op)
    made = f"{name}, an output of {readable}," if readable and write.name else name
    if not write.name:
        made = f"an output of {readable}" if readable else "a tensor"
    return PostMortem(
        slug=SLUG,
        error="",
        message=f"{made} was overwritten after the forward pass had saved it",
        primary=crash.fails("fails here"),
        related=tuple(Mark(site, f"writes into {name} {_values.shape(sizes)} in place") for site in sites[:4]),
        facts=(versions,),
        help=write.rewritten if op or "." not in write.name else "write into it after the backward pass",
    )


def _is_one_tensor(writes: list[Write], bumps: int | None) -> bool:
    """Whether several lines write into one variable; where it is gone, they must account for its version."""
    if len({(write.name, write.site.path, write.site.function) for write in writes}) > 1:
        return False
    # ``x[i] += 1`` writes twice: into the part, and the part into the whole.
    twice = [write for write in writes if isinstance(write.node, ast.AugAssign) and _subscripted(write.node)]
    return bumps is None or bumps == len(writes) + len(twice)


def _readable(op: str) -> str:
    name = re.sub(r"Backward\d*$", "", op)
    return "" if name in _VIEWS else name.lower()


def _writes_in(frame: Frame, sizes: tuple[int, ...], got: int) -> Iterator[Write]:
    """Yield the lines of a frame that write in place into a tensor it still holds, where shape and version agree."""
    if frame.scope is None or frame.file is None:
        return
    for target, node in _written_targets(frame.scope):
        value = frame.value(target)
        if value is MISSING or not _values.is_tensor(value) or value._version != got or value.is_leaf:
            continue
        if tuple(value.shape) == sizes or (isinstance(node, ast.Assign | ast.AugAssign) and _subscripted(node)):
            yield Write(frame.place(node), node, ast.unparse(target), _instead(node, target))


def _written_targets(scope: ast.AST) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Yield what is written in place in a scope, with the statement or call that does."""
    for node in _code.walk(scope):
        match node:
            case ast.AugAssign(target=ast.Name() | ast.Attribute() as target):
                yield target, node
            case ast.AugAssign(target=ast.Subscript(value=target)) | ast.Assign(targets=[ast.Subscript(value=target)]):
                yield target, node
            case ast.Call(func=ast.Attribute(value=target, attr=name)) if _writes(name):
                yield target, node
            case ast.Call(args=[target, *_], keywords=keywords) if any(
                word.arg == "inplace" and isinstance(word.value, ast.Constant) and word.value.value is True
                for word in keywords
            ):
                yield target, node
            case _:
                pass


def _writes(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__") and name not in _NOT_WRITES


def _subscripted(node: ast.Assign | ast.AugAssign) -> bool:
    return isinstance(node.targets[0] if isinstance(node, ast.Assign) else node.target, ast.Subscript)


def _writes_behind(crash: Crash) -> Iterator[Write]:
    """Yield the lines that write in place in functions which have returned: those of the models' forward."""
    for file, code in _forwards(crash):
        scope = file.scope(code)
        if scope is None:
            continue
        for target, node in _written_targets(scope):
            if isinstance(target, ast.Name | ast.Attribute) and not _is_number(scope, target, node):
                name = ast.unparse(target)
                before = [s.value for s in file.settings(scope, name) if _code.end(s.statement) <= _code.start(node)]
                made = before[-1] if before else None
                yield Write(file.site(node, code.co_name), node, name, _instead(node, target), made)


def _is_number(scope: ast.AST, target: ast.expr, node: ast.AST) -> bool:
    """Whether what is added to is a counter, a list or a dictionary as far as the code shows."""
    key = ast.unparse(target)
    values = [s.value for s in _code.all_settings(scope) if s.key == key and s.value is not None]
    plain = (ast.Constant, ast.List, ast.Dict, ast.ListComp, ast.DictComp, ast.Tuple, ast.JoinedStr)
    return any(isinstance(value, plain) for value in values)


def _forwards(crash: Crash) -> Iterator[tuple[File, CodeType]]:
    """Yield the user's code of the forward methods of all models at hand, and of the functions their frames name."""
    seen: set[CodeType] = set()
    functions: list[Any] = []
    for frame in crash.frames:
        functions += [value for value in frame.names.values() if type(value) is FunctionType]
    for _, root, _ in crash.modules():
        for _, module in _values.tree(root):
            crash.check()
            functions += [value for value in vars(type(module)).values() if type(value) is FunctionType]
    for function in functions:
        code = function.__code__
        if code not in seen and crash.scene.sites.kind(code) == 0 and not code.co_name.startswith("__"):
            seen.add(code)
            file = crash.file(code.co_filename)
            if file is not None:
                yield file, code


def _modules_in_place(crash: Crash) -> Iterator[Write]:
    """Yield the lines that made modules which write in place, such as ``nn.ReLU(inplace=True)``."""
    for _, root, _ in crash.modules():
        for _, module in _values.tree(root):
            if _values.attributes(module).get("inplace") is not True:
                continue
            name = crash.name_of(module)
            site = crash.built(module, name)
            if site is not None:
                kind = type(module).__name__
                yield Write(site, ast.Pass(), "", f"write `nn.{kind}()` without `inplace=True`")


def _made_by(crash: Crash, op: str, writes: list[Write]) -> list[Write]:
    """Leave out the lines that do not write into what the operation of the message's name has made."""
    crash.check()
    name = _readable(op).replace("_", "")
    sites = {write.site: write for write in writes if _agrees(name, write)}
    return list(sites.values())


def _agrees(op: str, write: Write) -> bool:
    if not write.name:  # such modules follow layers whose output nobody saves, but for these operations
        return op in _SAVE_THEIR_OUTPUT
    match write.made_by:
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)):
            called = called.lower().replace("_", "")
            known = {*_SAVE_THEIR_OUTPUT, *_NAMED_ALIKE}
            return op == called if called in known else op not in known or _is_own(write)
        case ast.BinOp():
            return op in _ARITHMETIC
        case _:
            return True


def _is_own(write: Write) -> bool:
    """Whether what was written into came from a module or function of the program, whose operations are not told."""
    made = write.made_by
    return isinstance(made, ast.Call) and not ast.unparse(made.func).startswith(("torch.", "F."))


def _instead(node: ast.AST, target: ast.expr) -> str:
    name = ast.unparse(target)
    if isinstance(node, ast.AugAssign) and not _subscripted(node):
        symbol = ast.unparse(ast.BinOp(ast.Name("a"), node.op, ast.Name("b"))).split()[1]
        value = ast.unparse(node.value)
        value = f"({value})" if isinstance(node.value, ast.BinOp | ast.IfExp) else value
        return f"write `{name} = {name} {symbol} {value}`, which makes a new tensor"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _writes(node.func.attr):
        given = ", ".join(ast.unparse(one) for one in node.args)
        return f"write `{name} = {name}.{node.func.attr.removesuffix('_')}({given})`, which makes a new tensor"
    if isinstance(node, ast.Call):
        return "leave `inplace=True` out"
    return f"write into a copy: `{name} = {name}.clone()` before this line"
