"""ONNX, written by the exporter of torch from the graph of torch.export, and checked with onnxruntime."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from truestep.errors import PackageMissing
from truestep.export import causes
from truestep.export.formats import Loaded, Source
from truestep.export.refusals import Line, explained, line_in, quiet, refusal

TRACED = True
PACKAGES = ("onnx", "onnxscript", "onnxruntime")


def require() -> None:
    """Raise an error if a package is missing.

    Raises:
        PackageMissing: one of them is not installed.
    """
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise PackageMissing(
            f"an export to ONNX needs {', '.join(missing)}, which is not installed",
            expected=f"expected {', '.join(PACKAGES)}",
            remedy="install them with `pip install 'truestep[onnx]'`",
        )


def write(source: Source, path: Path) -> None:
    """Write the graph, with the names of the inputs and of the free dimensions.

    Raises:
        NotExportable: an operator has no counterpart in ONNX, or a wrong one.
    """
    assert source.program is not None
    _refuse_batch_statistics(source.program)
    try:
        with quiet(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch on its own code
            program: Any = torch.onnx.export(
                source.program,
                input_names=list(source.inputs),
                dynamo=True,
                verbose=False,
                optimize=True,
                custom_translation_table={torch.ops.aten._int_mm.default: _int_mm},
            )
            _name_dimensions(program.model, source.free)
            _rename_outputs(program.model.graph)
            program.save(path)
    except Exception as error:  # the exporter raises many types
        first = _first_cause(error).with_traceback(None)  # its lines are those of the exporter
        raise explained(first, source.model, _line_of_operator(source.program, str(first))) from error


def _int_mm(self: Any, mat2: Any) -> Any:
    """Return the product of two int8 matrices in int32, which the exporter of torch does not translate."""
    from onnxscript import opset18

    return opset18.MatMulInteger(self, mat2)


def _name_dimensions(model: Any, free: Sequence[dict[int, str]]) -> None:
    """Replace the names of symbols, such as s77, by those of the dimensions, in all values of the graph."""
    import onnx_ir

    renamed: dict[str, str] = {}
    for value, names in zip(model.graph.inputs, free, strict=True):
        for dim, name in names.items():
            symbol = value.shape[dim]
            if isinstance(symbol, onnx_ir.SymbolicDim) and symbol.value is not None:
                renamed.setdefault(symbol.value, name)
    for value in (*model.graph.inputs, *model.graph.outputs, *(out for node in model.graph for out in node.outputs)):
        if value.shape is None:
            continue
        dims = [renamed.get(str(dim.value)) if isinstance(dim, onnx_ir.SymbolicDim) else None for dim in value.shape]
        if any(dims):
            value.shape = onnx_ir.Shape([name or dim for name, dim in zip(dims, value.shape, strict=True)])


def _rename_outputs(graph: Any) -> None:
    """Rename outputs with the name of an input, of a model that returns one: a graph has one name for each value."""
    names = {value.name for value in graph.inputs}
    for value in graph.outputs:
        if value not in graph.inputs and value.name in names:
            value.name = f"{value.name}_returned"


def _refuse_batch_statistics(program: torch.export.ExportedProgram) -> None:
    """Raise an error for a batch normalisation in train mode, which torch 2.13 writes as one in eval mode.

    Raises:
        NotExportable: with its line.
    """
    for node in program.graph.nodes:
        if node.target is torch.ops.aten.batch_norm.default and node.args[5] and node.args[3] is not None:
            raise refusal(causes.BATCH_STATISTICS, line_in(node.meta.get("stack_trace") or ""))


def _first_cause(error: BaseException) -> Exception:
    """Return the error at the end of the chain, which names the operator."""
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    assert isinstance(error, Exception)
    return error


def _line_of_operator(program: torch.export.ExportedProgram, message: str) -> Line | None:
    """Return the line of the model that calls the operator in a message of the exporter; None without one."""
    named = re.search(r"op='([\w.]+)'", message)
    if named is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nodes = program.run_decompositions().graph.nodes
    traces = (node.meta.get("stack_trace") for node in nodes if str(node.target).startswith(f"{named[1]}."))
    return line_in(next(filter(None, traces), ""))


def load(path: Path) -> tuple[Loaded, str]:
    """Return a function that calls the written model with the threads of torch, and name and version of its runtime."""
    import onnx

    onnxruntime: Any = importlib.import_module("onnxruntime")

    logging.getLogger("onnxruntime").setLevel(logging.ERROR)
    onnx.checker.check_model(str(path))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]

    def call(args: Sequence[torch.Tensor], kwargs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        given = dict(zip(names, [*args, *kwargs.values()], strict=True))
        outputs = session.run(None, {name: tensor.numpy() for name, tensor in given.items()})
        return [torch.from_numpy(output) for output in outputs]

    return call, f"onnxruntime {onnxruntime.__version__}"
