"""Cost of supervision by part: each probe in each kind of step, and each rule.

A step is plain, coasting (only compared with the round before), seen in full, or sampled (gradients and tape are read).
The cost of a kind is timed against plain steps in turns, in processor time; its share for each module comes from a
profile of the same steps, which slows all of them equally. A rule is timed alone, on the events of a step.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import platform
import pstats
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from step_cost import Loop, Supervision, cnn, millisecond, tiny, transformer

from truestep.events import Event
from truestep.probes import Listener
from truestep.rules import all_rules
from truestep.supervision.judge import Judge

OURS = f"{os.sep}truestep{os.sep}"
KINDS = ("coasting", "in full", "sampled")
ROUNDS = 15


def settled(loop: Loop) -> Supervision:
    """Return probes after some steps of a loop."""
    supervision = Supervision()
    with supervision:
        loop(120)
    return supervision


@contextmanager
def kept_to(supervision: Supervision, kind: str) -> Iterator[None]:
    """Force all steps inside to be of one kind."""
    scene = supervision.scene
    scene.coast.wake()
    before = scene.sampling.is_sampled, scene.coast.repeating
    scene.sampling.is_sampled = lambda step: kind == "sampled"  # type: ignore[method-assign]
    if kind != "coasting":
        scene.coast.repeating = lambda: 0
    scene.sampling.on = kind == "sampled"
    scene.ledger.refresh()
    try:
        yield
    finally:
        scene.sampling.is_sampled, scene.coast.repeating = before  # type: ignore[method-assign]


def costs(loop: Loop, kind: str, steps: int, rounds: int) -> float:
    """Return the microseconds that a step of one kind takes longer than a plain one: the median over rounds."""
    supervision = settled(loop)
    found = []
    for turn in range(rounds):
        plain = timed(loop, steps) if turn % 2 else 0.0
        with supervision, kept_to(supervision, kind):
            loop(100 if kind == "coasting" else 5)
            watched = timed(loop, steps)
        found.append(watched - (plain or timed(loop, steps)))
    return statistics.median(found) * 1e6


def timed(loop: Loop, steps: int) -> float:
    begun = time.process_time()
    loop(steps)
    return (time.process_time() - begun) / steps


def shares(loop: Loop, kind: str, steps: int) -> dict[str, float]:
    """Return the share of each of our modules in the cost of a step of one kind, including their calls of torch."""
    supervision = settled(loop)
    profile = cProfile.Profile()
    with supervision, kept_to(supervision, kind):
        loop(100 if kind == "coasting" else 5)
        profile.enable()
        loop(steps)
        profile.disable()
    spent: dict[str, float] = defaultdict(float)
    for (file, _, name), (_, _, own, _, callers) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if OURS in file:
            spent[module(file)] += own
        elif file == "~" and "torch._C._EngineBase" not in name and "run_backward" not in name:
            for (caller, _, _), (_, _, inside, _) in callers.items():
                if OURS in caller:
                    spent[module(caller)] += inside
    total = sum(spent.values())
    return {name: own / total for name, own in spent.items()}


def module(path: str) -> str:
    return path.rpartition(OURS)[2].removesuffix(".py").replace(os.sep, ".")


def step_events(loop: Loop) -> list[Event]:
    """Return the events of one sampled step."""
    supervision = settled(loop)
    events: list[Event] = []
    with supervision, kept_to(supervision, "sampled"):
        loop(5)
        scene = supervision.scene
        emit, listener = scene.emit, scene.listener
        scene.emit, scene.listener = events.append, Listener(events.append, events.append)
        loop(1)
        scene.emit, scene.listener = emit, listener
    return events


def rule_costs(events: list[Event], times: int = 400) -> dict[str, float]:
    """Return the microseconds that each rule takes for the events of a step that is shown to it."""

    def shown(judge: Judge) -> float:
        rounds = []
        for _ in range(5):
            begun = time.process_time()
            for _ in range(times):
                judge.show(events, (0, 0))
            rounds.append((time.process_time() - begun) / times)
        return min(rounds) * 1e6

    alone = shown(Judge([]))
    return {id: max(0.0, shown(Judge([rule])) - alone) for id, rule in all_rules().items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of loops")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--save", action="store_true", help="write bench/results/watch_parts.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    loops: dict[str, tuple[Callable[[], Loop], int]] = {
        "tiny MLP": (tiny, 600),
        "1 ms MLP": (millisecond, 150),
        "CNN on FashionMNIST": (cnn, 40),
        "transformer": (transformer, 60),
    }
    saved: dict[str, object] = {}
    for name, (build, steps) in loops.items():
        if options.only and name not in options.only:
            continue
        loop = build()
        loop(20)
        table = {kind: (costs(loop, kind, steps, options.rounds), shares(loop, kind, steps)) for kind in KINDS}
        show(name, table)
        rules = rule_costs(step_events(loop))
        dearest = sorted(rules, key=rules.__getitem__, reverse=True)
        print(f"  rules, for a step shown to them: {sum(rules.values()):.1f} us in all; the dearest are")
        print("    " + ", ".join(f"{id} {rules[id]:.1f}" for id in dearest[:6]))
        saved[name] = {
            "us_a_step": {kind: round(cost, 1) for kind, (cost, _) in table.items()},
            "by_module": {
                kind: {part: round(share * cost, 1) for part, share in sorted(parts.items()) if share > 0.01}
                for kind, (cost, parts) in table.items()
            },
            "rules_us": {id: round(rules[id], 2) for id in sorted(rules)},
        }
    if options.save:
        machine = {"torch": torch.__version__, "python": platform.python_version(), "cpus": os.cpu_count()}
        path = Path(__file__).parent / "results" / "watch_parts.json"
        path.write_text(json.dumps({"machine": machine, "loops": saved}, indent=2) + "\n")


def show(name: str, table: dict[str, tuple[float, dict[str, float]]]) -> None:
    print(f"\n{name:34}" + "".join(f"{kind:>12}" for kind in KINDS) + "   us a step")
    print(f"  {'in all':32}" + "".join(f"{table[kind][0]:>12.1f}" for kind in KINDS))
    parts = {part for _, shared in table.values() for part, share in shared.items() if share > 0.02}
    for part in sorted(parts, key=lambda part: -table["in full"][1].get(part, 0.0)):
        figures = [cost * shared.get(part, 0.0) for cost, shared in (table[kind] for kind in KINDS)]
        print(f"  {part:32}" + "".join(f"{figure:>12.1f}" for figure in figures))


if __name__ == "__main__":
    main()
