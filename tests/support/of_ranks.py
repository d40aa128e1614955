"""Facts of ranks from hand-built runs, and their comparison."""

from __future__ import annotations

import json
from typing import Any

from truestep import events as ev
from truestep.events import Event, Site
from truestep.findings import Outcome, Summary, Verdict
from truestep.rules import rule
from truestep.supervision.judge import Judge
from truestep.supervision.ranks import merge

CALL, STEP, WRAP, SAVE, LOADER = (Site("train.py", line) for line in (17, 19, 12, 30, 15))
STEPPED = ev.OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)
MET: list[Event] = [
    ev.ModelMet(model=1, name="net", parameters=(1, 2)),
    ev.ParameterMet(parameter=1, name="weight", shape=(2, 3), model=1),
    ev.ParameterMet(parameter=2, name="bias", shape=(2,), model=1),
    ev.OptimizerBuilt(optimizer=1, name="opt", kind="SGD", parameters=(1, 2)),
]
WRAPPED = ev.ReplicaWrapped(replica=1, ranks=(0, 1), parameters=(1, 2), site=WRAP)
CALLED = ev.ModelCalled(model=1, site=CALL)
MADE = ev.BackwardEnded(site=Site("train.py", 18), observed=2, written=2, loader=1)


def joined(rank: int) -> Event:
    return ev.GroupJoined(rank=rank, world_size=2, host="here")


def facts(id: str, *events: Event, finished: bool = True) -> dict[str, Any]:
    """Return all facts of one rank as they arrive at rank 0: through JSON."""
    judge = Judge([rule(id)])
    judge.show([*MET, *events], (0, 1))
    if finished:
        judge.end("finished")
    assert judge.errors == []
    return dict(json.loads(json.dumps(judge.rank_facts())))


def merged(id: str, *of_ranks: dict[str, Any]) -> Summary:
    verdict = Verdict(id, Outcome.NOT_OBSERVED, "not compared with another rank")
    parts = {
        rank: Summary("train.py", "finished", 3, rank_facts=facts, verdicts=(verdict,))
        for rank, facts in enumerate(of_ranks)
    }
    return merge(parts, len(of_ranks))
