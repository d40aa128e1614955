"""A backward pass that needs values which were overwritten since: by an optimizer step, or in place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from truestep.events import Site
from truestep.findings import Mark, PostMortem
from truestep.postmortem.evidence import frame_values, source_code
from truestep.postmortem.evidence.crash import MISSING, Crash, Frame
from truestep.postmortem.evidence.source_code import File
from truestep.postmortem.evidence.stale_weights import SLUG, stepped

MESSAGE = (
    r"modified by an inplace operation: \[[\w.]+ \[(?P<shape>[\d, ]*)\]\](?:, which is output \d+ of (?P<op>\w+),)? "
    r"is at version (?P<got>\d+); expected version (?P<want>\d+) instead"
)
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
class InPlaceWrite:
    """A line that overwrites a tensor."""

    site: Site
    node: ast.AST
    name: str
    """Name of the overwritten tensor in the code; "" if the code does not show it."""
    rewritten: str
    """Advice with the same operation out of place."""
    made_by: ast.expr | None = None
    """The expression it was set to before, if the code shows it."""


def explain(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    sizes = tuple(int(size) for size in match["shape"].split(",")) if match["shape"].strip() else ()
    got, want = int(match["got"]), int(match["want"])
    versions = ("expected", f"version {want}, as the forward pass saved it; got version {got}")
    op = match["op"] or ""
    died = None if _readable(op) else stepped(crash, sizes, got, versions)
    return died or _written(crash, sizes, (want, got), versions, op)


# --- by a line of the program ----------------------------------------------------------------------------------------


def _written(
    crash: Crash, sizes: tuple[int, ...], numbers: tuple[int, int], versions: tuple[str, str], op: str
) -> PostMortem | None:
    """Explain the error by the only line that wrote into a tensor of this shape and version."""
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
        related=tuple(Mark(site, f"writes into {name} {frame_values.shape(sizes)} in place") for site in sites[:4]),
        facts=(versions,),
        help=write.rewritten if op or "." not in write.name else "write into it after the backward pass",
    )


def _is_one_tensor(writes: list[InPlaceWrite], bumps: int | None) -> bool:
    """Return True if several lines write into one variable; if it is gone, they must account for its version."""
    if len({(write.name, write.site.path, write.site.function) for write in writes}) > 1:
        return False
    # ``x[i] += 1`` writes twice: into the part, and the part into the whole.
    twice = [write for write in writes if isinstance(write.node, ast.AugAssign) and _subscripted(write.node)]
    return bumps is None or bumps == len(writes) + len(twice)


def _readable(op: str) -> str:
    name = re.sub(r"Backward\d*$", "", op)
    return "" if name in _VIEWS else name.lower()


def _writes_in(frame: Frame, sizes: tuple[int, ...], got: int) -> Iterator[InPlaceWrite]:
    """Yield the lines of a frame that write in place into a tensor it still holds, if shape and version agree."""
    if frame.scope is None or frame.file is None:
        return
    for target, node in _written_targets(frame.scope):
        value = frame.value(target)
        if value is MISSING or not frame_values.is_tensor(value) or value._version != got or value.is_leaf:
            continue
        if tuple(value.shape) == sizes or (isinstance(node, ast.Assign | ast.AugAssign) and _subscripted(node)):
            yield InPlaceWrite(frame.place(node), node, ast.unparse(target), _instead(node, target))


def _written_targets(scope: ast.AST) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Yield the targets of writes in place in a scope, with the statement or call that writes."""
    for node in source_code.walk(scope):
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


def _writes(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__") and name not in _NOT_WRITES


def _subscripted(node: ast.Assign | ast.AugAssign) -> bool:
    return isinstance(node.targets[0] if isinstance(node, ast.Assign) else node.target, ast.Subscript)


def _writes_behind(crash: Crash) -> Iterator[InPlaceWrite]:
    """Yield the lines that write in place in functions that have returned: forward methods of the models."""
    for file, code in _forwards(crash):
        scope = file.scope(code)
        if scope is None:
            continue
        for target, node in _written_targets(scope):
            if isinstance(target, ast.Name | ast.Attribute) and not _is_number(scope, target, node):
                name = ast.unparse(target)
                before = [
                    s.value
                    for s in file.settings(scope, name)
                    if source_code.end(s.statement) <= source_code.start(node)
                ]
                made = before[-1] if before else None
                yield InPlaceWrite(file.site(node, code.co_name), node, name, _instead(node, target), made)


def _is_number(scope: ast.AST, target: ast.expr, node: ast.AST) -> bool:
    """Return True if the target is a number, a list or a dict, as far as the code shows."""
    key = ast.unparse(target)
    values = [s.value for s in source_code.all_settings(scope) if s.key == key and s.value is not None]
    plain = (ast.Constant, ast.List, ast.Dict, ast.ListComp, ast.DictComp, ast.Tuple, ast.JoinedStr)
    return any(isinstance(value, plain) for value in values)


def _forwards(crash: Crash) -> Iterator[tuple[File, CodeType]]:
    """Yield the user's code of the forward methods of all visible models, and of the functions that frames refer to."""
    seen: set[CodeType] = set()
    functions: list[Any] = []
    for frame in crash.frames:
        functions += [value for value in frame.names.values() if type(value) is FunctionType]
    for _, root, _ in crash.modules():
        for _, module in frame_values.tree(root):
            crash.check()
            functions += [value for value in vars(type(module)).values() if type(value) is FunctionType]
    for function in functions:
        code = function.__code__
        if code not in seen and crash.scene.sites.kind(code) == 0 and not code.co_name.startswith("__"):
            seen.add(code)
            file = crash.file(code.co_filename)
            if file is not None:
                yield file, code


def _modules_in_place(crash: Crash) -> Iterator[InPlaceWrite]:
    """Yield the lines that created modules which write in place, such as ``nn.ReLU(inplace=True)``."""
    for _, root, _ in crash.modules():
        for _, module in frame_values.tree(root):
            if frame_values.attributes(module).get("inplace") is not True:
                continue
            name = crash.name_of(module)
            site = crash.built(module, name)
            if site is not None:
                kind = type(module).__name__
                yield InPlaceWrite(site, ast.Pass(), "", f"write `nn.{kind}()` without `inplace=True`")


def _made_by(crash: Crash, op: str, writes: list[InPlaceWrite]) -> list[InPlaceWrite]:
    """Return the writes into outputs of the operation that the message names."""
    crash.check()
    name = _readable(op).replace("_", "")
    sites = {write.site: write for write in writes if _agrees(name, write)}
    return list(sites.values())


def _agrees(op: str, write: InPlaceWrite) -> bool:
    if not write.name:  # modules with inplace=True: only these operations save their output for backward
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


def _is_own(write: InPlaceWrite) -> bool:
    """Return True if the tensor came from a module or function of the program, with operations unknown here."""
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
        return "remove `inplace=True`"
    return f"write into a copy: `{name} = {name}.clone()` before this line"
