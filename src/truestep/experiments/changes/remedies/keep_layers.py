"""The remedy for layers that are created in every forward: reuse and train the first ones."""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, MutableMapping
from contextlib import ExitStack
from types import FrameType
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.optimizers import built, parameters_of
from truestep.probes.context.local_variables import argument
from truestep.seams.patch import patch

_LAYERS = (
    "Linear", "Bilinear", "Embedding", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "LayerNorm",
    "BatchNorm1d", "BatchNorm2d", "GroupNorm", "PReLU", "RNN", "LSTM", "GRU",
)  # fmt: skip
_MOST_FRAMES = 16
_LIBRARY = "/torch/nn/modules/"
_CONTAINERS = f"{_LIBRARY}container.py"


class KeepLayers(Change):
    """A torch layer that a `forward` creates without registering it uses the parameters of the first one created there.

    From the second call on it shares them, and they join the optimizer that holds most of the surrounding module. New
    parameters are still drawn and discarded, so that the random numbers of the script stay the same.
    """

    name = "keep-layers"
    remedies = ("layer-created-in-forward",)

    def install(self, stack: ExitStack) -> None:
        import torch

        self._built = built(stack)
        self._made: MutableMapping[Any, tuple[Any, Hashable]] = weakref.WeakKeyDictionary()
        """Module and place of the forward that created a layer, by layer."""
        self._first: dict[Hashable, Any] = {}
        self._frame: FrameType | None = None
        self._counts: Counter[Hashable] = Counter()
        compiling = torch.compiler.is_compiling

        def __init__(module: Any, *args: Any, **kwargs: Any) -> None:
            init(module, *args, **kwargs)
            if not compiling():
                self._note(module)

        init = patch(stack, torch.nn.Module, "__init__", __init__)
        for name in _LAYERS:
            layer = getattr(torch.nn, name)
            patch(stack, layer, "forward", self._kept(layer.forward))

    def _note(self, module: Any) -> None:
        """Record the place where a module is created, if it is in the forward of another one."""
        import torch

        frame: FrameType | None = sys._getframe(2)
        maker = None
        for _ in range(_MOST_FRAMES):
            if frame is None:
                return
            code, file = frame.f_code, frame.f_code.co_filename.replace("\\", "/")
            if maker is None and _LIBRARY not in file:
                maker = code, frame.f_lasti
            builds = code.co_name == "__init__" and not file.endswith(_CONTAINERS)
            if builds and argument(frame, "self") is not module:
                return  # a part of a module under construction
            if code.co_name == "forward":
                break
            frame = frame.f_back
        outer = argument(frame, "self") if frame is not None and frame.f_code.co_name == "forward" else None
        if maker is None or outer is module or not isinstance(outer, torch.nn.Module):
            return
        if frame is not self._frame:  # another call of the forward
            self._frame = frame
            self._counts.clear()
        self._counts[maker] += 1
        self._made[module] = weakref.ref(outer), (weakref.ref(outer), maker, self._counts[maker])

    def _kept(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        import torch

        compiling = torch.compiler.is_compiling

        def same(layer: Any, *args: Any, **kwargs: Any) -> Any:
            if not compiling() and layer in self._made:
                self._share(layer, *self._made.pop(layer))
            return forward(layer, *args, **kwargs)

        return same

    def _share(self, layer: Any, outer: Any, place: Hashable) -> None:
        """Give a layer the parameters of the first one from its place."""
        owner = outer()
        if owner is None or any(module is layer for module in owner.modules()):
            return
        first = self._first.setdefault(place, layer)
        shapes = [[p.shape for p in each.parameters()] for each in (first, layer)]
        if first is layer or type(first) is not type(layer) or shapes[0] != shapes[1]:
            return
        for name, value in first._parameters.items():
            layer._parameters[name] = value
        layer._buffers.update(first._buffers)
        self._hold(first, owner)
        self.applied += 1

    def _hold(self, layer: Any, owner: Any) -> None:
        """Add a layer's parameters to the optimizer of most of the module around it."""
        import torch

        near = {id(p) for p in owner.parameters()}
        held = {optimizer: [id(p) for p in parameters_of(optimizer)] for optimizer in list(self._built)}
        mine = [p for p in layer.parameters() if not any(id(p) in ids for ids in held.values())]
        counts = {optimizer: len(near.intersection(ids)) for optimizer, ids in held.items()}
        optimizer = max(counts, key=lambda each: counts[each], default=None)
        if optimizer is not None and counts[optimizer] and not isinstance(optimizer, torch.optim.Adagrad):
            optimizer.param_groups[0]["params"].extend(mine)
