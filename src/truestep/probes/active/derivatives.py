"""Check: the backward pass of a custom `autograd.Function` is not the derivative of its forward pass.

The functions are found in the graph of a training call. A run of the copy shows their arguments; both passes are then
compared on copies of these in double precision, along random directions.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from truestep.events import Site
from truestep.probes.active.trial import Trial
from truestep.probes.copies.objects import mind
from truestep.seams.patch import patch

_SEED = 5_671_234
_MOST_NODES = 4000
_MOST_FUNCTIONS = 8
_MOST_VALUES = 1 << 16
_STEP = 1e-4
_DIRECTIONS = 5
_OFF = 0.05
_CURVED = 1e-6
_SMOOTH = 1e-3


@dataclass(frozen=True, slots=True)
class Derivative:
    """Result of the check for one function."""

    function: str
    ratio: float
    """Slope by the backward pass divided by that of the forward pass, along the first direction."""
    wrong: bool
    site: Site | None


def functions_of(result: Any, torch: Any) -> list[Any]:
    """Return the classes of the custom functions in the graph of a result."""
    found: list[Any] = []
    todo = [tensor.grad_fn for tensor in _tensors(result, torch) if tensor.grad_fn is not None]
    seen = set(todo)
    while todo and len(seen) < _MOST_NODES:
        node = todo.pop()
        kind = getattr(type(node), "_forward_cls", None)
        if kind is not None and kind not in found:
            found.append(kind)
        for below, _ in node.next_functions:
            if below is not None and below not in seen:
                seen.add(below)
                todo.append(below)
    return found


def _tensors(value: Any, torch: Any, depth: int = 0) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value] if type(value) is torch.Tensor else []  # a subclass would see the reading of its attributes
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [tensor for item in list(inside)[:16] for tensor in _tensors(item, torch, depth + 1)] if depth < 3 else []


def derivatives(trial: Trial, kinds: list[Any]) -> list[Derivative]:
    """Return the comparison of both passes for each function that the copy calls with tensors of moderate size.

    Raises:
        Refused: the copy cannot be called.
    """
    torch, scene = trial.scene.torch, trial.scene
    used: dict[Any, tuple[tuple[Any, ...], Site | None]] = {}

    def recording(kind: Any) -> Any:
        original = kind.forward

        def forward(*given: Any, **named: Any) -> Any:
            args = given if plain[kind] else given[1:]
            small = all(arg.numel() <= _MOST_VALUES for arg in args if isinstance(arg, torch.Tensor))
            if kind not in used and small and not named:
                copies = tuple(arg.detach().clone() if isinstance(arg, torch.Tensor) else arg for arg in args)
                used[kind] = copies, scene.site()
            return original(*given, **named)

        return staticmethod(forward)

    single = torch.autograd.Function.setup_context
    plain = {kind: kind.setup_context is not single for kind in kinds[:_MOST_FUNCTIONS]}
    with ExitStack() as stack:
        for kind in plain:
            if scene.sites.kind(kind.forward.__code__) == 0:
                patch(stack, kind, "forward", recording(kind))
        trial.run(_SEED)
    found = []
    for kind, (args, site) in used.items():
        mind(scene)
        with torch.enable_grad():
            compared = _compare(kind, args, torch)
        if compared is not None:
            found.append(Derivative(kind.__name__, *compared, site))
    return found


def _compare(kind: Any, args: tuple[Any, ...], torch: Any) -> tuple[float, bool] | None:
    """Return the ratio of the slopes and True if the backward pass is wrong; None if that cannot be decided.

    A function that is not smooth here, or straight along the directions, can have another gradient on purpose: a
    straight-through estimate, a clamp that passes gradients, a reversed or scaled gradient.
    """
    doubles = tuple(arg.double() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg for arg in args)
    at = [index for index, arg in enumerate(doubles) if isinstance(arg, torch.Tensor) and arg.is_floating_point()]
    ratio, wrong = 1.0, 0
    generator = torch.Generator().manual_seed(_SEED)

    def noise(like: Any) -> Any:
        return torch.randn(like.shape, generator=generator, dtype=torch.float64).to(like.device)

    try:
        weights = noise(kind.apply(*doubles))
        for number in range(_DIRECTIONS):
            ways = {index: noise(doubles[index]) for index in at}

            def value(step: float, ways: dict[int, Any] = ways) -> float:
                moved = [arg + step * ways[n] if n in ways else arg for n, arg in enumerate(doubles)]
                return float((kind.apply(*moved).detach() * weights).sum())

            ahead, here, behind = value(_STEP), value(0.0), value(-_STEP)
            slope = (ahead - behind) / (2 * _STEP)
            half = (value(_STEP / 2) - value(-_STEP / 2)) / _STEP
            bend = abs(ahead - 2 * here + behind) / _STEP**2
            leaves = [arg.detach().requires_grad_() if n in ways else arg for n, arg in enumerate(doubles)]
            inputs = [leaves[n] for n in at]
            result = (kind.apply(*leaves) * weights).sum()
            grads = torch.autograd.grad(result, inputs, allow_unused=True)
            if any(grad is None for grad in grads):
                return None  # an argument without a gradient on purpose
            given = sum(float((grad * ways[n]).sum()) for grad, n in zip(grads, at, strict=True))
            size = max(abs(slope), abs(given))
            if not size or abs(slope - half) > _SMOOTH * size or bend < _CURVED * size:
                return None
            ratio = given / slope if not number and slope else ratio
            wrong += abs(given - slope) > _OFF * size
    except Exception:
        return None
    return ratio, 2 * wrong > _DIRECTIONS
