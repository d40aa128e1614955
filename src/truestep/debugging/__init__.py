"""Tools to look inside a training: one step in detail, activations, and a profile of the time.

    with truestep.debugging.inspect(model) as seen:
        criterion(model(x), y).backward()
    print(seen)

Each is a context manager. Its hooks are removed when the context is left, also by an exception, and the results of the
training are unchanged.

inspecting, inspection, _record        one step: hooks, result, observations and conclusions
profiling, timings                     times from torch's profiler
feature_hooks                          outputs of layers, recorded or replaced
statistics, _nested, _visible          statistics of tensors; nested values; modules that hooks can see
_layers_table, _times_table, _tables   the tables
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truestep._lazy import attribute

if TYPE_CHECKING:
    from truestep.debugging.feature_hooks import Features, features
    from truestep.debugging.inspecting import inspect
    from truestep.debugging.inspection import Inspection
    from truestep.debugging.profiling import Profile, profile

__all__ = ["Features", "Inspection", "Profile", "features", "inspect", "profile"]

_HOMES = {
    "Features": "truestep.debugging.feature_hooks",
    "features": "truestep.debugging.feature_hooks",
    "inspect": "truestep.debugging.inspecting",
    "Inspection": "truestep.debugging.inspection",
    "Profile": "truestep.debugging.profiling",
    "profile": "truestep.debugging.profiling",
}


def __getattr__(name: str) -> object:
    return attribute(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
