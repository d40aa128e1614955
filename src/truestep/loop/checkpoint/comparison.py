"""Comparison of the declarations of a checkpoint with those of the program; applies new values where possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from truestep.errors import BadCheckpoint
from truestep.loop.checkpoint.declared import DeclaredChange, Facts, take_schedule_values
from truestep.loop.optim.schedule_length import bind, compute_lrs, set_lr
from truestep.schedules import horizon_of

if TYPE_CHECKING:
    from pathlib import Path

    from truestep.loop.optim.schedulers import Schedule
    from truestep.loop.optim.updates import Updates

_OWN_LR = ("OneCycleLR", "CyclicLR")
"""Schedulers that set the lr from their arguments and ignore the lr of the optimizer."""
_TAKEN_FLAGS = ("nesterov", "maximize")


def compare(was: Facts, now: Facts, loops: Mapping[str, Any]) -> list[DeclaredChange]:
    """Return the changes in the declarations of parts that exist in both the checkpoint and the program.

    Args:
        was: declarations in the checkpoint.
        now: declarations of the program so far.
        loops: positions of the loops in the checkpoint.
    """
    walks = loops["walks"]
    loaders = was["loaders"]
    given = {name for name, facts in loaders.items() if facts.get("class") == "GivenLoader"}
    begun = [walk for walk in walks["active"] if walk["finished"]]
    # An iterable data set with saved state resumes there after any change. The position of a DataLoader is a number of
    # batches, so a change inside a pass would repeat or skip samples.
    under_way = {walk["name"] for walk in begun if walk["stream"] is None or walk["name"] in given}
    # the order of a DataLoader follows from the restored random states, not from the seed
    shuffled = {name for name in under_way - given if loaders.get(name, {}).get("shuffle")}
    passed = {"max_epochs": walks["epoch"], "max_steps": loops["global_step"]}
    found = list(_settings(was["settings"], now["settings"], passed, shuffled, schedules=bool(was["schedules"])))
    for name in loaders.keys() & now["loaders"].keys():
        found += _loader(name, loaders[name], now["loaders"][name], name in under_way)
    for name in was["optimizers"].keys() & now["optimizers"].keys():
        own = [facts for facts in now["schedules"].values() if facts["optimizer"] == name]
        found += _optimizer(name, was["optimizers"][name], now["optimizers"][name], own)
    for name in was["schedules"].keys() & now["schedules"].keys():
        found += _schedule(name, was["schedules"][name], now["schedules"][name])
    return found


def compare_parts(
    shelves: Mapping[str, tuple[Iterable[str], Iterable[str]]], dropped: set[str], path: Path
) -> list[DeclaredChange]:
    """Return the new and the dropped parts of a run.

    Args:
        shelves: names of the present and of the saved parts, by kind.
        dropped: names of the parts that the program has dropped.
        path: the checkpoint.

    Raises:
        BadCheckpoint: a part is missing, and its saved state would be lost.
    """
    changes: list[DeclaredChange] = []
    for kind, (present, saved) in shelves.items():
        if missing := set(saved) - set(present) - dropped:
            raise BadCheckpoint(
                f"the checkpoint {path} was made by a run with other parts",
                expected=f"{kind}s {sorted(saved)}, got {sorted(present)}",
                remedy=f"give the run {sorted(missing)[0]!r} too, also where an earlier epoch had added it; "
                "run.drop() then lets it go",
            )
        changes += [
            DeclaredChange(f'{kind} "{name}"', "", "new", "begins here") for name in sorted({*present} - {*saved})
        ]
        changes += [
            DeclaredChange(f'{kind} "{name}"', "saved", "", "dropped")
            for name in sorted(dropped & set(saved) - set(present))
        ]
    return changes


def refuse(changes: Iterable[DeclaredChange], path: Path, step: int) -> None:
    """Raise an error if the run cannot resume with one of the changes.

    Args:
        changes: from `compare`.
        path: the checkpoint.
        step: step of the checkpoint.

    Raises:
        BadCheckpoint: gives the old value, the new value and the reason.
    """
    refused = [change for change in changes if change.refused]
    if not refused:
        return
    first = refused[0]
    raise BadCheckpoint(
        f"{first.what} was {first.was} and is {first.now}, and the run cannot resume with that from {path}, "
        f"step {step}: {first.taken}",
        expected="; ".join(f"expected {change.what} {change.was}, got {change.now}" for change in refused),
        remedy="pass the old value, resume from a checkpoint between two epochs, or start a run in another out= with "
        "init_from=",
    )


def table(changes: Iterable[DeclaredChange]) -> str:
    """Return the changes as a table: name, old value, new value and decision."""
    rows = [("", "was", "is", "")]
    rows += [(change.what, change.was or "-", change.now or "-", change.taken) for change in changes]
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    return "\n".join(
        "  " + "  ".join((*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[3])).rstrip()
        for row in rows
    )


# --- comparison ---


def _settings(
    was: Facts, now: Facts, passed: Mapping[str, int], shuffled: set[str], *, schedules: bool
) -> Iterator[DeclaredChange]:
    stretched = "; schedules over the whole run are as long as it" if schedules else ""
    for name in now:
        if was.get(name) == now[name]:
            continue
        before, taken, refused, ends = was.get(name, ""), "taken: the script reads it", False, False
        if name == "seed":
            taken = "taken: later passes have another order; random generators continue from their restored states"
            if shuffled:
                taken = f'the pass over "{min(shuffled)}" is in another order, so samples would come twice or never'
                refused = True
        elif name in passed:
            taken = "taken" + stretched
            ends = now[name] != "None" and passed[name] >= int(now[name])
            if ends:
                taken = f"taken: the run is over, at {passed[name]} {name.removeprefix('max_')}"
        elif name in ("precision", "deterministic", "device", "strategy"):
            taken = "taken"
        yield DeclaredChange(name, before, now[name], taken, refused, ends)


def _loader(name: str, was: Facts, now: Facts, under_way: bool) -> Iterator[DeclaredChange]:
    for fact, before in was.items():
        after = now[fact]
        if before == after:
            continue
        what = f'{"data length" if fact == "samples" else fact} of "{name}"'
        taken, refused = "taken", False
        grown = fact == "samples" and not (was["shuffle"] or now["shuffle"])
        if fact == "num_workers":
            taken = "taken: the batches are the same"
        elif fact != "drop_last" and under_way and not grown:
            taken, refused = "a pass is under way, in which samples would come twice or never", True
        yield DeclaredChange(what, str(before), str(after), taken, refused)


def _optimizer(name: str, was: Facts, now: Facts, schedules: list[Facts]) -> Iterator[DeclaredChange]:
    if was["class"] != now["class"]:
        yield DeclaredChange(
            f'the class of "{name}"', _short(was["class"]), _short(now["class"]), "its saved state does not fit", True
        )
        return
    for fact in ("accumulate", "clip_norm"):
        if was[fact] != now[fact]:
            yield DeclaredChange(f'{fact} of "{name}"', str(was[fact]), str(now[fact]), "taken")
    several = len(now["groups"]) > 1
    for number, (before, after) in enumerate(zip(was["groups"], now["groups"], strict=False)):
        group = f", group {number}" if several else ""
        for key in before.keys() & after.keys():
            if _same(before[key], after[key]):
                continue
            taken = _decision(now["class"], key, before[key], after[key], schedules)
            yield DeclaredChange(f'{key} of "{name}"{group}', _number(before[key]), _number(after[key]), taken)


def _decision(kind: str, key: str, before: Any, after: Any, schedules: list[Facts]) -> str:
    """Return the decision on a changed hyperparameter; begins with "taken" if the new value is used."""
    if key == "lr":
        own = [_short(facts["class"]) for facts in schedules if _short(facts["class"]) in _OWN_LR]
        if own:
            return f"not taken: {own[0]} sets the lr from its own arguments"
        if schedules and before and after:
            return f"taken: its schedule goes on at {after / before:.4g} times the height"
        return "taken"
    flag = isinstance(before, bool) or isinstance(after, bool) or before is None or after is None
    grows_state = key == "momentum" and not before and not kind.endswith(".SGD")
    if (flag and key not in _TAKEN_FLAGS) or isinstance(after, str) or grows_state:
        return "not taken: the optimizer's state was created without it" if after else "not taken: its state needs it"
    return "taken"


def _schedule(name: str, was: Facts, now: Facts) -> Iterator[DeclaredChange]:
    ours = "." not in was["class"] and "." not in now["class"]
    if was["class"] != now["class"]:
        taken = "taken: continues from the same step" if ours else "its saved state does not fit"
        yield DeclaredChange(f'the kind of "{name}"', _short(was["class"]), _short(now["class"]), taken, not ours)
        if not ours:
            return
    if was["every"] != now["every"]:
        yield DeclaredChange(
            f'every of "{name}"', was["every"], now["every"], "it has counted in the other unit so far", True
        )
    for value in was["values"].keys() & now["values"].keys():
        if was["values"][value] != now["values"][value]:
            before, after = (text if len(text) < 40 else "..." for text in (was["values"][value], now["values"][value]))
            yield DeclaredChange(f'{value} of "{name}"', before, after, "taken")


def _short(kind: str) -> str:
    return kind.rpartition(".")[2]


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


# --- applying new values ---


def apply_changes(
    changes: Iterable[DeclaredChange],
    was: Facts,
    now: Facts,
    updates: Mapping[str, Updates],
    schedules: Mapping[str, Schedule],
) -> None:
    """Set the new declared values in optimizers and schedules, after their state was loaded."""
    taken = {change.what for change in changes if change.taken.startswith("taken")}
    for name in was["optimizers"].keys() & now["optimizers"].keys():
        if name not in updates:
            continue
        own = [schedule.scheduler for schedule in updates[name].schedules]
        before, after = was["optimizers"][name]["groups"], now["optimizers"][name]["groups"]
        several = len(after) > 1
        groups = updates[name].optimizer.param_groups
        for number, (group, old, new) in enumerate(zip(groups, before, after, strict=False)):
            suffix = f", group {number}" if several else ""
            for key in old.keys() & new.keys():
                if f'{key} of "{name}"{suffix}' in taken:
                    if key == "lr":
                        _apply_lr(group, number, old[key], new[key], own)
                    else:
                        group[key] = type(group[key])(new[key]) if isinstance(group[key], tuple) else new[key]
    for name, schedule in schedules.items():
        end = f' of "{name}"'
        names = {what.removesuffix(end) for what in taken if what.endswith(end)}
        take_schedule_values(schedule.scheduler, names, schedule.values)


def _apply_lr(group: dict[str, Any], number: int, old: float, new: float, schedulers: list[Any]) -> None:
    ratio = new / old if old else None
    if not schedulers or ratio is None:
        set_lr(group, new)
    else:
        set_lr(group, float(group["lr"]) * ratio)
    if "initial_lr" in group:
        group["initial_lr"] = new
    for scheduler in schedulers:
        _rebase(scheduler, number, new, group)


def _rebase(scheduler: Any, number: int, lr: float, group: Mapping[str, Any]) -> None:
    for inner in getattr(scheduler, "_schedulers", ()):
        _rebase(inner, number, lr, group)
    if number < len(getattr(scheduler, "base_lrs", ())):
        scheduler.base_lrs[number] = lr
    if number < len(getattr(scheduler, "_last_lr", ())):
        scheduler._last_lr[number] = group["lr"]


def renew_lr(scheduler: Any) -> None:
    """Set the lr of a schedule over the whole run again, after a change of its length or arguments."""
    horizon = horizon_of(scheduler)
    if horizon is None or horizon.needs_total:
        return
    if not horizon.given and horizon.total_steps is not None:
        bind(scheduler, horizon.total_steps)
        return
    compute_lrs(scheduler)
