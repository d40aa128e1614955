"""Exports of a run and of a checkpoint: the model of `truestep.export`, with its origin and preprocessing."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from truestep.errors import BadCheckpoint, BadPart, BadSettings, SeveralProcesses
from truestep.export.card import Facts
from truestep.export.exporting import Exported, export
from truestep.export.factories import build
from truestep.export.int8.wanted import Int8, name_of
from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.loop.checkpoint.listing import by_metric, evaluated, find, listed
from truestep.loop.checkpoint.weights import load_weights
from truestep.loop.inference.observed import observed_in
from truestep.loop.inference.record import read_json, record_of
from truestep.loop.log.mean import Mean
from truestep.loop.process.provenance import describe
from truestep.loop.process.terminal import say
from truestep.seams.wrappers import wrapped_model
from truestep.supervision.session import current

_BESIDE = ("step", "epoch", "lr", "grad_norm", "skipped_steps")
"""Names in a log that are not results."""

if TYPE_CHECKING:
    from torch import nn
    from torch.utils.data import DataLoader

    from truestep.loop.loading.given import GivenLoader
    from truestep.loop.loading.loader import Loader
    from truestep.loop.log.logs import Logs
    from truestep.loop.ranks.strategy import Strategy
    from truestep.loop.run.evaluation import Evaluation
    from truestep.loop.run.registry import Parts


def export_checkpoint(
    path: str | Path,
    *,
    factory: str,
    arguments: Mapping[str, Any],
    batches: Iterable[Any],
    to: str,
    weights: str | None,
    folder: Callable[[Path], Path],
    **options: Any,
) -> tuple[Exported, str]:
    """Export a model of a checkpoint; return the export, and the name of the checkpoint.

    Args:
        path: as for `load_weights`.
        factory: "module:factory" that builds the model.
        arguments: of the factory.
        batches: real batches.
        to: format of the export.
        weights: name of the model in the checkpoint; None for the first; averages come later.
        folder: returns the folder of the export for the path of the checkpoint.
        **options: of `truestep.export.export`.

    Raises:
        BadCheckpoint: the checkpoint is missing or damaged.
        KeysDoNotMatch: the factory builds another model than that of the checkpoint.
    """
    checkpoint = find(path)
    name = weights or checkpoint.models[0]
    model = build(factory, arguments)
    load_weights(model, checkpoint, name=name)
    about = _about(checkpoint, name)
    target = folder(checkpoint.path)
    found = export(model, target, to=to, batches=batches, factory=factory, arguments=arguments, **about, **options)
    return found, f"{checkpoint.path} ({name})"


def _about(checkpoint: Checkpoint, name: str) -> dict[str, Any]:
    """Return origin, preprocessing and facts of the training, of a checkpoint, as keyword arguments of `export`."""
    saved = record_of(checkpoint)
    environment = read_json(checkpoint.path.parent.parent / "environment.json")
    return {
        "origin": origin_of(checkpoint, name),
        "preprocessing": saved.preprocessing,
        "facts": Facts(*_metrics_in(checkpoint), saved.settings, environment, observed_in(checkpoint)),
    }


def _metrics_in(checkpoint: Checkpoint) -> tuple[dict[str, float], dict[str, tuple[float, int]]]:
    """Return the last logged values, and the shares of samples among them with their numbers."""
    state = checkpoint.state("cpu")
    counted: dict[str, tuple[float, int]] = {}
    for name, held in state.get("means", {}).items():
        mean = Mean()
        mean.load_state_dict(held)
        if mean.shares and len(state.get("ranks", ())) <= 1:
            counted[name] = (float(mean), int(mean.count))
    logs = checkpoint.path.parent.parent / "metrics.jsonl"
    return last_values(logs, state.get("log_bytes", 0)) if state else {}, counted


def last_values(path: Path, size: int) -> dict[str, float]:
    """Return the last value of each name in a log, without learning rates and norms of gradients.

    Args:
        path: `metrics.jsonl` of a run; it may be missing.
        size: bytes of it that were written when the weights were saved.
    """
    try:
        lines = path.read_bytes()[:size].decode("utf-8", "replace").splitlines()
    except OSError:
        return {}
    values: dict[str, float] = {}
    for line in lines:
        try:
            held = json.loads(line)
        except ValueError:
            continue
        values |= {name: value for name, value in held.items() if isinstance(value, int | float)}
    return {name: value for name, value in values.items() if name.partition("/")[0] not in _BESIDE}


def origin_of(checkpoint: Checkpoint, name: str) -> dict[str, Any]:
    """Return checkpoint, step and metric of weights."""
    return {
        "checkpoint": checkpoint.path.name,
        "name": name,
        "step": checkpoint.step,
        "epoch": checkpoint.epoch,
        "metric": checkpoint.metric,
    }


def export_of_run(
    model: nn.Module,
    loader: Loader | GivenLoader | DataLoader[Any],
    *,
    to: str,
    best: bool,
    out: str | Path | None,
    evaluation: Evaluation,
    parts: Parts,
    strategy: Strategy,
    step: int,
    folder: Path | None,
    logs: Logs,
    quantise: Int8 | None,
    **options: Any,
) -> Exported:
    """Export a model of a run with its current weights, or those of its best checkpoint; see `Run.export`."""
    if strategy.world_size > 1:
        raise SeveralProcesses(
            f"run.export() was called in {strategy.world_size} processes",
            expected="expected one process: an export is written once",
            remedy="save a checkpoint, and export it with `truestep export`",
        )
    if folder is None and (out is None or best):
        raise BadSettings(
            "the run has no folder, and so no checkpoints" if best else "the run has no folder for the export",
            expected="expected out= of the run" if best else "expected out=",
            remedy='pass out="runs/name" to Run' if best else 'pass out="exports/name" to run.export()',
        )
    target = Path(out) if out is not None else Path(folder or "") / "export" / name_of(to, quantise)
    averages = {name: followed.average.model for name, followed in parts.averaging.shelf.items()}
    own = wrapped_model(model)
    named = next((name for name, one in (parts.models | averages).items() if wrapped_model(one) is own), None)
    session = current()
    observed = parts.observed.so_far()
    with nullcontext() if session is None else session.aside():
        if best:
            model, about = _best_of(Path(folder or ""), model, named)
        else:
            logged = {} if logs.path is None else last_values(logs.path, logs.secure())
            counted = {name: (float(mean), int(mean.count)) for name, mean in parts.means.items() if mean.shares}
            about = {
                "origin": {"name": named, "step": step},
                "preprocessing": parts.record.preprocessing,
                "facts": Facts(logged, counted, parts.record.settings, describe(torch.device("cpu")), observed),
            }
        batches = evaluation.batches(loader)
        found = export(model, target, to=to, batches=batches, quantise=quantise, **about, **options)
    say(f"truestep: {found}")
    return found


def _best_of(folder: Path, model: nn.Module, name: str | None) -> tuple[nn.Module, dict[str, Any]]:
    """Return a copy of a model with the weights of the best checkpoint of a run, and its description for `export`."""
    if name is None:
        raise BadPart(
            f"{type(model).__name__} is not a model of the run, and its checkpoints have no weights for it",
            expected="expected a model that was passed to run.model(), or an average of one",
            remedy="pass the model of the run, or leave best=True out",
        )
    if not by_metric([*listed(folder / "checkpoints"), *evaluated(folder / "checkpoints")]):
        raise BadCheckpoint(
            f"no checkpoint in {folder} has a metric, so none is the best",
            expected="expected a checkpoint that was saved with a metric",
            remedy="call run.save(metric=...) in the loop, or leave best=True out",
        )
    checkpoint = find(folder / "best")
    own = copy.deepcopy(wrapped_model(model)).cpu()
    load_weights(own, checkpoint, name=name)
    return own, _about(checkpoint, name)
