"""Time ways to run a model: outputs are compared with those of the first way, then blocks of calls take turns."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import torch

from truestep.experiments.instruments.inference.subject import Subject
from truestep.experiments.instruments.inference.ways import Runner, Way, reason, ways_of
from truestep.export.calls import Call
from truestep.export.outputs import compared, leaves
from truestep.export.tracing import is_plain, plain

_TURNS = 20
_FEWEST_TURNS = 5
_BUILDING = 0.6
"""Share of the budget after which nothing that takes seconds is built any more."""
_BLOCK_S = (0.005, 0.2)
"""Shortest and longest block of calls, in seconds."""
_MOST_CALLS = 500
_LEAD = 2
"""Untimed calls at the beginning of a block: caches are cold, and threads of the way before may still wait."""
_PILOT = 3

Says = Callable[[str], None]


def measure(
    subject: Subject,
    batches: Sequence[int],
    threads: Sequence[int],
    *,
    only: Sequence[str] = (),
    budget_s: float = 120.0,
    says: Says = lambda text: None,
) -> dict[str, Any]:
    """Return the times of all ways, as values for JSON.

    The first way is the reference of the others. It is timed twice in each turn, as itself and as "control".

    Args:
        subject: the model or the exports.
        batches: numbers of samples in a call.
        threads: numbers of threads.
        only: names of ways besides the first one; empty for all.
        budget_s: approximate duration in seconds.
        says: called with each line of progress.

    Returns:
        "settings": for each number of threads and samples "batch", "threads" and "ways", with the name, latencies and
        the median of each turn; "built": for each way and number of threads seconds and, if it failed, the fault;
        "apart": relative difference from the reference by way and batch; "left_out": names that did not fit into the
        budget; "stable": False if the reference differs from itself.
    """
    ways = ways_of(subject)
    ways = [way for way in ways if not only or way.name in only or way is ways[0]]
    document: dict[str, Any] = {
        "reference": ways[0].name,
        "tolerance": subject.tolerance,
        "settings": [],
        "built": [],
        "apart": {},
        "left_out": [],
        "stable": True,
    }
    ends = time.monotonic() + budget_s
    before = torch.get_num_threads()
    try:
        for done, count in enumerate(threads):
            share = time.monotonic() + (ends - time.monotonic()) / (len(threads) - done)
            torch.set_num_threads(count)
            _measured(document, subject, ways, batches, count, share, says)
    finally:
        torch.set_num_threads(before)
    return document


def _measured(
    document: dict[str, Any],
    subject: Subject,
    ways: Sequence[Way],
    batches: Sequence[int],
    threads: int,
    ends: float,
    says: Says,
) -> None:
    """Build the ways for a number of threads, compare them, and time them with each number of samples."""
    torch._dynamo.reset()  # code is compiled for a number of threads
    calls = {batch: subject.call(batch) for batch in batches}
    begun = time.monotonic()
    expected: dict[int, list[torch.Tensor]] = {}
    runners: dict[str, tuple[Way, Runner]] = {}
    for way in ways:
        if way.slow and time.monotonic() > begun + _BUILDING * (ends - begun):
            if way.name not in document["left_out"]:
                document["left_out"].append(way.name)
            continue
        says(f"{way.name}, {threads} {'thread' if threads == 1 else 'threads'}")
        since = time.perf_counter()
        row: dict[str, Any] = {"way": way.name, "threads": threads, "fault": ""}
        document["built"].append(row)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of compilers and exporters about their own code
                runner = way.build(subject)
                outputs = {batch: _outputs(way, runner, call) for batch, call in calls.items()}
        except Exception as error:  # builders and models raise many types
            row["fault"] = reason(error)
            if way is ways[0]:
                return
            continue
        finally:
            row["seconds"] = round(time.perf_counter() - since, 3)
        if not expected:
            expected = outputs
            again = {batch: _outputs(way, runner, call) for batch, call in calls.items()}
            document["stable"] = all(compared(expected[batch], again[batch])["relative"] == 0 for batch in batches)
        found = [compared(expected[batch], outputs[batch]) for batch in batches]
        worst = max(found, key=lambda one: (bool(one["fault"]), one["relative"]))
        held = document["apart"].get(way.name)
        if held is None or (bool(worst["fault"]), worst["relative"]) > (bool(held["fault"]), held["relative"]):
            document["apart"][way.name] = {"fault": worst["fault"], "relative": _finite(worst["relative"])}
        runners[way.name] = way, runner
    for done, batch in enumerate(batches):
        until = time.monotonic() + max(0.0, ends - time.monotonic()) / (len(batches) - done)
        said = f"{batch} {'sample' if batch == 1 else 'samples'}"
        says(f"turns with {said}, {threads} {'thread' if threads == 1 else 'threads'}")
        timed = _turns(runners, ways[0].name, calls[batch], until)
        document["settings"].append({"batch": batch, "threads": threads, "ways": timed})


def _outputs(way: Way, runner: Runner, call: Call) -> list[torch.Tensor]:
    with way.context():
        output = runner(call.copied())
    return [leaf.detach().clone() for leaf in leaves(output if is_plain(output) else plain(output))]


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None


def _turns(runners: Mapping[str, tuple[Way, Runner]], reference: str, call: Call, until: float) -> list[dict[str, Any]]:
    """Let the ways take turns; return the times of each, in seconds."""
    order = [*runners, "control"]
    by_name = dict(runners) | {"control": runners[reference]}
    pilots = {name: median(_block(*by_name[name], call, _PILOT, 1)) for name in order}
    left = max(0.0, until - time.monotonic())
    block = min(max(0.8 * left / (len(order) * _TURNS), _BLOCK_S[0]), _BLOCK_S[1])
    counts = {name: max(1, min(_MOST_CALLS, round(block / max(pilots[name], 1e-7)))) for name in order}
    times: dict[str, list[list[float]]] = {name: [] for name in order}
    for turn in range(_TURNS):
        over = time.monotonic() - until
        if over > (0 if turn >= _FEWEST_TURNS else left):
            break
        for name in order if turn % 2 == 0 else reversed(order):
            lead = _LEAD if pilots[name] < _BLOCK_S[1] else 0
            times[name].append(_block(*by_name[name], call, counts[name], lead))
    return [{"way": name, **_figures(times[name], call.size)} for name in order]


def _block(way: Way, runner: Runner, call: Call, count: int, lead: int) -> list[float]:
    seconds = []
    clock = time.perf_counter
    with way.context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(lead):
            runner(call)
        collecting = gc.isenabled()
        gc.disable()  # a collection of the whole program would be counted as one slow call
        try:
            for _ in range(count):
                begun = clock()
                runner(call)
                seconds.append(clock() - begun)
        finally:
            if collecting:
                gc.enable()
    return seconds


def _figures(turns: Sequence[Sequence[float]], size: int) -> dict[str, Any]:
    """Return number of calls, latencies, samples per second and the median of each turn."""
    every = sorted(seconds for turn in turns for seconds in turn)
    count = len(every)
    if not count:
        return {"calls": 0, "median": None, "p95": None, "p99": None, "per_second": None, "turns": []}
    return {
        "calls": count,
        "median": median(every),
        "p95": every[int(0.95 * count)] if count >= 40 else None,
        "p99": every[int(0.99 * count)] if count >= 200 else None,
        "per_second": size * count / sum(every),
        "turns": [median(turn) for turn in turns],
    }
