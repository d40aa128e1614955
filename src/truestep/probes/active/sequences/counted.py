"""Masks of losses that are written by hand: the positions that count, next to those of padding and of missing values.

Padding shows in the targets, in the tokens that a model reads, and in other arrays that the program holds: one value
at the ends of rows of different lengths. Missing values are one value among targets that all differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import Any

from truestep.events import CountedRead, Site
from truestep.probes.active.sequences.loss_terms import Term, Terms, Unknown
from truestep.probes.backward.followed_losses import line_of
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, key_of, saved
from truestep.probes.copies.call import called
from truestep.probes.copies.objects import Refused
from truestep.probes.forward.losses.label_values import nodes
from truestep.probes.variables.arrays import arrays, as_tensor, shape_of

_MOST_READS = 12
_READS_IN_STEP = 2
_MOST_OTHERS = 2
_MOST_LINES = 16
_MOST_RESULTS = 8
_MOST_GIVEN = 16
_MOST_ARRAYS = 48
_LARGEST = 1 << 20
_LEAST_POSITIONS = 8
_LEAST_ROWS = 4
_LEAST_LENGTHS = 3
_LEAST_LENGTH = 4
_LEAST_VALUES = 3
_LEAST_MOVED = 20
_LEAST_SHARE, _MOST_SHARE = 0.03, 0.97
_TOLERANCE = 2e-6
"""Rounding of a target that is computed from an error, relative to the largest one."""
_DISTINCT = 0.8
_MARKED, _HIDDEN = 0.7, 0.7
"""Least shares of the masked tokens with the mark, and with another token in the data: some are kept, or drawn."""
_MOST_COMPARED = 2000
_INSIDE = 0.05
"""Least share of the other targets on each side of the value of missing ones."""


@dataclass(slots=True)
class _Line:
    """Reads of the losses of a line."""

    reads: int = 0
    found: bool = False
    others: int = 0
    """Losses with a mask that is not wrong."""
    step: int = -1
    """Sampled step of the latest read, and the number of reads in it."""
    in_step: int = 0
    shared: bool = False
    """Whether it is not read again: other masks, or another line, take part in the training."""


class Counted:
    """Emits `CountedRead` for the first losses of each line.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are read.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._lines: dict[Site | None, _Line] = {}
        self._step = -1
        self._results: dict[tuple[Any, int], tuple[Any, int]] = {}
        self._given: list[Any] = []

    def returned(self, module: Any, frame: FrameType, result: Any) -> None:
        """Keep the result of a call in training at a sampled step, and the arguments, until the step ends."""
        torch = self._scene.torch
        self._begin()
        with self._scene.unseen.begin() or nullcontext():
            for one in _tensors(torch, result):
                if one.grad_fn is not None and has_values(one) and 1 < one.numel() <= _LARGEST:
                    if len(self._results) < _MOST_RESULTS:
                        key = key_of(one.grad_fn), int(one.output_nr)
                        self._results[key] = one.detach(), one._version
            users = self._scene.sites.users(frame)[:1]
            given: list[Any] = list(variables(users[0]).values()) if users else []
            try:
                call = called(module, frame)
                given = [*call.args, *call.kwargs.values(), *given]
            except Refused:
                pass
            known = {id(one) for one in self._given}
            plain = [one for one in given if type(one) is torch.Tensor and id(one) not in known]
            plain = [one for one in plain if not one.requires_grad and has_values(one) and one.numel() <= _LARGEST]
            self._given += plain[: _MOST_GIVEN - len(self._given)]

    def _begin(self) -> None:
        if self._step != self._scene.sampling.step:
            self._step, self._results, self._given = self._scene.sampling.step, {}, []

    def differentiated(self, root: Any, site: Site | None, frame: FrameType | None) -> None:
        """Handle a backward pass at a sampled step, before it runs."""
        scene = self._scene
        self._begin()
        line = self._line(site)
        if line is None or root is None or line.shared or line.reads >= _MOST_READS or line.in_step > _READS_IN_STEP:
            return
        line.reads += 1
        with self._aside(), scene.sampling.timed(None):
            try:
                results = {key: one.cpu() for key, (one, version) in self._results.items() if one._version == version}
                terms = _joined(Terms(scene.torch, results).read(root))
            except (Unknown, RuntimeError):
                terms = []
            found = next(filter(None, (self._judged(one, root, frame) for one in terms)), None)
        self._results, self._given = {}, []
        if found is not None:
            line.found = True
            kind, value, made = found
            scene.tell(CountedRead, kind=kind, value=value, made=made, site=site)
            return
        masked = any(not bool(one.counted.all()) for one in terms)
        line.others += masked
        line.shared |= line.others >= _MOST_OTHERS
        if line.found:
            self._withdraw(site)

    def _line(self, site: Site | None) -> _Line | None:
        """Return the record of a line with a backward pass in this step; None for too many lines."""
        line = self._lines.get(site)
        if line is None:
            if len(self._lines) >= _MOST_LINES:
                return None
            line = self._lines[site] = _Line()
        between = [one for one in self._lines.items() if one[1] is not line and one[1].step >= max(0, line.step)]
        if line.step >= 0 or any(one.step == self._step for _, one in between):
            for other, one in [(site, line), *between] if between else ():
                if one.found and not one.shared:
                    self._withdraw(other)
                one.shared = True
        line.in_step = line.in_step + 1 if line.step == self._step else 1
        line.step = self._step
        return line

    def _withdraw(self, site: Site | None) -> None:
        self._scene.tell(CountedRead, kind="", value=0.0, made=None, site=site)

    def _judged(self, term: Term, root: Any, frame: FrameType | None) -> tuple[str, float, Site | None] | None:
        """Return the fault of the mask of a term, the value of its wrong targets, and its line."""
        counted = term.counted
        if bool(counted.all()) or int(counted.sum()) < _LEAST_POSITIONS:
            return None
        made = line_of(term.node)
        others = list(self._arrays(frame, root))
        mark = _mark(term, others)
        if mark is not None:
            return "kept", mark, made
        if term.target is None:
            if not term.chosen.is_floating_point() and _are_ignored(term, others):
                return "alone", float(term.chosen[0]), made
            term = _completed(term, others)
        target = term.target
        if target is None or target.shape != counted.shape:
            return None
        tolerance = 0.0 if term.exact else _TOLERANCE * max(1.0, float(target.abs().max()))
        chosen = target[counted]
        value = chosen.reshape(-1)[0]
        if bool(((chosen - value).abs() <= tolerance).all()):
            alone = self._is_inverted(term, target, value, tolerance, others)
            return ("alone", float(value), made) if alone else None
        if not target.is_floating_point():
            rows = _rows(counted, term.rows)
            kind, label = ("", 0) if rows is None else _at_ends(rows, target.reshape(rows.shape), others)
            return (kind, float(label), made) if kind else None
        missing = _missing(target, tolerance)
        if missing is not None and counted.dim() > 1 and _is_moved(counted, missing[0]):
            return "moved", missing[1], made
        return None

    def _is_inverted(self, term: Term, target: Any, value: Any, tolerance: float, others: list[Any]) -> bool:
        """Return True if the targets that count are padding, or missing, and all others are not."""
        counted = term.counted
        left = target[~counted]
        if left.numel() < _LEAST_POSITIONS or _distinct(left) < _LEAST_VALUES:
            return False
        alone = not bool(((left - value).abs() <= tolerance).any())
        rows = _rows(counted, term.rows)
        ends = rows is not None and _ends(rows) is not None
        if alone and (ends or (target.is_floating_point() and _are_different(left))):
            return True
        if target.is_floating_point():
            return False
        for part in (part for one in others for part in _fitting(one, counted)):
            mark, other = part[counted], part[~counted]
            if part.is_floating_point() or not bool((mark == mark[0]).all()) or bool((other == mark[0]).any()):
                continue
            ignored = int(mark[0]) < 0 or int(mark[0]) > int(target.max())
            if _distinct(other) >= _LEAST_VALUES and (ends or ignored):
                return True
        return False

    def _arrays(self, frame: FrameType | None, root: Any) -> Iterator[Any]:
        """Yield the arrays that the program holds, the arguments of its models, and the tokens of embeddings."""
        torch, scene = self._scene.torch, self._scene
        held = [one.value for one in arrays(scene, scene.sites.users(frame))] if frame is not None else []
        tokens = [saved(node, "indices") for node in nodes(root) if node.name() == "EmbeddingBackward0"]
        bases = [one._base for one in self._given if one._base is not None]
        for one in [*tokens, *self._given, *bases, *held][:_MOST_ARRAYS]:
            shape = shape_of(torch, one)
            if not shape or getattr(one, "requires_grad", False):
                continue
            value = one.detach().cpu() if type(one) is torch.Tensor and has_values(one) else as_tensor(scene, one)
            if value is not None and value.numel() <= _LARGEST and value.dtype is not torch.bool:
                yield value


def _tensors(torch: Any, result: Any) -> list[Any]:
    """Return the plain tensors of a result."""
    kind = type(result)
    if kind is torch.Tensor:
        return [result]
    if issubclass(kind, dict):
        values = list(dict.values(result))
    elif issubclass(kind, tuple):
        values = list(tuple.__iter__(result))
    else:
        values = list(list.__iter__(result)) if issubclass(kind, list) else []
    return [one for one in values[:_MOST_RESULTS] if type(one) is torch.Tensor]


def _joined(terms: list[Term]) -> list[Term]:
    """Return the terms of a loss; those of the same shape as one, with all positions that either of them counts."""
    found: list[Term] = []
    for term in terms:
        like = next((at for at, one in enumerate(found) if one.counted.shape == term.counted.shape), None)
        if like is None:
            found.append(term)
            continue
        one = found[like]
        if one.target is None or term.target is None or not bool((one.target == term.target).all()):
            raise Unknown
        counted = one.counted | term.counted
        found[like] = one._replace(counted=counted, chosen=one.target[counted])
    return found


def _completed(term: Term, others: list[Any]) -> Term:
    """Return a term with the array of the targets of all positions, if one has those that count."""
    for one in others:
        for part in _fitting(one, term.counted):
            if part.is_floating_point() != term.chosen.is_floating_point():
                continue
            chosen = part[term.counted]
            bound = 0.0 if term.exact else _TOLERANCE * max(1.0, float(chosen.abs().max()))
            if chosen.shape == term.chosen.shape and bool(((chosen - term.chosen).abs() <= bound).all()):
                shape = tuple(one.shape)
                rows = (shape[0], len(part) // shape[0]) if part.dim() == 1 and len(shape) == 2 else None
                return term._replace(target=part, rows=rows)
    return term


def _mark(term: Term, others: list[Any]) -> float | None:
    """Return the mark of masked tokens that a loss leaves out, if the model reads each token that counts; else None.

    An array has other tokens at the masked positions: those that a masked language model is to predict.
    """
    counted, chosen = term.counted, term.chosen
    left = ~counted
    if chosen.is_floating_point() or chosen.dim() != 1 or int(left.sum()) < _LEAST_POSITIONS:
        return None
    arrays = [(one, part) for one in others for part in _fitting(one, counted) if not part.is_floating_point()]
    same = [(one, part) for one, part in arrays if bool((part[counted] == chosen).all())]
    for one, part in same:
        mark = part[left].mode().values
        rows = left.reshape(one.shape) if one.shape[1:] and one.numel() == left.numel() else None
        of_masks = float((part[left] == mark).float().mean()) >= _MARKED
        padding = rows is not None and any(_ends(side) is not None for side in (rows, rows.flip(1)))
        if not of_masks or bool((chosen == mark).any()) or padding:
            continue
        for _, other in same:
            hidden = other[left][other[left] != part[left]]
            # Tokens that count nowhere are left out as rare ones, not as masked ones.
            known = hidden[(hidden[:, None] == chosen[:_MOST_COMPARED].unique()).any(1)]
            if len(known) >= _HIDDEN * int(left.sum()) and _distinct(hidden) >= _LEAST_VALUES:
                return float(mark)
    return None


def _are_ignored(term: Term, others: list[Any]) -> bool:
    """Return True if the targets that count are equal, and an array has a number outside of the classes for them."""
    if not bool((term.chosen == term.chosen[0]).all()):
        return False
    for one in others:
        for part in _fitting(one, term.counted):
            mark, left = part[term.counted], part[~term.counted]
            if part.is_floating_point() or not bool((mark == mark[0]).all()) or _distinct(left) < _LEAST_VALUES:
                continue
            if int(mark[0]) > int(left.max()) or int(mark[0]) < min(0, int(left.min())):
                return True
    return False


def _fitting(one: Any, counted: Any) -> Iterator[Any]:
    """Yield an array, or its part without the first or the last position, in the shape of positions that count."""
    shape = tuple(counted.shape)
    parts = [one]
    if one.dim() > 1 and one.shape[1] > 1:
        parts += [one[:, 1:], one[:, :-1]]
    for part in parts:
        if tuple(part.shape) == shape:
            yield part
        elif len(shape) == 1 and part.dim() == 2 and part.numel() == shape[0]:
            yield part.reshape(-1)


def _rows(positions: Any, rows: tuple[int, int] | None) -> Any:
    """Return positions by rows of sequences; None if they are not known."""
    if positions.dim() == 1:
        return None if rows is None else positions.reshape(rows)
    if positions.dim() == 3:
        same = bool((positions == positions[..., :1]).all())
        return positions[..., 0] if same else None
    return positions if positions.dim() == 2 else None


def _at_ends(counted: Any, target: Any, others: list[Any]) -> tuple[str, int]:
    """Return the fault of a mask of the ends of rows ("extra", "late", or ""), and the label of padding.

    The label of padding is an ordinary one, too: one that no other position has can mark the end of a row.
    """
    held = [one for one in others if one.dim() == 1 and len(one) == len(counted) and not one.is_floating_point()]
    parts = [part for one in others if one.dim() > 1 for part in _fitting(one, counted)]
    tokens = [_ends(part == part[:, -1].mode().values) for part in parts if not part.is_floating_point()]
    lengths = [found for found in tokens if found is not None]
    if any(bool((counted == _until(found, counted.shape[1])).all()) for found in lengths):
        return "", 0
    for found in lengths:
        real = _until(found, counted.shape[1])
        label = target[~real][0]
        alike = bool((target[~real] == label).all()) and bool((target[real] == label).any())
        if alike and any(bool((one == found).all()) for one in held) and (kind := _off(counted, found)):
            return kind, int(label)
    return "", 0


def _ends(padding: Any) -> Any:
    """Return the number of positions before the padding of each row; None unless it is at the ends of several rows."""
    if padding.dim() != 2 or padding.shape[1] < _LEAST_LENGTH or bool(padding[:, 0].all()):
        return None
    if not bool((padding[:, 1:] | ~padding[:, :-1]).all()):
        return None
    lengths = (~padding).sum(1)
    padded = lengths < padding.shape[1]
    return lengths if int(padded.sum()) >= _LEAST_ROWS and len(lengths.unique()) >= _LEAST_LENGTHS else None


def _until(lengths: Any, length: int) -> Any:
    return lengths.new_ones(length).cumsum(0) <= lengths[:, None]


def _off(counted: Any, lengths: Any) -> str:
    """Return "extra" for one position too many in all rows with padding, "late" if the first one is missing, too."""
    length = counted.shape[1]
    padded, more = lengths < length, _until(lengths + 1, length)
    if len(lengths[padded].unique()) < 2:
        return ""
    if bool((counted == more).all()):
        return "extra"
    more[:, 0] = False
    return "late" if bool((counted == more).all()) else ""


def _distinct(values: Any) -> int:
    return len(values.reshape(-1)[:_MOST_COMPARED].unique())


def _are_different(values: Any) -> bool:
    few = values.reshape(-1)[:_MOST_COMPARED]
    return len(few.unique()) >= _DISTINCT * len(few)


def _missing(target: Any, tolerance: float) -> tuple[Any, float] | None:
    """Return the positions with the one value that many targets have, within those of all others, and the value."""
    grain = max(tolerance, _TOLERANCE * float(target.abs().max()))
    if not grain > 0:
        return None
    values, counts = (target / grain).round().unique(return_counts=True)
    value = float(values[counts.argmax()]) * grain
    missing = (target - value).abs() <= 2 * grain
    others = target[~missing]
    share = float(missing.float().mean())
    if not _LEAST_SHARE <= share <= _MOST_SHARE or not _are_different(others):
        return None
    above = float((others > value).float().mean())
    return (missing, value) if _INSIDE <= above <= 1 - _INSIDE else None


def _is_moved(counted: Any, missing: Any) -> bool:
    """Return True if the positions that count are those with a target, moved by one along the sequence."""
    if counted.shape[1] < _LEAST_LENGTH or int((counted == missing).sum()) < _LEAST_MOVED:
        return False
    late = bool((counted[:, 1:] == ~missing[:, :-1]).all())
    early = bool((counted[:, :-1] == ~missing[:, 1:]).all())
    return late or early
