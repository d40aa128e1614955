"""Targets of Bellman's form, reward plus discounted value, at the rows of a batch that ended their episode.

The state decides: a value that is masked is zero there. Where it is not, the rows must show that the end is one of the
environment, which its states cause, and not a limit of time, after which a value is right.
"""

from __future__ import annotations

import ast
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
from truestep.probes.variables.bellman import Target, following_of, is_only_subtracted, targets_of
from truestep.probes.variables.origins import place_of

_ENDED = re.compile(r"(^|_)(is)?_?(dones?|terminals?|terminated|terminations?|terms?|ended|overs?|finished|dead)($|_)")
_SHORT = frozenset({"d", "ds", "bd", "b_d", "d_", "db", "d_b", "d_batch", "batch_d", "d_t", "dt"})
_GOES_ON = re.compile(
    r"(^|_)(not?|non)_?(dones?|terminals?|terminated|over|final|end)($|_)|^(b_|batch_)?masks?(_batch)?$"
)
_WORDS = re.compile(r"\w+")
_LIMIT = re.compile(r"trunc|time|limit|life|live|horizon")
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
_MOST_COMPARED = 64
_MOST_LINES = 16


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
    widths: tuple[int, ...] = ()
    """Numbers of their columns."""
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
        if frame is not None and frame.f_code not in self._with_losses and targets_of(frame.f_code):
            self._look(_below(node), frame, site)

    def compared(self, target: Any, frame: FrameType | None, site: Site | None) -> None:
        """Look at those of the frame that calls a squared or absolute error, in a function without the backward pass.

        Args:
            target: the target of the error.
            frame: the user's frame that called the loss; None if a library did.
            site: the line of the call.
        """
        if frame is None or not targets_of(frame.f_code):
            return
        if len(self._with_losses) < _MOST_LINES:
            self._with_losses.add(frame.f_code)
        if frame.f_code in self._with_losses:
            self._look(_Read([target]), frame, site)

    def _look(self, read: _Read, frame: FrameType, site: Site | None) -> None:
        if site in self._masked:
            return
        names, targets = _named(frame.f_globals | variables(frame)), targets_of(frame.f_code)
        found: list[tuple[Target, Any, Any, _Flags]] = []
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
                following = following_of(frame.f_code, one)
                if counts and self._by_state(names, target, reward, flags.ended, made, following):
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

    def _by_state(
        self, names: dict[str, Any], target: Any, reward: Any, ended: Any, made: Site, following: frozenset[str]
    ) -> bool:
        """Keep the rows; return True once they show that the states cause the ends, and that none goes on from there.

        Args:
            names: variables of the frame.
            target: the target.
            reward: its rewards.
            ended: the rows that ended their episode.
            made: place of the target.
            following: variables that the value of the next state is computed from.
        """
        if made not in self._kept and len(self._kept) >= _MOST_LINES:
            return False
        kept = self._kept.setdefault(made, _Kept())
        if kept.by_state or kept.count >= _MOST_KEPT:
            return kept.by_state
        if not kept.rows:
            kept.names = self._columns(names, target, reward)
        rows, widths = self._rows(names, kept.names, reward)
        kept.widths = kept.widths or widths
        if rows is None or (kept.rows and kept.rows[0].shape[1] != rows.shape[1]):
            return False
        kept.rows.append(rows[:_MOST_KEPT])
        kept.ended.append(ended[:_MOST_KEPT].clone())
        kept.count += len(rows)
        torch = self._scene.torch
        together, ends = torch.cat(kept.rows), torch.cat(kept.ended)
        kept.by_state = _ends_by_state(torch, together, ends)
        if kept.by_state and _go_on(kept, together, ends, following):
            kept.by_state, kept.count = False, _MOST_KEPT
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

    def _rows(self, names: dict[str, Any], chosen: tuple[str, ...], reward: Any) -> tuple[Any, tuple[int, ...]]:
        """Return the rewards beside the columns of the chosen variables, None if one has another form; their widths."""
        count, found = reward.numel(), [reward.detach().reshape(-1, 1).float()]
        for name in chosen:
            table = as_tensor(self._scene, names.get(name))
            if table is None or not table.dim() or len(table) != count or table.numel() > _LARGEST:
                return None, ()
            table = table.reshape(count, -1)
            found.append(table[:, :: -(-table.shape[1] // _MOST_COLUMNS)].float())
        return self._scene.torch.cat(found, 1), tuple(one.shape[1] for one in found[1:])


def _go_on(kept: _Kept, rows: Any, ended: Any, following: frozenset[str]) -> bool:
    """Return True if a state after an end is the state of another row, which is trained, as an absorbing one is.

    Args:
        kept: names and widths of the columns.
        rows: the rewards, and the columns of each variable.
        ended: the rows that ended their episode.
        following: variables with the next states.
    """
    ends = [sum(kept.widths[: at + 1]) + 1 for at in range(len(kept.widths))]
    tables = {name: rows[:, end - width : end] for name, width, end in zip(kept.names, kept.widths, ends, strict=False)}
    for name in following & tables.keys():
        after = tables[name][ended].unique(dim=0)[:_MOST_COMPARED]
        kinds = len(tables[name].unique(dim=0))
        for other in tables.keys() - following:
            before = tables[other]
            if before.shape != tables[name].shape or 2 * len(before.unique(dim=0)) < kinds:
                continue
            if bool((before == tables[name]).all()):  # a second name of the next states
                continue
            if bool((after[:, None] == before[None]).all(-1).any()):
                return True
    return False


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


def _is_used(one: Target, target: Any, read: _Read, code: CodeType) -> bool:
    """Return True if the loss compares with these values, and not with others that are made of them."""
    if read.targets:
        values = target.detach().reshape(-1)
        found = [other.detach().reshape(-1) for other in read.targets if other.numel() == values.numel()]
        return any(bool((other == values).all()) for other in found)
    return bool(one.name) and is_only_subtracted(code, one.name)
