"""Errors of torch about operations over all ranks: which rank did not answer, and where the others waited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from truestep.errors import RankDoesNotAnswer
from truestep.loop.ranks.heartbeat import Heartbeat, Sign, line_of
from truestep.loop.ranks.launch import has_other_hosts

_SAID = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Timed out waiting", "pair closure")
GAVE_UP = "because another rank did not answer"


def is_of_ranks(error: BaseException) -> bool:
    """Return True for an error of torch about a rank that did not answer."""
    distributed: Any = torch.distributed
    if isinstance(error, distributed.DistError):
        return True
    return type(error) is RuntimeError and any(said in str(error) for said in _SAID)


def explained(error: BaseException, heartbeat: Heartbeat) -> RankDoesNotAnswer:
    """Return an error that names the ranks which did not answer.

    Args:
        error: of torch, from an operation over all ranks.
        heartbeat: of this rank.
    """
    signs = heartbeat.signs()
    what, remedy = _finding(signs)
    place = line_of(error) or heartbeat.place
    first = str(error).strip().splitlines() or [type(error).__name__]
    said = first[0].partition("] ")[2] or first[0]  # without the line in the source of gloo
    return RankDoesNotAnswer(
        f"{what}; this rank waited at {place}",
        expected=f"expected all {len(signs)} ranks to come to the same operation, got: {said.partition('. ')[0]}",
        remedy=remedy,
    )


def _finding(signs: Sequence[Sign | None]) -> tuple[str, str]:
    """Return the ranks that did not answer, in words, and a remedy."""
    silent = [rank for rank, sign in enumerate(signs) if sign is None]
    if silent:
        remedy = (
            "read the end of that output, and the log of the kernel: a process without memory is killed without a word"
        )
        if has_other_hosts():
            return (
                f"{_ranks(silent)} did not answer: killed, stopped, or on a host that is out of reach",
                f"look whether that host is up and on the network; {remedy}",
            )
        return f"{_ranks(silent)} did not answer: killed, or stopped", remedy
    ended = {rank: sign.ended for rank, sign in enumerate(signs) if sign is not None and sign.ended}
    first = [(rank, how) for rank, how in ended.items() if how != GAVE_UP]
    most = max(sign.operations for sign in signs if sign is not None)
    late = [
        (rank, sign)
        for rank, sign in enumerate(signs)
        if sign is not None and sign.operations < most and not sign.ended
    ]
    if first or (ended and not late):
        rank, how = (first or list(ended.items()))[0]
        return f"rank {rank} has ended {how}", f"read the output of rank {rank}"
    if late:
        return (
            f"{_ranks([rank for rank, _ in late])} did not come: the last operation over all ranks there was at "
            f"{late[0][1].place}",
            "call run.step, run.evaluate, run.gather and run.save on all ranks equally often, or pass rank_timeout= if "
            "one of them needs more time",
        )
    return (
        "the ranks did not come to the same operation in time",
        "call the same operations over all ranks everywhere, or pass a larger rank_timeout= to Run",
    )


def _ranks(numbers: Sequence[int]) -> str:
    return ("rank " if len(numbers) == 1 else "ranks ") + ", ".join(map(str, numbers))
