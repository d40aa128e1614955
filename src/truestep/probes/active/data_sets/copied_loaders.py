"""Loaders with the name of a test that hold the arrays of a part for choices, as after a copied line."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FrameType
from typing import Any

from truestep.events import FigureOfTest, Site
from truestep.probes.active.rows.names import stored_at
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import named
from truestep.syntax import of_part

_MOST = 16


class CopiedLoaders:
    """Emits `FigureOfTest`.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._seen: set[int] = set()
        """Loaders that were looked at."""

    def evaluated(self, data: Any, frames: list[FrameType], site: Site | None) -> None:
        """Handle a call of an evaluation on a batch of a loader.

        Args:
            data: the data set of the loader.
            frames: the user's frames.
            site: line of the call.
        """
        scene, loader = self._scene, self._scene.loader
        if loader is None or loader in self._seen or not frames or len(self._seen) >= _MOST:
            return
        self._seen.add(loader)
        if type(data) is not scene.torch.utils.data.TensorDataset or not data.tensors:
            return
        names = [name for name in _names(scene, frames, data) if of_part(name)]
        parts = {of_part(name.rpartition(".")[2]) for name in named(scene, frames, data.tensors[0])}
        if not names or {of_part(name) for name in names} != {"test"} or parts != {"choice"}:
            return
        held = next(named(scene, frames, data.tensors[0]))
        place = stored_at(frames, names[0])
        scene.emit(FigureOfTest(name=names[0], part=held, place=place or site, site=site))


def _names(scene: Scene, frames: list[FrameType], data: Any) -> Iterator[str]:
    """Yield the variables that hold a loader of a data set, or the data set.

    A parameter is called after its use in one function, which can be called with other loaders.
    """
    spaces = {id(frame.f_globals): frame.f_globals for frame in frames}.values()
    own = [{name: value for name, value in variables(one).items() if name not in _parameters(one)} for one in frames]
    for space in (*own, *spaces):
        for name, value in list(space.items()):
            of_loader = type(value) is scene.torch.utils.data.DataLoader
            if value is data or (of_loader and vars(value).get("dataset") is data):
                yield name


def _parameters(frame: FrameType) -> tuple[str, ...]:
    code = frame.f_code
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + stars]
