"""`export`: a model is traced, written, loaded again in a fresh process, and compared with eager."""

from __future__ import annotations

import copy
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

from truestep.errors import ExportDiffers, FileExists, UsageError
from truestep.export import config_file
from truestep.export.calls import Call, Chosen
from truestep.export.card import Facts, card
from truestep.export.comparing import Comparison, compare, tolerance_for
from truestep.export.examples import calls_from, edge_calls
from truestep.export.formats import FILES, Format, Source, format_of
from truestep.export.int8.quantising import without_torchao
from truestep.export.int8.table import verdict
from truestep.export.int8.wanted import TOLERANCE, Int8, Quantised
from truestep.export.shapes import free_dimensions
from truestep.export.tracing import Plain, Traced, is_plain, plain, traced
from truestep.model.modes import evaluating
from truestep.seams.wrappers import wrapped_model

CONFIG, CARD = "config.json", "README.md"


@dataclass(frozen=True)
class Exported:
    """A finished export.

    Attributes:
        folder: with the model and `config.json`.
        format: one of "pt2", "onnx", "aoti", "safetensors".
        config: the content of `config.json`.
        comparison: with the outputs of the model.
        notes: facts about the model that its export does not have, and calls that were not compared.
    """

    folder: Path
    format: str
    config: dict[str, Any]
    comparison: Comparison
    notes: tuple[str, ...]

    @property
    def file(self) -> Path:
        """The file of the model."""
        return self.folder / FILES[self.format]

    def __str__(self) -> str:
        found, int8 = self.comparison, self.config["quantisation"]
        said = (
            f"{self.file}: equal to {'eager' if int8 is None else 'int8 in eager'} in {len(found.rows)} calls in a "
            f"fresh process ({found.runtime}), largest difference {found.largest:.2g}, relative "
            f"{found.relative:.2g} (tolerance {found.tolerance:.0e})"
        )
        return said if int8 is None else f"{said}; {verdict(int8)}"


def export(
    model: nn.Module,
    folder: str | Path,
    *,
    to: str,
    batches: Iterable[Any],
    inputs: Chosen | None = None,
    factory: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    dynamic: Mapping[str, Sequence[int]] | None = None,
    fixed_batch: bool = False,
    tolerance: float | None = None,
    count: int = 4,
    origin: Mapping[str, Any] | None = None,
    preprocessing: Mapping[str, Any] | None = None,
    quantise: Int8 | None = None,
    facts: Facts | None = None,
) -> Exported:
    """Export a model, and compare the export with it in a fresh process.

    The model is in eval mode meanwhile; modes, buffers and attributes are restored. The folder is written only if the
    outputs are equal within the tolerance.

    Args:
        model: any module; wrappers of DDP and torch.compile are removed.
        folder: for the model and `config.json`; an earlier export there is replaced.
        to: "pt2", "onnx", "aoti" or "safetensors".
        batches: the loader of the validation set, or another iterable of real batches.
        inputs: a function from a batch to the inputs; None passes the first fields, see `call_from`.
        factory: "module:factory" that builds the model again; needed for "safetensors".
        arguments: keyword arguments of the factory.
        dynamic: free dimensions by input, besides the batch; None finds them in the batches.
        fixed_batch: True to fix the size of the batch to that of the first batch.
        tolerance: largest relative difference; None takes 1e-4 for float32, 5e-2 for int8.
        count: batches to compare.
        origin, preprocessing: checkpoint, step and metric of the weights, and that of the training, for `config.json`.
        quantise: int8 linear layers; their accuracy is that over all batches. None for the model as it is.
        facts: of the training, for the model card; None writes no card.

    Raises:
        NotExportable: the model cannot be exported; the message has the line that stops it.
        ExportDiffers: outputs of the export differ from those of the model.
        LessAccurate: the quantised model is less accurate than allowed.
        BadInputs: the batches are empty, or do not fit the model.
        PackageMissing: the format needs a package or a compiler.
        FileExists: the folder has files of another origin.
    """
    writer, target = _ready(to, Path(folder), factory, quantise)
    with _on_cpu(model) as own:
        calls, int8 = _read(own, batches, inputs, count, quantise)
        dims = free_dimensions(calls, dynamic, fixed_batch=fixed_batch)
        edges = [] if fixed_batch else edge_calls(calls, dims)
        served = own if int8 is None else int8.after
        trace = traced(served, calls, dims, edges) if writer.TRACED else None
        pairs, expected, skipped = eager(served, calls, edges)
        free = config_file.names_of_free(calls[0], {name: sorted(each) for name, each in dims.items()})
        _drop_fixed(trace, free)
        config = config_file.document(
            to,
            model=config_file.built(own, factory, arguments),
            inputs=config_file.inputs_of(calls[0], free),
            outputs=config_file.outputs_of([(call, output) for (_, call), output in zip(pairs, expected, strict=True)]),
            origin=origin or {},
            preprocessing=preprocessing,
        )
        source = _source(served, trace, calls, free, int8)
        limit = tolerance if tolerance is not None else tolerance_for(own) if int8 is None else TOLERANCE
        measured = _measuring(int8, to, calls, lambda: _source(own, traced(own, calls, dims, edges), calls, free))
        found = _written(target, to, source, config, pairs, expected, limit, facts, measured)
    return Exported(target, to, config, found, (*(trace.notes if trace else ()), *skipped, *found.limits))


def _read(
    model: nn.Module, batches: Iterable[Any], inputs: Chosen | None, count: int, quantise: Int8 | None
) -> tuple[list[Call], Quantised | None]:
    """Return the calls for the first batches, and the quantised model, with the metric over all batches."""
    stream = iter(batches)
    held = list(islice(stream, count))
    calls = calls_from(model, held, inputs, count)
    return calls, None if quantise is None else quantise.applied(model, chain(held, stream), inputs)


def _source(
    model: nn.Module,
    trace: Traced | None,
    calls: Sequence[Call],
    free: Sequence[dict[int, str]],
    int8: Quantised | None = None,
) -> Source:
    """Return the input of a format; the graph of a quantised model needs no torchao."""
    program = None if trace is None else trace.program if int8 is None else without_torchao(trace.program)
    return Source(model, program, calls[0].names, free)


def _measuring(
    int8: Quantised | None, to: str, calls: Sequence[Call], plain: Callable[[], Source]
) -> Callable[[Path], dict[str, Any]] | None:
    """Return the function that measures a written quantised export; None without quantisation."""
    return None if int8 is None else lambda path: int8.document(path, to, calls, plain)


def _ready(to: str, target: Path, factory: str | None, quantise: Int8 | None) -> tuple[Format, Path]:
    """Return the format and the folder of an export, if both can be used."""
    writer = format_of(to)
    writer.require()
    if quantise is not None:
        quantise.check(to)
    _check_target(target)
    if to == "safetensors" and factory is None:
        raise UsageError(
            "an export to safetensors needs the factory of the model: weights alone cannot be called",
            expected='expected factory="module:factory"',
            remedy="move the model to a separate module, and pass its function or class",
        )
    return writer, target


def _written(
    target: Path,
    to: str,
    source: Source,
    config: dict[str, Any],
    pairs: Sequence[tuple[str, Call]],
    expected: Sequence[Any],
    tolerance: float,
    facts: Facts | None,
    measured: Callable[[Path], dict[str, Any]] | None,
) -> Comparison:
    """Write an export beside its folder, compare it, and move it there if it is equal."""
    writer, model = format_of(to), source.model
    with _beside(target) as place:
        (place / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        with evaluating(model):
            writer.write(source, place / FILES[to])
        forbidden = [*_modules(model), "torchao"] if writer.TRACED else ()
        found = compare(place, to, model, pairs, expected, tolerance=tolerance, forbidden=forbidden)
        if not found.passed:
            raise _differs(model, to, found)
        config["comparison"] = config_file.compared(found)
        config["quantisation"] = None if measured is None else measured(place / FILES[to])
        (place / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        if facts is not None:
            (place / CARD).write_text(card(config, facts), encoding="utf-8")
        _replace(place, target)
    return found


def eager(
    model: nn.Module, calls: Sequence[Call], edges: Sequence[tuple[str, Call]]
) -> tuple[list[tuple[str, Call]], list[Any], list[str]]:
    """Return kinds and calls with the outputs of the model; an edge that the model refuses is a note."""
    pairs: list[tuple[str, Call]] = []
    outputs: list[Any] = []
    notes: list[str] = []
    with evaluating(model):
        for kind, call in (*(("real", call) for call in calls), *edges):
            given = call.copied()
            try:
                output = model(*given.args, **given.kwargs)
            except Exception as error:  # models raise many types for shapes that they do not support
                if kind == "real":
                    raise
                shapes = ", ".join(f"{n} {list(t.shape)}" for n, t in zip(call.names, call.tensors, strict=True))
                said = (str(error).splitlines() or [""])[0][:120]
                notes.append(f"not compared: eager raises {type(error).__name__} for {shapes}: {said}")
                continue
            pairs.append((kind, call))
            outputs.append(output if is_plain(output) else plain(output))
    return pairs, outputs, notes


def _drop_fixed(trace: Traced | None, free: list[dict[int, str]]) -> None:
    """Remove the dimensions that torch fixed, which it was allowed to."""
    if trace is None:
        return
    by_name = {node.name: node for node in trace.program.graph.nodes if node.op == "placeholder"}
    placeholders = [by_name[name] for name in trace.program.graph_signature.user_inputs if name in by_name]
    for node, dims in zip(placeholders, free, strict=False):
        value = node.meta.get("val")
        for dim in list(dims):
            if isinstance(value, torch.Tensor) and isinstance(value.shape[dim], int):
                del dims[dim]


def _differs(model: nn.Module, format: str, found: Comparison) -> ExportDiffers:
    worst = found.worst
    shapes = ", ".join(f"{name} {shape}" for name, shape in worst.shapes.items())
    failed = sum(bool(row.fault) or row.relative > found.tolerance for row in found.rows)
    calls = f"{failed} of {len(found.rows)} calls"
    got = worst.fault or f"a relative difference of {worst.relative:.2g} (absolute {worst.largest:.2g})"
    return ExportDiffers(
        f"the export of {type(model).__name__} to {format} differs from the model in {calls}",
        expected=f"expected at most {found.tolerance:.0e}, got for {shapes}: {got}",
        remedy="write forward for every size of the batch: no squeeze() without a dimension, no branch on a size"
        if worst.fault or worst.kind == "edge"
        else "pass a larger tolerance=, if sums in another order explain the difference",
    )


def _modules(model: nn.Module) -> list[str]:
    """Return the modules of Python that define the parts of a model, without those of torch."""
    names = {type(module).__module__ for module in model.modules()} - {"__main__", Plain.__module__}
    return sorted(name for name in names if name.partition(".")[0] != "torch")


@contextmanager
def _on_cpu(model: nn.Module) -> Iterator[nn.Module]:
    """Yield the model itself if it is on the CPU and not compiled, else a copy that is."""
    own: nn.Module = wrapped_model(model)
    tensors = (*own.parameters(), *own.buffers())
    compiled = any(getattr(module, "_compiled_call_impl", None) is not None for module in own.modules())
    if compiled or any(tensor.device.type != "cpu" for tensor in tensors):
        own = copy.deepcopy(own).to("cpu")
    yield own


def _check_target(target: Path) -> None:
    """Raise an error for a file, and for a folder with files of another origin."""
    if target.is_dir() and any(target.iterdir()) and not (target / CONFIG).exists():
        raise FileExists(
            f"{target} has files that are not an export",
            expected=f"expected a new or empty folder, or one with {CONFIG}",
            remedy="pass another folder",
        )
    if target.exists() and not target.is_dir():
        raise FileExists(f"{target} is a file", expected="expected a folder", remedy="pass another path")


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Yield an empty folder on the same disk; it is removed if it still exists."""
    target.parent.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _replace(place: Path, target: Path) -> None:
    """Move a finished folder to its name; an earlier export there is removed after that."""
    place.chmod(0o777 & ~_umask())
    old = None
    if target.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
        os.replace(target, old / target.name)
    os.replace(place, target)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
