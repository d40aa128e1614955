"""What a run was declared with: kept in its checkpoints, and compared when it resumes.

A value that the script or its flags change between two starts is *declared* differently; one that a schedule or the
loop changed is not. That tells a wish from a state: what was declared differently is taken, and said in a table; what
cannot be taken is refused; all else goes on as it was.
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
        "max_time",
        "on_sigusr1",
        "trackers",
        "alerts",
        "watch",
        "device",
        "precision",
        "accumulate",
        "clip_norm",
    }
)
"""Settings that change no result, and those that are compared as they were resolved or where they are used."""
_PROGRESS = frozenset(
    {"optimizer", "base_lrs", "last_epoch", "best", "num_bad_epochs", "cooldown_counter", "T_cur", "T_i", "verbose"}
)
"""What changes in a scheduler while it is stepped; so do most names that begin with an underscore."""
_DERIVED = frozenset({"_milestones", "_schedule_phases", "_anneal_func_type"})

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was declared differently.

    Attributes:
        what: its name.
        was: in the checkpoint; empty for a part that is new.
        now: in this program; empty for a part that was dropped.
        taken: what becomes of it.
        refused: whether the run cannot go on with it; `taken` then says why.
        ends: whether the run is over with it.
    """

    what: str
    was: str
    now: str
    taken: str
    refused: bool = False
    ends: bool = False


def facts_of_settings(settings: Settings, precision: str, device: str) -> Facts:
    """Return the settings that results depend on, as text by name, with the precision and the device that are used."""
    shown = {field.name: shown_value(getattr(settings, field.name)) for field in fields(settings)}
    kept = {name: text for name, text in shown.items() if name not in _OF_NO_EFFECT and text is not None}
    return {**kept, "precision": precision, "device": device}


def facts_of_loader(loader: Loader | GivenLoader) -> Facts:
    """Return what the batches of a loader depend on, and its workers."""
    try:
        samples = len(loader.dataset)
    except TypeError:
        samples = None
    return {
        "class": type(loader).__name__,
        "batch_size": loader.batch_size,
        "shuffle": loader.shuffle,
        "drop_last": loader.drop_last,
        "samples": samples,
        "num_workers": loader.num_workers,
    }


def facts_of_optimizer(optimizer: torch.optim.Optimizer, accumulate: int, clip_norm: float | None) -> Facts:
    """Return the class and the hyperparameters of an optimizer, the lr of each group without its schedule."""
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
    """Return the class and the arguments of a scheduler, those of schedulers in it too, as text by path."""
    values = {path: repr(value) for path, value in _values(scheduler)}
    return {"class": _kind(scheduler), "every": every, "optimizer": optimizer, "values": values}


def take_schedule_values(scheduler: Any, names: set[str], given: Mapping[str, Any]) -> None:
    """Give a scheduler that was loaded the arguments that it was declared with.

    Args:
        scheduler: after its `load_state_dict`.
        names: of what was declared differently.
        given: the arguments by path, from `schedule_values` before it was loaded.
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
    """Return copies of the arguments of a scheduler, those of schedulers in it too, by path."""
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
    """Return a hyperparameter as a checkpoint can hold it; `...` for what it cannot."""
    if isinstance(value, torch.Tensor):
        return value.item() if value.numel() == 1 else ...
    return value if _is_plain(value) else ...


def _kind(part: Any) -> str:
    horizon = horizon_of(part)
    return horizon.name if horizon is not None else f"{type(part).__module__}.{type(part).__qualname__}"


def shown_value(value: Any) -> str | None:
    """Return a value as text that is the same in every process; None for what has no such text."""
    text = repr(sorted(map(repr, value))) if isinstance(value, set | frozenset) else repr(value)
    return None if " at 0x" in text else text
