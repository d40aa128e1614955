"""The tensors of optimizers that are divided over ranks: each rank writes its rows, and any number of ranks reads them.

Each rank writes one safetensors file. The state of the optimizer has a description in the place of each tensor. The
format of `torch.distributed.checkpoint` is not used: its metadata is a pickle, and reading it runs code from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from truestep.errors import BadCheckpoint
from truestep.loop.checkpoint.disk.files import DurableFile, discard, failures_of
from truestep.loop.checkpoint.disk.tensor_file import fits, read_rows, write_tensors
from truestep.loop.ranks.start import only_first
from truestep.seams.divided import is_divided

if TYPE_CHECKING:
    from truestep.loop.checkpoint.checkpoint import Checkpoint
    from truestep.loop.checkpoint.checkpoints import Checkpoints
    from truestep.loop.ranks.strategy import Strategy

_PARTS = "__parts__"
Written = dict[str, tuple[int, str]]
"""Size and checksum of files, by name."""


def taken_out(state: Any, name: str, parts: dict[str, torch.Tensor]) -> Any:
    """Return a state with descriptions in place of the tensors that are divided by rows.

    Args:
        state: nested mappings, lists and tuples.
        name: of the state, with which the names of its tensors begin.
        parts: receives the rows of this rank, on the CPU.
    """
    if is_divided(state):
        return _described(state, name, parts) if _is_by_rows(state) else state
    if isinstance(state, Mapping):
        return {key: taken_out(value, f"{name}/{key}", parts) for key, value in state.items()}
    if type(state) in (list, tuple):
        return type(state)(taken_out(value, f"{name}/{at}", parts) for at, value in enumerate(state))
    return state


def _is_by_rows(tensor: Any) -> bool:
    return len(tensor.placements) == 1 and tensor.placements[0].is_shard(0) and fits("", tensor.to_local().data)


def _described(tensor: Any, name: str, parts: dict[str, torch.Tensor]) -> dict[str, Any]:
    rows = tensor.to_local().detach()
    if rows.numel():
        parts[name] = rows.to("cpu")
    shape, ranks = list(tensor.shape), tensor.device_mesh.size()
    return {_PARTS: name, "shape": shape, "dtype": tensor.dtype, "starts": _starts(shape[0], ranks)}


def _starts(rows: int, ranks: int) -> list[int]:
    """Return the first row of each rank, and the number of rows: as `torch.chunk` divides them."""
    size = -(-rows // ranks)
    return [min(rank * size, rows) for rank in range(ranks + 1)]


def write_parts(
    strategy: Strategy, checkpoints: Checkpoints | None, step: int, parts: Mapping[str, torch.Tensor]
) -> Written:
    """Write the files of all ranks into the folder of an unfinished checkpoint; return their sizes and checksums.

    Args:
        strategy: all its ranks call this together.
        checkpoints: on rank 0; None on the others.
        step: of the checkpoint.
        parts: rows of this rank, on the CPU.

    Raises:
        DiskFull: they do not fit on the disk.
        UnwritableFolder: the folder cannot be written.
        SystemExit: another rank could not write its part, and raises the error.
    """
    size = int(strategy.sum(torch.tensor(sum(tensor.nbytes for tensor in parts.values()))))
    begun = only_first(strategy, lambda: None if checkpoints is None else str(checkpoints.begin(step, size)))
    folder, own = Path(strategy.of_first(begun) or ""), None
    try:
        with failures_of(folder.parent), DurableFile(folder / _file_name(strategy.rank)) as file:
            write_tensors(file, parts)
        own = file.bytes, file.crc32
    finally:  # the others must not wait for a rank that failed
        written = strategy.gathered(own)
        if None in written and checkpoints is not None:
            discard(folder)
    if None in written:
        raise SystemExit(1)
    return {_file_name(rank): entry for rank, entry in enumerate(written) if entry is not None}


def _file_name(rank: int) -> str:
    return f"parts-rank{rank}.safetensors"


def put_back(state: dict[str, Any], optimizer: torch.optim.Optimizer, checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the state of an optimizer with tensors in place of their descriptions, divided like the parameters.

    Args:
        state: as saved, for as many parameters as the optimizer has.
        optimizer: reads the rows of its parameters that this rank has; all of them if it has whole parameters.
        checkpoint: has the files.

    Raises:
        BadCheckpoint: a file is missing or damaged.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    numbers = [number for group in state["param_groups"] for number in group["params"]]
    own = dict(zip(numbers, parameters, strict=True))
    filled = {number: _filled(held, own[number], checkpoint) for number, held in state["state"].items()}
    return {**state, "state": filled}


def _filled(state: Any, parameter: torch.Tensor, checkpoint: Checkpoint) -> Any:
    if isinstance(state, dict) and _PARTS in state:
        return _read(state, parameter, checkpoint)
    if isinstance(state, dict):
        return {key: _filled(value, parameter, checkpoint) for key, value in state.items()}
    if type(state) in (list, tuple):
        return type(state)(_filled(value, parameter, checkpoint) for value in state)
    return state


def _read(described: dict[str, Any], parameter: Any, checkpoint: Checkpoint) -> torch.Tensor:
    """Return the rows of a tensor that this rank needs, read from the files of the ranks that saved them."""
    shape, starts = described["shape"], described["starts"]
    begin, end = 0, shape[0]
    divided = is_divided(parameter) and list(parameter.shape) == shape and _is_by_rows(parameter)
    if divided:
        ends = _starts(shape[0], parameter.device_mesh.size())
        rank = parameter.device_mesh.get_local_rank()
        begin, end = ends[rank], ends[rank + 1]
    rows = torch.empty([end - begin, *shape[1:]], dtype=described["dtype"])
    for rank, (first, stop) in enumerate(pairwise(starts)):
        low, high = max(first, begin), min(stop, end)
        if low < high:
            path = checkpoint.file(_file_name(rank))
            rows[low - begin : high - begin] = read_rows(path, described[_PARTS], low - first, high - first)
    if not divided:
        return rows
    from torch.distributed.tensor import DTensor

    return DTensor.from_local(
        rows.to(parameter.device),
        parameter.device_mesh,
        parameter.placements,
        run_check=False,
        shape=parameter.shape,
        stride=parameter.stride(),
    )


def check_present(folder: Path, written: Written) -> None:
    """Raise an error if the files of other ranks cannot be seen.

    Raises:
        BadCheckpoint: the ranks write into different folders.
    """
    missing = [name for name in written if not (folder / name).exists()]
    if missing:
        raise BadCheckpoint(
            f"rank 0 does not see {missing[0]} in {folder}, which another rank has written",
            expected="expected one folder for all ranks",
            remedy="pass out= on a file system that all machines share",
        )
