"""Inputs and targets of a loss that are shares: along which dimension each sums to one. Read at sampled steps."""

from __future__ import annotations

from typing import Any

from truestep.events import ProbabilitiesRead, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.forward.losses.label_values import is_transformed

KINDS_OF_SHARES = frozenset({"cross_entropy", "kl_div", "mse_loss", "l1_loss"})
_LARGEST = 1 << 20
_ROUNDING = 1e-3
_DENSE = 0.5


def compare_shares(scene: Scene, kind: str, site: Site | None, input: Any, target: Any, *, logarithms: bool) -> None:
    """Emit a loss with targets that sum to one over the samples, where its input does so over the classes, or reversed.

    Args:
        scene: the scene.
        kind: kind of the loss.
        site: its line.
        input: its input, with a row for each sample.
        target: its target.
        logarithms: True if the targets are logarithms.
    """
    torch = scene.torch
    if kind not in KINDS_OF_SHARES or not all(_is_table(torch, one) for one in (input, target)):
        return
    if input.shape != target.shape or input.shape[0] == input.shape[1] or min(input.shape) < 2:
        return
    with scene.sampling.timed(target):
        wanted = target.detach().exp() if logarithms else target.detach()
        of_target = _over(wanted)
        if not of_target:
            return
        of_input = "classes"
        if kind != "cross_entropy":
            given = input.detach()
            of_input = _over(given.exp() if kind == "kl_div" else given)
        elif float((wanted != 0).float().mean()) <= _DENSE:  # one-hot labels that are weighted by class
            return
    if of_input and of_input != of_target:
        scene.emit(ProbabilitiesRead(kind=kind, site=site, over=of_target))


def _is_table(torch: Any, tensor: Any) -> bool:
    plain = type(tensor) is torch.Tensor and tensor.dim() == 2 and tensor.is_floating_point()
    return plain and not is_transformed(tensor) and has_values(tensor) and tensor.numel() <= _LARGEST


def _over(shares: Any) -> str:
    """Return "classes" if the rows of a table sum to one, "samples" if its columns do; empty for other numbers."""
    if bool((shares < 0).any()):
        return ""
    for name, dim in (("classes", 1), ("samples", 0)):
        if bool(((shares.float().sum(dim) - 1).abs() < _ROUNDING).all()):
            return name
    return ""
