from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from truestep.events import CheckpointSaved, Event, GroupJoined, Site
from truestep.findings import Finding, Severity
from truestep.rules._of_ranks import RankRule, place, site
from truestep.rules._rule import Progress
from truestep.rules._syntax.data import shared
from truestep.syntax import Program, Suspicion

_MOST_FILES = 200


class SavedByEveryRank(RankRule):
    """Several ranks save to the same file.

    What it does
    ------------
    Compares the files that ``torch.save`` wrote on each rank, and reports a file that two or more ranks of one machine
    wrote.

    Why it matters
    --------------
    The ranks write to one file at the same time, without a lock. If their content differs in one value, such as the
    loss or the random state of the rank, the file can be a mixture of both. In the proof two of 15 checkpoints are
    damaged. If the content is equal, the file is whole only after the last rank has written it.

    Example
    -------
    ::

        torch.save({"model": model.module.state_dict(), "loss": loss}, "last.pt")     # on each rank

    Fix
    ---
    Save on rank 0, and let the other ranks wait where they read the file::

        if dist.get_rank() == 0:
            torch.save({"model": model.module.state_dict(), "loss": loss}, "last.pt")
        dist.barrier()

    Known false alarms
    ------------------
    Ranks that take turns behind barriers to write the same file. Not reported: equal paths on different machines, and
    files of ``torch.distributed.checkpoint``, which have one name for each rank.

    References
    ----------
    - https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html#save-and-load-checkpoints
    """

    id = "saved-by-every-rank"
    since = "0.1"
    severity = Severity.WARNING
    account = "state"
    watches = (CheckpointSaved,)
    needs = (GroupJoined, CheckpointSaved)

    def __init__(self) -> None:
        super().__init__()
        self._files: dict[str, tuple[Site | None, int]] = {}

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return shared.saved_by_every_rank(program)

    def observe(self, event: Event, run: Progress) -> None:
        assert isinstance(event, CheckpointSaved)
        if event.path not in ("", os.devnull) and (event.path in self._files or len(self._files) < _MOST_FILES):
            self._files[event.path] = event.site, run.step

    def facts(self, run: Progress) -> dict[str, Any] | None:
        if run.group is None or not run.step:
            return None
        files = {path: [place(saved), step] for path, (saved, step) in self._files.items()}
        return {"host": run.group.host, "world_size": run.group.world_size, "files": files}

    @classmethod
    def compare(cls, facts: Mapping[int, Any]) -> list[Finding] | None:
        if not any(fact["files"] for fact in facts.values()):
            return None
        writers: dict[tuple[str, str], list[int]] = {}
        for rank, fact in facts.items():
            for path in fact["files"]:
                writers.setdefault((fact["host"], path), []).append(rank)
        shared: dict[str, list[tuple[str, list[int]]]] = {}
        for (_, path), ranks in writers.items():
            if len(ranks) > 1:
                where = facts[min(ranks)]["files"][path][0]
                shared.setdefault(str(where), []).append((path, ranks))
        found = []
        for files in shared.values():
            path, ranks = files[0]
            where, step = facts[min(ranks)]["files"][path]
            name = path.replace("\\", "/").rpartition("/")[2]
            more = "" if len(files) == 1 else f" and {len(files) - 1} other files"
            found.append(
                cls.finding(
                    site(where),
                    f"{len(ranks)} ranks write the same file: `{name}`{more}",
                    label=f"ranks {', '.join(map(str, sorted(ranks)))} write {name}",
                    help="save on one rank: `if dist.get_rank() == 0:`",
                    ranks=len(ranks),
                    world_size=facts[min(ranks)]["world_size"],
                    first_step=step,
                )
            )
        return found
