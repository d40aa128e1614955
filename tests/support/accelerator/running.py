"""Runs checks one after the other without pytest, each guarded: `python -m accelerator.running --device standin`."""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from accelerator.place import Place, Skipped, place


def everything() -> list[Callable[[Place], None]]:
    """Return every check."""
    from accelerator import supervised, toolkit

    return [*supervised.checks(), *toolkit.checks()]


def results(where: Place, only: str = "", until: float = float("inf")) -> Iterator[dict[str, Any]]:
    """Yield the result of each check: its name, "passed", "failed" or "skipped", why, and how long it took.

    Args:
        where: the device.
        only: a part of the names of those that are wanted.
        until: when, by `time.monotonic`, no further one begins.
    """
    for check in everything():
        name = check.__name__
        if only not in name:
            continue
        begun = time.monotonic()
        outcome, why = "passed", ""
        try:
            if begun > until:
                raise Skipped("no time was left")
            check(where)
            where.settle()
        except Skipped as reason:
            outcome, why = "skipped", str(reason)
        except Exception:
            outcome, why = "failed", traceback.format_exc()
        yield {"check": name, "outcome": outcome, "why": why, "seconds": round(time.monotonic() - begun, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    for result in results(place(options.device), options.only):
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    sys.exit(main())
