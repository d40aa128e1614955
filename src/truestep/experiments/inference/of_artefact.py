"""The inference of a checkpoint's model, or of exports, in this process."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from truestep.errors import BadInputs, TrueStepError, UsageError
from truestep.experiments.inference.measured import InferenceMeasured, read
from truestep.experiments.instruments.inference.measuring import measure
from truestep.experiments.instruments.inference.subject import Subject
from truestep.export.calls import Call
from truestep.export.examples import calls_from
from truestep.export.exporting import CONFIG
from truestep.export.factories import build
from truestep.loop.checkpoint.listing import find
from truestep.loop.checkpoint.weights import load_weights

_BATCHES = 4


@dataclass(frozen=True)
class Wanted:
    """Options of a measurement.

    Attributes:
        batches: numbers of samples; empty for 1 and that of the largest real batch.
        threads: numbers of threads; empty for that of torch.
        only: names of ways; empty for all.
        budget_s: approximate duration in seconds.
        says: called with each line of progress.
    """

    batches: Sequence[int] = ()
    threads: Sequence[int] = ()
    only: Sequence[str] = ()
    budget_s: float = 120.0
    says: Callable[[str], None] = field(default=lambda text: None)


def exports_at(path: Path) -> dict[str, Path]:
    """Return the folders of exports by format: of one export, of its file, or of several in one folder.

    A quantised one is "int8 onnx".

    Args:
        path: a folder of `truestep export`, its file of the model, or the folder with several of them.
    """
    place = path if path.is_dir() else path.parent
    folders = [place] if (place / CONFIG).exists() else sorted(one.parent for one in place.glob(f"*/{CONFIG}"))
    found = {}
    for folder in folders if path.is_dir() or (place / CONFIG).exists() else ():
        try:
            config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
            format = str(config["format"])
            kind = (config.get("quantisation") or {}).get("kind")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        found[format if kind is None else f"{kind} {format}"] = folder
    return found


def bench_checkpoint(
    path: str,
    *,
    factory: str,
    arguments: Mapping[str, Any],
    batches: Iterable[Any],
    weights: str | None,
    wanted: Wanted,
) -> InferenceMeasured:
    """Time the inference of a checkpoint's model.

    Args:
        path: a checkpoint, or a run.
        factory: "module:factory" that builds the model.
        arguments: of the factory.
        batches: real batches.
        weights: name of the model in the checkpoint; None for the first.
        wanted: sizes, threads, ways, budget.
    """
    checkpoint = find(path)
    name = weights or checkpoint.models[0]
    model = build(factory, arguments)
    load_weights(model, checkpoint, name=name)
    model = model.cpu().eval()
    calls = calls_from(model, batches, None, _BATCHES)
    facts = [f"{_count(model):,} parameters, from {checkpoint.path}", _inputs(calls)]
    with tempfile.TemporaryDirectory(prefix="truestep-inference-") as folder:
        return _measured(Subject(calls, Path(folder), model), f"{type(model).__name__} ({name})", facts, wanted)


def bench_exports(exports: Mapping[str, Path], batches: Iterable[Any] | None, wanted: Wanted) -> InferenceMeasured:
    """Time the inference of exports, next to their model where its factory and checkpoint are there.

    Args:
        exports: folder by format.
        batches: real batches; None draws inputs, if they are numbers of a fixed shape.
        wanted: sizes, threads, ways, budget.
    """
    first = next(iter(exports.values()))
    config = _config(first)
    model, notes = _model_of(first, config)
    calls = _drawn(config) if batches is None else _calls(config, model, batches)
    facts = [f"exports: {', '.join(f'{format} ({folder})' for format, folder in exports.items())}", _inputs(calls)]
    with tempfile.TemporaryDirectory(prefix="truestep-inference-") as folder:
        subject = Subject(calls, Path(folder), model, exports)
        return _measured(subject, str(config["model"]["class"]).rpartition(".")[2], facts, wanted, notes)


def _config(folder: Path) -> dict[str, Any]:
    held: dict[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    return held


def _measured(
    subject: Subject, title: str, facts: Sequence[str], wanted: Wanted, notes: Sequence[str] = ()
) -> InferenceMeasured:
    size = max(call.size for call in subject.calls)
    document = measure(
        subject,
        wanted.batches or sorted({1, size}),
        wanted.threads or [torch.get_num_threads()],
        only=wanted.only,
        budget_s=wanted.budget_s,
        says=wanted.says,
    )
    return read(document, title, facts, notes)


def _model_of(folder: Path, config: Mapping[str, Any]) -> tuple[nn.Module | None, list[str]]:
    """Return the model of an export with its weights; None with the reason if it cannot be built here."""
    described, origin = config["model"], config["weights"]
    run = folder.parent.parent
    saved = run / "checkpoints" / str(origin.get("checkpoint"))
    if described["factory"] is None or not origin.get("checkpoint") or not saved.exists():
        missing = "config.json names no factory" if described["factory"] is None else "its checkpoint is not there"
        return None, [f"eager was not measured: {missing}"]
    try:
        model = build(described["factory"], described["arguments"])
        load_weights(model, find(saved), name=origin["name"])
    except (TrueStepError, ImportError) as error:
        said = error.happened if isinstance(error, TrueStepError) else str(error)
        return None, [f"eager was not measured: {said}"]
    return model.cpu().eval(), []


def _calls(config: Mapping[str, Any], model: nn.Module | None, batches: Iterable[Any]) -> list[Call]:
    """Return calls from real batches; without the model, of the entries or first fields that the export takes."""
    if model is not None:
        return calls_from(model, batches, None, _BATCHES)
    names = [each["name"] for each in config["inputs"]]
    calls = []
    for batch, _ in zip(batches, range(_BATCHES), strict=False):
        fields = [batch[name] for name in names] if isinstance(batch, Mapping) else batch
        fields = [fields] if isinstance(fields, torch.Tensor) else list(fields)[: len(names)]
        if len(fields) < len(names) or not all(isinstance(each, torch.Tensor) for each in fields):
            raise BadInputs(
                f"a batch has not the inputs of the export: {', '.join(names)}",
                expected=f"expected {len(names)} tensors, got {len(fields)}",
                remedy="pass a file with a tuple of these tensors, or a dictionary by name",
            )
        calls.append(Call(tuple(fields), {}, tuple(names)).copied())
    if not calls:
        raise BadInputs(
            "no batch was read: --inputs is empty", expected="expected one batch", remedy="pass real inputs"
        )
    return calls


def _drawn(config: Mapping[str, Any]) -> list[Call]:
    """Return a call with drawn inputs of the shapes in `config.json`."""
    free = "batch"
    tensors = []
    for each in config["inputs"]:
        kind = getattr(torch, each["dtype"])
        shape = [1 if size == free else size for size in each["shape"]]
        if not kind.is_floating_point or not all(isinstance(size, int) for size in shape):
            raise UsageError(
                f"input {each['name']!r} of the export is {each['dtype']} {each['shape']}, and cannot be drawn",
                expected="expected real inputs: only numbers of a fixed shape are drawn",
                remedy="pass --inputs FILE, or MODULE:NAME of a loader",
            )
        tensors.append(torch.randn(shape).to(kind))
    return [Call(tuple(tensors), {}, tuple(each["name"] for each in config["inputs"]))]


def _inputs(calls: Sequence[Call]) -> str:
    largest = max(calls, key=lambda call: call.size)
    shapes = ", ".join(f"{name} {list(t.shape)}" for name, t in zip(largest.names, largest.tensors, strict=True))
    return f"inputs: {shapes}"


def _count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
