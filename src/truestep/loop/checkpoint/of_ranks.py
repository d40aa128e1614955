"""The parts of a checkpoint that differ between ranks: random states, positions in streams, sums of means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from truestep.errors import BadCheckpoint
from truestep.loop.rng.seed import borrowed, mix, rng_state

if TYPE_CHECKING:
    from truestep.loop.checkpoint.checkpoint import Checkpoint
    from truestep.loop.run.registry import Parts


def own_state(parts: Parts, loops: dict[str, Any], rng: dict[str, Any]) -> dict[str, Any]:
    """Return the state of this rank that the others do not have.

    Args:
        parts: of the run.
        loops: positions of the loops.
        rng: random states at the beginning of the epoch and now.
    """
    return {
        "walks": loops["walks"],
        "starts": [{**start, "models": {}} for start in loops["starts"]],  # weights are those of rank 0
        "rng": rng,
        "registered": {
            name: part.state_dict() for name, part in parts.registered.items() if not isinstance(part, nn.Module)
        },
        "means": {name: mean.state_dict() for name, mean in parts.means.items()},
    }


def for_rank(state: dict[str, Any], rank: int, world_size: int, path: Path) -> dict[str, Any]:
    """Return the state of a checkpoint as one rank resumes it.

    With another number of ranks, positions stay the same if the batches of all ranks together do.

    Args:
        state: of the checkpoint, which is changed.
        rank: of this process.
        world_size: number of processes.
        path: of the checkpoint, for the message.

    Raises:
        BadCheckpoint: another number of ranks, in the middle of a stream.
    """
    saved = state.get("ranks") or []
    size = max(len(saved), 1)
    if size == world_size:
        if rank:
            own = saved[rank]
            weights = [start["models"] for start in state["loops"]["starts"]]
            starts = [{**start, "models": held} for start, held in zip(own["starts"], weights, strict=True)]
            state["loops"] = {**state["loops"], "walks": own["walks"], "starts": starts}
            state.update(registered=state["registered"] | own["registered"], means=own["means"])
        return state
    streams = [current["name"] for current in state["loops"]["walks"]["active"] if current["stream"] is not None]
    if streams:
        raise BadCheckpoint(
            f'{path} was saved by {size} processes, each with another part of the stream of loader "{streams[0]}"',
            expected=f"expected {size} processes, got {world_size}",
            remedy=f"resume with {size} processes, or from a checkpoint between two epochs",
        )
    if saved:
        state["means"] = {name: _joined([own["means"][name] for own in saved], rank) for name in state["means"]}
    return state


def _joined(means: list[dict[str, Any]], rank: int) -> dict[str, Any]:
    """Return the sums of a mean over all ranks for rank 0, and none for the others."""
    share = 1 if rank == 0 else 0
    sums = sum(mean["sums"] for mean in means) * share
    total, weight, updated = (sum(mean["own"][at] for mean in means) * share for at in range(3))
    return {"sums": sums, "own": [total, weight, bool(updated)]}


def rng_for(checkpoint: Checkpoint, rank: int, world_size: int) -> dict[str, Any]:
    """Return the random states with which one rank resumes: its own, or new ones with another number of ranks."""
    if checkpoint.world_size == world_size:
        return checkpoint.rng(rank)
    if not rank:
        return checkpoint.rng()
    with borrowed() as seed:
        seed(mix(checkpoint.step, world_size, rank))
        new = rng_state()
    return {"epoch": new, "step": new}
