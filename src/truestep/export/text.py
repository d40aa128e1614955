"""The report of an export, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

from truestep.export.exporting import CONFIG, Exported
from truestep.export.int8.table import table, verdict

WIDTH = 80


def text(found: Exported, source: str) -> str:
    """Return the report of an export.

    Args:
        found: the export.
        source: the name of the checkpoint or of the model.
    """
    comparison = found.comparison
    lines = [f"exported {source} to {found.folder}", ""]
    size = found.file.stat().st_size + sum(path.stat().st_size for path in found.folder.glob(f"{found.file.name}.data"))
    lines.append(f"  {found.file.name:<18} {_size(size)}; {_signature(found)}")
    others = sorted(path.name for path in found.folder.iterdir() if path.name != found.file.name)
    lines += [f"  {name:<18} {_PARTS.get(name, '')}".rstrip() for name in others if name in _PARTS]
    int8 = found.config["quantisation"]
    if int8 is not None:
        lines += ["", f"int8 in {int8['layers']} of {int8['linear_layers']} linear layers; {comparison.runtime}:", ""]
        lines += [*table(int8), "", *wrap(verdict(int8), WIDTH, subsequent_indent="  ")]
    reference = "eager" if int8 is None else "int8 in eager"
    lines += ["", f"compared with {reference} in a fresh process, {comparison.runtime}:", ""]
    heads = [", ".join(f"{name} {_shape(shape)}" for name, shape in row.shapes.items()) for row in comparison.rows]
    widest = min(max(map(len, heads)), WIDTH - 34)
    lines.append(f"  {'inputs':<{widest}}         largest difference   relative")
    for row, head in zip(comparison.rows, heads, strict=True):
        shown = head if len(head) <= widest else head[: widest - 1] + "…"
        lines.append(f"  {shown:<{widest}}  {row.kind:<5}  {row.largest:>17.2g} {row.relative:>10.2g}")
    lines += ["", f"largest relative difference {comparison.relative:.2g}, tolerance {comparison.tolerance:.0e}: equal"]
    for note in found.notes:
        lines += wrap(note, WIDTH, initial_indent="- ", subsequent_indent="  ")
    return "\n".join(lines)


_PARTS = {
    CONFIG: "inputs, outputs, preprocessing, versions, comparison",
    "README.md": "model card",
    "model.onnx.data": "weights of model.onnx",
}


def _signature(found: Exported) -> str:
    return ", ".join(f"{each['name']} {each['dtype']} {_shape(each['shape'])}" for each in found.config["inputs"])


def _shape(shape: Sequence[int | str]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _size(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def folder_of(checkpoint: Path, name: str) -> Path:
    """Return the default folder of an export: `export/NAME` in the folder of the run.

    Example:
        >>> folder_of(Path("runs/lab/checkpoints/step-000100"), "onnx").as_posix()
        'runs/lab/export/onnx'
    """
    parent = checkpoint.parent.parent if checkpoint.parent.name == "checkpoints" else checkpoint.parent
    return parent / "export" / name
