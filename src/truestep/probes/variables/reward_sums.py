"""Weights of log-probabilities that are discounted sums of rewards, and the direction of these sums in time.

A return is made of the rewards that follow an action. The direction is read from the weights themselves: each is a
reward plus a discount, below 1, times the weight of its neighbour. The tape has the order of the log-probabilities.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from truestep.events import ReturnsFollowed, Site
from truestep.probes.context.local_variables import own_dict, variables
from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import as_tensor, shape_of
from truestep.probes.variables.origins import made_at
from truestep.probes.variables.reversals import keeps_order, leaves_rows_in_order
from truestep.probes.variables.weighted_choices import Weighted, weighted_choices

_LEAST_STEPS, _MOST_STEPS = 8, 1 << 13
_MOST_DEEP = 2
_MOST_NAMES = 600
_MOST_SERIES = 24
_NUMBERS = (bool, int, float)
_DISCOUNTS = (0.5, 1.0 + 1e-6)
_LEAST_SHARE = 0.75
"""Least share of steps with exact sums: the others are at ends of episodes."""
_LEAST_CHANGES = 3
_ROUNDING = 2e-5
_ROUNDS = 8
_NEIGHBOURS = 8
_REWARD = ("rew", "rwd")
_SHORT = frozenset({"r", "rs", "r_list", "ep_r", "ep_rs"})
_STANDARD = (0.9, 1.1)


class Series(NamedTuple):
    """Numbers of a variable, one for each step, or one for each step and environment."""

    name: str
    values: Any


class _Fit(NamedTuple):
    """A recursion: the weight of a step from its reward and from the weight of its neighbour."""

    discount: float
    of_reward: float
    of_rest: float
    share: float
    spread: float
    """Share of the weights that rewards of different size explain."""


class RewardSums:
    """Emits `ReturnsFollowed`."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def look(self, node: Any, frame: FrameType | None, site: Site | None) -> None:
        """Look at the weights of the log-probabilities of a loss.

        Args:
            node: operation that made the loss.
            frame: the user's frame that called backward; None if a library did.
            site: the line of the call.
        """
        if frame is None:
            return
        for weighted in itertools.islice(weighted_choices(self._scene.torch, node), 2):
            count = weighted.values.numel()
            if not _LEAST_STEPS <= count <= _MOST_STEPS:
                continue
            series = list(itertools.islice(self._series(frame, count), _MOST_SERIES))
            for sums in self._sums(weighted, series):
                for rewards in series:
                    earlier = self._direction(sums.values, rewards)
                    if earlier is not None:
                        self._tell(weighted, sums, frame, site, earlier)
                        return

    def _tell(self, weighted: Weighted, sums: Series, frame: FrameType, site: Site | None, earlier: bool) -> None:
        if not earlier:
            self._scene.tell(ReturnsFollowed, site=site, earlier=False)
            return
        code = frame.f_code
        if keeps_order(code) and (weighted.in_time or leaves_rows_in_order(code)):
            made = made_at(self._scene, frame, sums.name) if sums.name and "." not in sums.name else None
            self._scene.tell(ReturnsFollowed, site=site, made=made, name=sums.name)

    def _sums(self, weighted: Weighted, series: list[Series]) -> Iterator[Series]:
        """Yield the weights, and the numbers from which they are differences, in the order of time."""
        values, order = weighted.values.double(), weighted.order
        straight = [Series(one.name, one.values.reshape(-1)) for one in series]
        # The last of several variables with the same numbers is the tensor in the loss.
        same = [one.name for one in straight if _alike(one.values, values)]
        yield Series(same[-1] if same else "", values if order is None else values[order])
        for one, other in itertools.permutations(straight, 2):
            if _alike(one.values - other.values, values) and not _alike(one.values, values):
                yield Series(one.name, one.values if order is None else one.values[order])

    def _direction(self, sums: Any, rewards: Series) -> bool | None:
        """Return True if the sums are of earlier rewards, False if of later ones; None for other numbers."""
        given = rewards.values.reshape(len(rewards.values), -1)
        sums = sums.reshape(given.shape)
        named = any(part in rewards.name.lower() for part in _REWARD) or rewards.name.rpartition(".")[2] in _SHORT
        if not bool(sums.isfinite().all() & given.isfinite().all()) or float(sums.std()) <= _ROUNDING:
            return None
        later = self._fits(sums[:-1], (given[:-1], given.flip(0)[:-1]), sums[1:], sums, named)
        if later:
            return False
        earlier = self._fits(sums[1:], (given[1:], given.flip(0)[1:]), sums[:-1], sums, named)
        return True if earlier else None

    def _fits(self, now: Any, rewards: tuple[Any, ...], beside: Any, sums: Any, named: bool) -> bool:
        torch = self._scene.torch
        for given in rewards:
            now_, given_, beside_ = (one.T.reshape(-1) for one in (now, given, beside))
            fit = _fitted(torch, now_, given_, beside_)
            if fit is None or not _DISCOUNTS[0] <= fit.discount <= _DISCOUNTS[1]:
                continue
            exact = abs(fit.of_reward - 1.0) <= 1e-3 and abs(fit.of_rest) <= 1e-3 * float(sums.abs().max())
            standard = _STANDARD[0] <= float(sums.std()) <= _STANDARD[1] or abs(float(sums.mean())) <= 1e-3
            if fit.spread > 0.0:
                if fit.of_reward > 0 and (exact or standard):
                    return True
            elif named and self._of_equal(fit, float(given_[0]), now_, beside_, standard):
                return True
        return False

    def _of_equal(self, fit: _Fit, reward: float, now: Any, beside: Any, standard: bool) -> bool:
        """Return True if sums of equal rewards move as far as, or in the direction that, the reward says."""
        if reward == 0.0:
            return False
        if abs(fit.of_rest - reward) <= 1e-3 * abs(reward):
            return True
        moves = float((now - beside).median())
        return standard and moves * reward > 0.0

    def _series(self, frame: FrameType, count: int) -> Iterator[Series]:
        """Yield the variables with a number for each step: of the function, of its objects and of the file."""
        seen: set[int] = set()
        spaces: deque[tuple[str, dict[str, Any], int]] = deque([("", variables(frame), 0), ("", frame.f_globals, 0)])
        while spaces and len(seen) < _MOST_NAMES:
            before, names, deep = spaces.popleft()
            for name, value in list(names.items()):
                if name.startswith("__") or id(value) in seen or len(seen) >= _MOST_NAMES:
                    continue
                seen.add(id(value))
                values = self._numbers(value, count)
                if values is not None:
                    yield Series(before + name, values)
                elif deep < _MOST_DEEP:
                    held = value if type(value) is dict else own_dict(value)
                    if held and all(type(key) is str for key in itertools.islice(held, 4)):
                        spaces.append((f"{before}{name}.", held, deep + 1))

    def _numbers(self, value: Any, count: int) -> Any:
        """Return the numbers of an array, or of a list of numbers or arrays, with that count; None for others."""
        torch = self._scene.torch
        if type(value) in (list, tuple, deque):
            if not 0 < len(value) <= count or count % len(value):
                return None
            if len(value) == count and all(type(one) in _NUMBERS for one in value):
                return torch.tensor([float(one) for one in value], dtype=torch.float64)
            parts = [self._part(one, count // len(value)) for one in value]
            return None if any(one is None for one in parts) or len(parts) < _LEAST_STEPS // 2 else torch.stack(parts)
        shape = shape_of(torch, value)
        total = 1
        for size in shape:
            total *= size
        if not shape or total != count:
            return None
        table = as_tensor(self._scene, value)
        return None if table is None or len(table) < _LEAST_STEPS // 2 else table.double()

    def _part(self, value: Any, width: int) -> Any:
        torch = self._scene.torch
        if type(value) in _NUMBERS or (type(value).__module__ == "numpy" and not getattr(value, "shape", (1,))):
            return torch.tensor([float(value)], dtype=torch.float64) if width == 1 else None
        if type(value) is not torch.Tensor and not shape_of(torch, value):
            return None
        table = as_tensor(self._scene, value)
        return table.double().reshape(-1) if table is not None and table.numel() == width else None


def _fitted(torch: Any, now: Any, given: Any, beside: Any) -> _Fit | None:
    """Return the recursion that most steps follow exactly; None if there is none."""
    differing = given != given.median()
    several = int(differing.sum()) >= _LEAST_CHANGES
    if not several and bool(differing.any()):
        now, given, beside = now[~differing], given[~differing], beside[~differing]
    columns = [beside, torch.ones_like(beside), *([given] if several else [])]
    table = torch.stack(columns, 1)
    if len(now) < _LEAST_STEPS - 2 or float(beside.std()) <= _ROUNDING:
        return None
    tolerance = _ROUNDING * float(torch.maximum(now.abs().max(), beside.abs().max()))
    found, share = None, 0.0
    for found in _solutions(torch, table, now, tolerance):
        share = float(((table @ found - now).abs() <= tolerance).double().mean())
        if share >= _LEAST_SHARE:
            break
    if found is None or share < _LEAST_SHARE or not bool(found.isfinite().all()):
        return None
    of_reward = float(found[2]) if several else 0.0
    spread = abs(of_reward) * float(given.std()) / max(float(now.std()), 1e-12)
    if several and spread < 1e-3:
        return None
    return _Fit(float(found[0]), of_reward, float(found[1]), share, spread)


def _solutions(torch: Any, table: Any, now: Any, tolerance: float) -> Iterator[Any]:
    """Yield coefficients: those with the least squares, the least distances, and of a few neighbours only."""
    weights = torch.ones_like(now)
    for _ in range(_ROUNDS):  # weights of the inverse distance: the least sum of distances, not of their squares
        found = torch.linalg.lstsq(table * weights[:, None], (now * weights)[:, None]).solution.reshape(-1)
        if not bool(found.isfinite().all()):
            return
        distances = (table @ found - now).abs()
        yield found
        weights = (distances + tolerance / 10).rsqrt()
    for start in range(0, len(now) - _NEIGHBOURS, max(_NEIGHBOURS // 2, len(now) // _ROUNDS)):
        few = slice(start, start + _NEIGHBOURS)
        yield torch.linalg.lstsq(table[few], now[few, None]).solution.reshape(-1)


def _alike(one: Any, other: Any) -> bool:
    """Return True if numbers are equal up to a shift and a positive factor."""
    if one.numel() != other.numel():
        return False
    one, other = one.reshape(-1).double(), other.reshape(-1).double()
    one, other = one - one.mean(), other - other.mean()
    size = float(one.norm() * other.norm())
    return size > 0.0 and float(one @ other) >= (1.0 - 1e-9) * size
