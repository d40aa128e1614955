"""Declarations of a run: saved in its checkpoints, and compared when it resumes.

A declared value is the one in the script or its flags, for example the lr passed to the optimizer, before a schedule
or the loop changes it. So an intended change can be distinguished from a changed state: a new declared value is used
and reported in a table, or refused if the run cannot resume with it; all other values continue from the checkpoint.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import torch

from truestep.schedules import horizon_of

if TYPE_CHECKING:
    from truestep.loop.loading.given import GivenLoader
    from truestep.loop.loading.loader import Loader
    from truestep.loop.settings.settings import Settings

_OF_NO_EFFECT = frozenset(
    {"out", "resume", "init_from", "keep_last", "save_every_n_steps", "asynchronous", "log_every_n_steps", "progress"}
    | {
        "save_every_n_minutes",
        "mirror",
        "cpu_offload",
        "max_time",
        "rank_timeout",
        "on_sigusr1",
        "trackers",
        "alerts",
        "watch",
        "predict",
        "export",
        "device",
        "precision",
        "accumulate",
        "clip_norm",
    }
)
"""Settings without an effect on results, and settings that are compared elsewhere, in their resolved form."""
_PROGRESS = frozenset(
    {"optimizer", "base_lrs", "last_epoch", "best", "num_bad_epochs", "cooldown_counter", "T_cur", "T_i", "verbose"}
)
"""Attributes of schedulers that change in a step; so do most names that begin with an underscore."""
_DERIVED = frozenset({"_milestones", "_schedule_phases", "_anneal_func_type"})

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DeclaredChange:
    """One changed declaration.

    Attributes:
        what: its name.
        was: value in the checkpoint; empty for a new part.
        now: value in this program; empty for a dropped part.
        taken: the decision, in words; begins with "taken" if the new value is used.
        refused: True if the run cannot resume with it; `taken` is then the reason.
        ends: True if the run is over with it.
    """

    what: str
    was: str
    now: str
    taken: str
    refused: bool = False
    ends: bool = False


def facts_of_settings(settings: Settings, precision: str, device: str) -> Facts:
    """Return the settings that affect results, as text by name, with the resolved precision and device."""
    shown = {field.name: shown_value(getattr(settings, field.name)) for field in fields(settings)}
    kept = {name: text for name, text in shown.items() if name not in _OF_NO_EFFECT and text is not None}
    return {**kept, "precision": precision, "device": device}


def facts_of_loader(loader: Loader | GivenLoader) -> Facts:
    """Return the properties of a loader that determine its batches, and its number of workers."""
    try:
        samples = len(loader.dataset)
    except TypeError:
        samples = None
    return {
        "class": type(loader).__name__,
        "batch_size": getattr(loader, "global_batch_size", loader.batch_size),
        "shuffle": loader.shuffle,
        "drop_last": loader.drop_last,
        "samples": samples,
        "num_workers": loader.num_workers,
    }


def facts_of_optimizer(optimizer: torch.optim.Optimizer, accumulate: int, clip_norm: float | None) -> Facts:
    """Return the class and the hyperparameters of an optimizer, with the lr of each group before any schedule."""
    groups = [
        {
            key: value
            for key, given in {**group, "lr": group.get("initial_lr", group.get("lr"))}.items()
            if key not in ("params", "initial_lr", "param_names") and (value := _plain(given)) is not ...
        }
        for group in optimizer.param_groups
    ]
    return {"class": _kind(optimizer), "groups": groups, "accumulate": accumulate, "clip_norm": clip_norm}


def facts_of_schedule(scheduler: Any, every: str, optimizer: str) -> Facts:
    """Return the class and the arguments of a scheduler, including those of nested schedulers, as text by path."""
    values = {path: repr(value) for path, value in _values(scheduler)}
    return {"class": _kind(scheduler), "every": every, "optimizer": optimizer, "values": values}


def take_schedule_values(scheduler: Any, names: set[str], given: Mapping[str, Any]) -> None:
    """Set changed arguments of a scheduler again, after `load_state_dict` has overwritten them.

    Args:
        scheduler: the scheduler, after its `load_state_dict`.
        names: paths of the changed arguments.
        given: the arguments by path, from `schedule_values` before `load_state_dict`.
    """
    for path in names & given.keys():
        holder, *inner = path.split(".")
        target = scheduler
        while inner:
            target = target._schedulers[int(holder)]
            holder, *inner = inner
        if hasattr(target, holder):
            setattr(target, holder, given[path])


def schedule_values(scheduler: Any) -> dict[str, Any]:
    """Return copies of the arguments of a scheduler, including those of nested schedulers, by path."""
    return copy.deepcopy(dict(_values(scheduler)))


def _values(scheduler: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    horizon = horizon_of(scheduler)
    if horizon is not None:
        yield from ((path + name, value) for name, value in horizon.arguments.items())
        return
    for name, value in vars(scheduler).items():
        if name not in _PROGRESS and (not name.startswith("_") or name in _DERIVED) and _is_plain(value):
            yield path + name, value
    for number, inner in enumerate(getattr(scheduler, "_schedulers", ())):
        yield from _values(inner, f"{path}{number}.")


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, Counter) or type(value) is dict:
        return all(_is_plain(key) and _is_plain(item) for key, item in value.items())
    return value is None or isinstance(value, bool | int | float | str)


def _plain(value: Any) -> Any:
    """Return a hyperparameter in a form for a checkpoint; `...` if there is none."""
    if isinstance(value, torch.Tensor):
        return value.item() if value.numel() == 1 else ...
    return value if _is_plain(value) else ...


def _kind(part: Any) -> str:
    horizon = horizon_of(part)
    return horizon.name if horizon is not None else f"{type(part).__module__}.{type(part).__qualname__}"


def shown_value(value: Any) -> str | None:
    """Return a value as text that is the same in every process; None if its text contains an address."""
    text = repr(sorted(map(repr, value))) if isinstance(value, set | frozenset) else repr(value)
    return None if " at 0x" in text else text
