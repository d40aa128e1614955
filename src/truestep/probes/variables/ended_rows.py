"""Targets of Bellman's form, reward plus discounted value, at the rows of a batch that ended their episode.

The state decides: a value that is masked is zero there. Where it is not, the rows must show that the end is one of the
environment, which its states cause, and not a limit of time, after which a value is right.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, NamedTuple

from truestep.events import EndsRead, Site
from truestep.probes.context.local_variables import own_dict, variables
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, saved
from truestep.probes.forward.losses.followed_targets import ERRORS, kind_of
from truestep.probes.variables.arrays import as_tensor, shape_of
from truestep.probes.variables.origins import place_of, scope_of

_ENDED = re.compile(r"(^|_)(is)?_?(dones?|terminals?|terminated|terminations?|terms?|ended|overs?|finished|dead)($|_)")
_SHORT = frozenset({"d", "ds", "bd", "b_d", "d_", "db", "d_b", "d_batch", "batch_d", "d_t", "dt"})
_GOES_ON = re.compile(
    r"(^|_)(not?|non)_?(dones?|terminals?|terminated|over|final|end)($|_)|^(b_|batch_)?masks?(_batch)?$"
)
_WORDS = re.compile(r"\w+")
_LIMIT = re.compile(r"trunc|time|limit|life|live|horizon")
_SHAPES = frozenset({
    "squeeze", "unsqueeze", "view", "reshape", "flatten", "float", "double", "to", "detach", "clone", "contiguous",
})  # fmt: skip
_DISCOUNTS = (0.5, 1.0)
_LEAST_ROWS, _MOST_ROWS = 8, 1 << 14
_LEAST_ENDED = 6
_MOST_KEPT = 2048
_MOST_TENSORS, _MOST_COLUMNS = 8, 64
_LARGEST = 1 << 22
_ROUNDING = 1e-6
_LEAST_SHARE = 0.5
"""Least share of ended rows with an ended row as the nearest one."""
_FEW = 32
"""Most values of a column of a state that is counted in cells."""
_MOST_DEEP = 32
_MOST_LINES = 16


class _Target(NamedTuple):
    """An expression of the form of a target."""

    name: str
    """The variable that it is stored in; empty if it is an argument."""
    reward: ast.expr
    factors: tuple[ast.expr, ...]
    node: ast.expr


class _Flags(NamedTuple):
    """The variable with the flags of a batch, and the rows that ended their episode."""

    name: str
    ended: Any


@dataclass(slots=True)
class _Kept:
    """Rows of a line: the first ones of its batches."""

    rows: list[Any] = field(default_factory=list)
    ended: list[Any] = field(default_factory=list)
    names: tuple[str, ...] = ()
    """The variables with the other columns."""
    count: int = 0
    by_state: bool = False


@dataclass(slots=True)
class _Read:
    """Tensors that operations below a loss have saved."""

    targets: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)

    @property
    def target(self) -> Any:
        """The only target; None without one, and with several."""
        return self.targets[0] if len(self.targets) == 1 else None

    def counts(self, ended: Any) -> bool:
        """Return True if the rows that ended have a weight in the loss."""
        weights = [one.detach().reshape(-1) for one in self.weights if one.numel() == len(ended)]
        return not any(bool((one[ended] == 0).any()) for one in weights)


class EndedRows:
    """Emits `EndsRead`."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._kept: dict[Site | None, _Kept] = {}
        self._with_losses: set[CodeType] = set()
        """Functions that call the error themselves: there it is read, and not at a backward pass."""
        self._masked: set[Site | None] = set()
        """Lines with a target without a value at ends."""

    def look(self, node: Any, frame: FrameType | None, site: Site | None) -> None:
        """Look at the targets in the variables of the frame that calls backward.

        Args:
            node: operation that made the loss.
            frame: the user's frame that called backward; None if a library did.
            site: the line of the call.
        """
        if frame is not None and frame.f_code not in self._with_losses and _targets(frame.f_code):
            self._look(_below(node), frame, site)

    def compared(self, target: Any, frame: FrameType | None, site: Site | None) -> None:
        """Look at those of the frame that calls a squared or absolute error, in a function without the backward pass.

        Args:
            target: the target of the error.
            frame: the user's frame that called the loss; None if a library did.
            site: the line of the call.
        """
        if frame is None or not _targets(frame.f_code):
            return
        if len(self._with_losses) < _MOST_LINES:
            self._with_losses.add(frame.f_code)
        if frame.f_code in self._with_losses:
            self._look(_Read([target]), frame, site)

    def _look(self, read: _Read, frame: FrameType, site: Site | None) -> None:
        if site in self._masked:
            return
        names, targets = _named(frame.f_globals | variables(frame)), _targets(frame.f_code)
        found: list[tuple[_Target, Any, Any, _Flags]] = []
        for one in targets:
            if not any(_is_discount(factor, names) for factor in one.factors):
                continue
            target, reward = names.get(one.name) if one.name else read.target, _value(one.reward, names)
            if target is None or reward is None or not self._is_column(target) or not self._is_column(reward):
                continue
            if reward.numel() != target.numel():
                continue
            with self._scene.sampling.timed(target):
                flags = self._carried(target, reward, names)
            if flags is None:  # a second target, of another reward, may leave the ends out on purpose
                self._masked.add(site)
                self._scene.tell(EndsRead, site=site, carried=False)
                return
            found += [(one, target, reward, flags)] * bool(flags.name)
        for one, target, reward, flags in found:
            with self._scene.sampling.timed(target):
                made = place_of(frame.f_code, one.node)
                counts = _is_used(one, target, read, frame.f_code) and read.counts(flags.ended)
                if counts and self._by_state(names, target, reward, flags.ended, made):
                    self._scene.tell(EndsRead, site=site, made=made, name=flags.name)
                    return

    def _is_column(self, value: Any) -> bool:
        return (
            type(value) is self._scene.torch.Tensor
            and value.is_cpu
            and has_values(value)
            and value.is_floating_point()
            and not value.requires_grad
            and _LEAST_ROWS <= value.numel() <= _MOST_ROWS
            and value.numel() == max(value.shape)
        )

    def _carried(self, target: Any, reward: Any, names: dict[str, Any]) -> _Flags | None:
        """Return the flags with a value in each row, without a name if there are none; None if an end has no value."""
        target, reward = target.detach().reshape(-1), reward.detach().reshape(-1)
        zero, found = (target - reward).abs() <= _ROUNDING * (1.0 + target.abs()), _Flags("", None)
        for one in self._flags(names, len(target)) if not bool(zero.all()) else ():
            if bool((zero & one.ended).any()):
                return None
            found = found if found.name or bool(zero.any()) else one
        return found

    def _flags(self, names: dict[str, Any], count: int) -> Iterator[_Flags]:
        """Yield the flags of the batch with at most half of the rows."""
        for name, value in names.items():
            word = _WORDS.findall(name)[-1].lower()
            goes_on = bool(_GOES_ON.search(word))
            if not goes_on and (not (_ENDED.search(word) or word in _SHORT) or _LIMIT.search(word)):
                continue
            flags = self._tensor(value, count)
            if flags is None or flags.numel() != count:
                continue
            flags = flags.reshape(-1)
            ended = (flags == 0) if goes_on else (flags == 1)
            if bool(((flags == 0) | (flags == 1)).all()) and 0 < 2 * int(ended.sum()) <= count:
                yield _Flags(name, ended)

    def _tensor(self, value: Any, count: int) -> Any:
        if type(value) in (tuple, list):
            plain = len(value) == count and all(type(one) in (bool, int, float) for one in value)
            return self._scene.torch.tensor([float(one) for one in value]) if plain else None
        if type(value) is self._scene.torch.Tensor and value.numel() != count:
            return None
        return as_tensor(self._scene, value)

    def _by_state(self, names: dict[str, Any], target: Any, reward: Any, ended: Any, made: Site) -> bool:
        """Keep the rows; return True once they show that the states cause the ends."""
        if made not in self._kept and len(self._kept) >= _MOST_LINES:
            return False
        kept = self._kept.setdefault(made, _Kept())
        if kept.by_state or kept.count >= _MOST_KEPT:
            return kept.by_state
        if not kept.rows:
            kept.names = self._columns(names, target, reward)
        rows = self._rows(names, kept.names, reward)
        if rows is None or (kept.rows and kept.rows[0].shape[1] != rows.shape[1]):
            return False
        kept.rows.append(rows[:_MOST_KEPT])
        kept.ended.append(ended[:_MOST_KEPT].clone())
        kept.count += len(rows)
        torch = self._scene.torch
        kept.by_state = _ends_by_state(torch, torch.cat(kept.rows), torch.cat(kept.ended))
        if kept.by_state:
            kept.rows, kept.ended = [], []
        return kept.by_state

    def _columns(self, names: dict[str, Any], target: Any, reward: Any) -> tuple[str, ...]:
        """Return the variables with the tables of the batch, and with numbers of few states or actions."""
        count, found = target.numel(), list[str]()
        for name, value in names.items():
            shape = shape_of(self._scene.torch, value)
            if not shape or shape[0] != count or value is target or value is reward or len(found) >= _MOST_TENSORS:
                continue
            table = as_tensor(self._scene, value) if getattr(value, "grad_fn", None) is None else None
            if table is None or not 0 < table.numel() <= _LARGEST:
                continue
            if len(shape) > 1 or (not table.is_floating_point() and 4 * len(table.unique()) <= count):
                found.append(name)
        return tuple(found)

    def _rows(self, names: dict[str, Any], chosen: tuple[str, ...], reward: Any) -> Any:
        """Return the rewards and the columns of the chosen variables; None if one has another form now."""
        count, found = reward.numel(), [reward.detach().reshape(-1, 1).float()]
        for name in chosen:
            table = as_tensor(self._scene, names.get(name))
            if table is None or not table.dim() or len(table) != count or table.numel() > _LARGEST:
                return None
            table = table.reshape(count, -1)
            found.append(table[:, :: -(-table.shape[1] // _MOST_COLUMNS)].float())
        return self._scene.torch.cat(found, 1)


def _ends_by_state(torch: Any, rows: Any, ended: Any) -> bool:
    """Return True if rows that ended an episode differ from all others, by more than the flags themselves."""
    if int(ended.sum()) < _LEAST_ENDED or bool(ended.all()):
        return False
    most, least = rows[ended].amax(0), rows[ended].amin(0)
    above, below = rows[~ended].amax(0), rows[~ended].amin(0)
    rows = rows[:, ~((most == least) & (above == below))]  # constants, and the flags
    if not rows.shape[1] or not bool(rows.isfinite().all()):
        return False
    both = torch.cat([rows, ended[:, None].float()], 1).unique(dim=0)
    cells, flags = both[:, :-1], both[:, -1] > 0
    alone = cells.unique(dim=0, return_inverse=True, return_counts=True)
    mixed = alone[2][alone[1]] > 1
    if bool((mixed & flags).any()):  # the same transition has ended and has not
        return False
    if 3 * len(cells) <= len(rows) and all(len(column.unique()) <= _FEW for column in cells.T):
        return True
    if int(flags.sum()) < _LEAST_ENDED:
        return False
    one, two = cells[flags], cells[~flags]
    for inner, outer in ((one, two), (two, one)):
        if bool(((outer > inner.amax(0)) | (outer < inner.amin(0))).all(0).any()):
            return True
    cells = (cells - cells.mean(0)) / cells.std(0).clamp(min=1e-6)
    distances = torch.cdist(cells[flags], cells)
    distances[torch.arange(len(distances)), flags.nonzero().flatten()] = float("inf")
    share = float(flags[distances.argmin(1)].float().mean())
    return share >= _LEAST_SHARE + float(flags.float().mean()) / 2


@functools.lru_cache(maxsize=64)
def _targets(code: CodeType) -> tuple[_Target, ...]:
    """Return the sums of a reward and a product in a function or file that are stored, or given to a call."""
    found: list[_Target] = []
    for node in scope_of(code):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                found += _sums(_bare(value), name)
            case ast.Call(args=[_, second, *_]):
                found += _sums(_bare(second), "")
    return tuple(found)


def _sums(node: ast.expr, name: str) -> Iterator[_Target]:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return
    for reward, product in ((node.left, node.right), (node.right, node.left)):
        factors = tuple(_factors(product))
        if len(factors) > 1 and isinstance(_bare(reward), ast.Name | ast.Attribute | ast.Subscript):
            yield _Target(name, _bare(reward), factors, node)


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from _factors(node.left)
        yield from _factors(node.right)
    else:
        yield node


def _bare(node: ast.expr) -> ast.expr:
    """Return an expression without the methods and the indices that change its shape or type only."""
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in _SHAPES:
                node = inner
            case ast.Subscript(value=inner, slice=ast.Tuple(elts=parts)) if all(map(_is_whole, parts)):
                node = inner
            case _:
                return node


def _is_whole(part: ast.expr) -> bool:
    return ast.unparse(part) in (":", "None", "...")


def _is_discount(node: ast.expr, names: dict[str, Any]) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        node = node.left
    value = node.value if isinstance(node, ast.Constant) else _value(node, names)
    return type(value) is float and _DISCOUNTS[0] <= value < _DISCOUNTS[1]


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    """Return the value of a name, an attribute or an item that is known by its name; None for others."""
    written = ast.unparse(node)
    if written in names:
        return names[written]
    match node:
        case ast.Attribute(value=ast.expr() as held, attr=attr):
            owner = _value(held, names)
            found = None if owner is None else (own_dict(owner) or {}).get(attr)
            return found if found is not None or not isinstance(owner, type) else owner.__dict__.get(attr)
        case ast.Subscript(value=ast.expr() as held, slice=ast.Constant(value=key)):
            owner = _value(held, names)
            return owner.get(key) if type(owner) is dict else None
    return None


def _named(names: dict[str, Any]) -> dict[str, Any]:
    """Return variables by name, with the items of dicts as "batch['done']" and of named tuples as "batch.done"."""
    found = dict(names)
    for name, value in names.items():
        kind = type(value)
        if kind is dict and 0 < len(value) <= _MOST_DEEP:
            found |= {f"{name}[{key!r}]": one for key, one in value.items() if type(key) is str}
        elif issubclass(kind, tuple) and kind is not tuple and hasattr(kind, "_fields"):
            found |= {f"{name}.{key}": one for key, one in zip(kind._fields, value, strict=False)}
    return found


def _below(node: Any) -> _Read:
    """Return the targets of the errors of a loss, and the weights of their products."""
    read, queue, seen = _Read(), [node], 0
    while queue and seen < _MOST_DEEP:
        current, seen = queue.pop(), seen + 1
        if current is None:
            continue
        kind = kind_of(current)
        if kind in ERRORS:
            found = [one for one in (saved(current, "target"), saved(current, "self")) if one is not None]
            read.targets += [one for one in found if not one.requires_grad]
            continue
        if kind == "Mul":
            read.weights += [
                one for one in (saved(current, "self"), saved(current, "other")) if one is not None and one.is_cpu
            ]
        queue += [following for following, _ in current.next_functions]
    return read


def _is_used(one: _Target, target: Any, read: _Read, code: CodeType) -> bool:
    """Return True if the loss compares with these values, and not with others that are made of them."""
    if read.targets:
        values = target.detach().reshape(-1)
        found = [other.detach().reshape(-1) for other in read.targets if other.numel() == values.numel()]
        return any(bool((other == values).all()) for other in found)
    return bool(one.name) and _is_only_subtracted(code, one.name)


def _is_only_subtracted(code: CodeType, name: str) -> bool:
    """Return True if a function or file reads a variable as a side of differences only."""
    nodes = scope_of(code)
    sides = {
        id(_bare(side))
        for node in nodes
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
        for side in (node.left, node.right)
    }
    reads = [
        node for node in nodes if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]
    return bool(reads) and all(id(node) in sides for node in reads)
