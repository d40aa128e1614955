"""Check: a sequence model reads the tokens that it is to predict, and the operation that brings them.

The targets of a loss are compared with the tokens that the model was called on. Where a target is the token at its
position, the next or the previous one, a copy runs with other tokens there: the output for that target must not depend
on them. Dependence through a summary of the whole sequence, as in an autoencoder, is cut: only tensors with a value for
each position count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from truestep.events import Site
from truestep.probes.active.trial import Trial, own
from truestep.probes.context.scene import Scene
from truestep.probes.copies.call import Call, Path
from truestep.probes.copies.objects import Refused

_SEED = 3_456_711
_LARGEST = 1 << 18
_LEAST_LENGTH = 5
_LEAST_TARGETS = 32
_LEAST_VALUES = 3
_LEAST_WORDS = 8
"""Least number of different tokens if the targets are the tokens before: fewer are a test of a memory, on purpose."""
_LEAST_EQUAL = 0.98
_MOST_EQUAL = 0.8
_MOST_SHORTER = 2
"""Targets may be shorter than the tokens by so much."""
_UNEVEN = 1.4
"""Least ratio of the share of pairs of equal tokens to that of tokens that are equally frequent."""
_DEVIATIONS = 5.0
_OF_SIZE = 1e-5
_FEWER = 2
_MOST_ROWS = 512
_MOST_OPERATIONS = 2000
_LARGEST_RECORD = 64 << 20


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of a call that the targets of its loss repeat."""

    path: Path
    time: int
    """Dimension of the positions."""
    shift: int
    """Position of the token that is a target, minus the position of its output."""
    crossed: bool = False
    """True if the targets have the positions in the first dimension where the tokens have them in the second."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """Result of the check."""

    shift: int
    used: bool = True
    """True if any output depends on the tokens: the argument holds more than labels."""
    reads: bool = False
    """True if the output for a target depends on that target."""
    site: Site | None = None
    """Line of the first operation that brings a later token to an earlier position."""


def sequences(call: Call, torch: Any) -> dict[Path, Any]:
    """Return the arguments that can be sequences of tokens."""
    found = {path: value for path, value in call.tensors(torch).items() if _is_sequence(value, torch)}
    small = all(value.numel() <= _LARGEST for value in call.tensors(torch).values())
    return found if small else {}


def kept(call: Call, torch: Any) -> Call:
    """Return a call with copies of the arguments.

    Raises:
        Refused: there are other arguments than tensors, numbers and strings.
    """
    return Call(own(call.args, torch), own(call.kwargs, torch))


def _is_sequence(value: Any, torch: Any) -> bool:
    whole = value.dtype in (torch.int64, torch.int32)
    return whole and value.layout is torch.strided and value.dim() == 2 and min(value.shape) > 1


def repeated(call: Call, target: Any, torch: Any) -> list[Tokens]:
    """Return the arguments with tokens that the targets repeat: at the same, the next or the previous position."""
    flat, found = target.reshape(-1), []
    if int((flat >= 0).sum()) < _LEAST_TARGETS:  # a masked language model has few
        return []
    for path, value in sequences(call, torch).items():
        equal: list[tuple[float, Tokens]] = []
        kinds = len(value.unique())
        before = (-1,) if kinds >= _LEAST_WORDS else ()
        for time in (1, 0):
            length, left = divmod(len(flat), value.shape[1 - time])
            if left or length < _LEAST_LENGTH or not 0 <= value.shape[time] - length <= _MOST_SHORTER:
                continue
            shape = (value.shape[0], length) if time else (length, value.shape[1])
            for crossed in (False, True):
                targets = flat.reshape(shape[::-1]).t() if crossed else flat.reshape(shape)
                for shift in (0, 1, *before):
                    first, common = max(0, -shift), min(length, value.shape[time] - abs(shift))
                    common = min(common, length - first)
                    part, tokens = targets.narrow(time, first, common), value.narrow(time, max(0, shift), common)
                    counted = part >= 0
                    if not bool(counted.any()) or (shift < 0 and _is_echo(value, targets, time)):
                        continue
                    share = float((part == tokens.to(part.device))[counted].float().mean())
                    equal.append((share, Tokens(path, time, shift, crossed)))
        matches = [tokens for share, tokens in equal if share >= _LEAST_EQUAL]
        # Targets that are not shifted match in either dimension: the model must read them in both.
        plain = {(tokens.shift, tokens.crossed) for tokens in matches} == {(0, False)}
        whole = value.numel() == len(flat)  # a match in one dimension only: the other one is too short to be read
        clear = (plain and not (whole and len(matches) == 1)) or (len(matches) == 1 and not plain)
        if clear and kinds >= _LEAST_VALUES:
            found += matches
    return found


def _is_echo(value: Any, targets: Any, time: int) -> bool:
    """Return True if a model is to repeat tokens later, as a test of its memory: they were drawn at random.

    The targets are as many as the tokens, and begin with a blank, or with one that the loss leaves out.
    """
    if value.shape != targets.shape or len(targets.select(time, 0).unique()) > 1:
        return False
    return not are_uneven(map(tuple, value[:_MOST_ROWS].tolist()))


def are_uneven(rows: Iterable[tuple[int, ...]]) -> bool:
    """Return True if tokens are not equally frequent, but for the one of padding or blanks."""
    counts = Counter(token for row in rows for token in row)
    (most, _), *_ = counts.most_common(1)
    del counts[most]
    total = sum(counts.values())
    if total <= 1:
        return False
    kinds = max(counts) - min(counts) + 1
    pairs = sum(count * (count - 1) for count in counts.values()) / (total * (total - 1))
    least: float = max(_UNEVEN, 1 + _DEVIATIONS * (2 * kinds) ** 0.5 / total)
    return pairs * kinds >= least


def skipped(call: Call, target: Any, torch: Any) -> bool:
    """Return True if each target is the second token after its position: it was shifted twice.

    Text that repeats itself has the same token at other distances too, and tells nothing.
    """
    flat = target.reshape(-1)
    if int((flat >= 0).sum()) < _LEAST_TARGETS:
        return False
    for value in sequences(call, torch).values():
        length, left = divmod(len(flat), value.shape[0])
        if left or length < _LEAST_LENGTH or not 0 <= value.shape[1] - length <= 1:
            continue
        targets = flat.reshape(value.shape[0], length)
        if length == value.shape[1] and bool((targets[:, -1] >= 0).any()):
            continue  # one shift is by the data, and leaves all positions; the other leaves out the last one
        shares = []
        for shift in (2, 0, 1, 3):
            common = min(length, value.shape[1] - shift)
            part, tokens = targets[:, :common], value[:, shift : shift + common].to(flat.device)
            counted = part >= 0
            shares.append(float((part == tokens)[counted].float().mean()) if bool(counted.any()) else 1.0)
        if shares[0] >= _LEAST_EQUAL and max(shares[1:]) <= _MOST_EQUAL:
            return True
    return False


def look(trial: Trial, tokens: Tokens, classes: int, whole: bool = True) -> Ahead:
    """Return whether the output for a target depends on it.

    Args:
        trial: a copy of the model, with the arguments of its call.
        tokens: the argument with the targets.
        classes: size of the last dimension of the result.
        whole: False if the program can leave targets out, such as those of a prefix that the model may read: then a
            late one must be read too.

    Raises:
        Refused: the check is not possible.
    """
    torch, time, call = trial.scene.torch, tokens.time, trial.call
    tensors = call.tensors(torch)
    value, record = tensors[tokens.path], _Record(trial.scene)
    length = int(value.shape[time])

    def scores(call: Call, mode: Any) -> Any:
        return _by_position(trial.run(_SEED, call, mode=mode), value.shape, time, classes)

    shorter = {path: one.narrow(time, 0, length - _FEWER) for path, one in tensors.items() if one.shape == value.shape}
    plain, again = scores(call, record.functions()), scores(call, record.passing())
    if plain.shape != again.shape or not bool((plain == again).all()):
        raise Refused("its results for the same batch and seed differ")
    try:
        trial.run(_SEED, call.replaced(shorter), mode=record.measuring())
    except Refused:  # positions of a fixed number
        if value.shape[1 - time] == length or any(length in one.shape[-1:] for one in trial.copy.parameters()):
            raise
        record.by_size(length, int(value.shape[1 - time]))
    used, reads = [], []
    last = _last(value.movedim(time, 1))
    end = max(min(last + 2, length), _LEAST_LENGTH)  # without the padding behind it
    for at in (end // 3, end // 2, *(() if whole else (last,))):
        other = value.clone()
        line = other.select(time, at)
        line.copy_(line.roll(1) if bool((line != line.roll(1)).any()) else value.select(time, at - 1))
        if bool((other == value).all()):
            raise Refused("all samples of the batch are equal")
        changed = call.replaced({tokens.path: other})
        used.append(_differ(plain, scores(changed, record.passing())))
        out = scores(changed, record.cutting())
        reads.append(_differ(*(part.select(time, at - tokens.shift) for part in (plain, out))))
    return Ahead(tokens.shift, any(used), all(reads), record.site if tokens.shift > 0 else None)


def _last(value: Any) -> int:
    """Return the last position but one at which a quarter of the rows have not ended in padding."""
    padded = (value == value[:, -1].mode().values).flip(1).int().cumprod(1).sum(1)  # positions at the end of each row
    going = value.shape[1] - padded.sort().values[len(padded) // 4]
    return max(1, min(int(going), int(value.shape[1])) - 2)


def _by_position(results: list[Any], shape: tuple[int, ...], time: int, classes: int) -> Any:
    """Return the first result with scores for each position, in the layout of the tokens.

    Raises:
        Refused: there is none.
    """
    for result in results:
        if result.dim() == 2 and result.shape[1] == classes and result.shape[0] == shape[0] * shape[1]:
            return result.reshape(*shape, classes)
        if result.dim() != 3:
            continue
        last = result if result.shape[2] == classes else result.transpose(1, 2)
        if last.shape[2] == classes and shape[time] - last.shape[time] in (0, 1):
            if last.shape[1 - time] == shape[1 - time]:
                return last
    raise Refused("its result has no row for each position")


def _differ(one: Any, two: Any) -> bool:
    """Return True if two results differ by more than rounding: one token of many can have a small influence."""
    return bool((one.double() - two.double()).abs().max() > _OF_SIZE * one.double().abs().max())


class _Record:
    """Results of the operations of a run, with which a later run is compared, or from which it takes summaries."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._seen: list[tuple[Any, list[Any]]] = []
        self._positions: list[list[list[int] | None]] = []
        """For each result the dimensions that a shorter sequence makes shorter; None if another one does."""
        self._next = self._bytes = 0
        self.site: Site | None = None

    def functions(self) -> Any:
        """Return a torch function mode that records results."""
        return self._mode(self._keep)

    def passing(self) -> Any:
        """Return a mode that does nothing: under a mode, torch calls other functions than without one."""
        return self._mode(lambda function, result: result)

    def measuring(self) -> Any:
        """Return a mode for a run on shorter sequences, which shows the results with a value for each position."""
        self._next = 0
        return self._mode(self._measure)

    def by_size(self, length: int, samples: int) -> None:
        """Take dimensions as long as the sequences for those of the positions, where shorter ones cannot run.

        Raises:
            Refused: a result has a multiple of such numbers for each sample: positions, or the features of a summary.
        """
        self._positions = []
        for _, tensors in self._seen:
            for one in tensors:
                of_samples = one.dim() > 1 and one.shape[0] == samples and length not in one.shape
                if of_samples and any(size > length and size % length == 0 for size in one.shape[1:]):
                    raise Refused("its positions and its features have like sizes")
        for _, tensors in self._seen:
            mixed = [any(size > length and size % length == 0 for size in one.shape) for one in tensors]
            dims = [[dim for dim, size in enumerate(one.shape) if size == length] for one in tensors]
            self._positions.append([None if both else found for both, found in zip(mixed, dims, strict=True)])

    def cutting(self) -> Any:
        """Return a mode that replaces results without positions by those of the record."""
        self._next = 0
        return self._mode(self._cut)

    def _mode(self, handle: Any) -> Any:
        class Operations(self._scene.torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
            def __torch_function__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
                return handle(function, function(*args, **(kwargs or {})))

        return Operations()

    def _tensors(self, result: Any) -> list[Any]:
        torch = self._scene.torch
        parts = result if isinstance(result, tuple) else (result,)
        return [part for part in parts if isinstance(part, torch.Tensor) and part.is_floating_point()]

    def _keep(self, function: Any, result: Any) -> Any:
        tensors = [part.detach().clone() for part in self._tensors(result)]
        self._bytes += sum(part.numel() * part.element_size() for part in tensors)
        if len(self._seen) >= _MOST_OPERATIONS or self._bytes > _LARGEST_RECORD:
            raise Refused("it has too many operations to analyse")
        if tensors:
            self._seen.append((function, tensors))
        return result

    def _same(self, function: Any, result: Any) -> list[tuple[int, Any, Any]]:
        """Return the next results of the record beside those of this run, with their number.

        Raises:
            Refused: this run has other operations.
        """
        tensors = self._tensors(result)
        if not tensors:
            return []
        if self._next >= len(self._seen) or self._seen[self._next][0] != function:
            raise Refused("its operations depend on the tokens")
        self._next += 1
        return [(n, *pair) for n, pair in enumerate(zip(self._seen[self._next - 1][1], tensors, strict=True))]

    def _measure(self, function: Any, result: Any) -> Any:
        found: list[list[int] | None] = []
        for _, one, two in self._same(function, result):
            fewer = {dim: one.shape[dim] - two.shape[dim] for dim in range(min(one.dim(), two.dim()))}
            dims = [dim for dim, count in fewer.items() if count]
            found.append(dims if all(fewer[dim] == _FEWER for dim in dims) else None)
        if found:
            self._positions.append(found)
        return result

    def _cut(self, function: Any, result: Any) -> Any:
        for number, one, two in self._same(function, result):
            dims = self._positions[self._next - 1][number]
            if one.shape != two.shape:
                raise Refused("its operations depend on the tokens")
            if dims == []:
                two.copy_(one)
            elif dims and self.site is None and _spreads(one, two, dims):
                self.site = self._scene.site()
        return result


def _spreads(one: Any, two: Any, dims: list[int]) -> bool:
    """Return True if a change of the tokens at one position reached others."""
    changed = one != two
    if not bool(changed.any()):
        return False
    for dim in dims:
        others = [other for other in range(changed.dim()) if other != dim]
        where = (changed.any(dim=others) if others else changed).nonzero().flatten()
        if int(where.max() - where.min()) <= 1:
            return False
    return True
