"""Run programs under supervision, each in its own process forked from one that has imported torch once.

Used by the tests over proofs, healthy programs and seeds: hundreds of programs, none of which should pay for the
import. ``python programs.py`` is the server; `supervise` is the client.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("TRUESTEP_DATA", REPOSITORY.parent / "shared" / "data"))
_MARK = re.compile(r"#\s*error:\s*([\w-]+(?:\s*,\s*[\w-]+)*)")
LIMIT_S = 180.0


@dataclass
class Supervised:
    """What came of one program."""

    how: str
    steps: int = 0
    found: set[tuple[str, int]] = field(default_factory=set)
    """Rule and line, of findings of medium or high confidence."""
    findings: list[dict[str, Any]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    output: str = ""
    report: dict[str, Any] = field(default_factory=dict)
    """The report in JSON."""

    def __str__(self) -> str:
        lines = [f"{self.how} after {self.steps} steps"]
        lines += [f"{f['confidence']} {f['rule']} {f['site']}: {f['message']}" for f in self.findings]
        return "\n".join([*lines, *self.errors, self.output[-2000:]])


def expected(path: Path) -> set[tuple[str, int]]:
    """Return the rules and lines that a program marks with ``# error: rule-id``."""
    marked = set()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = _MARK.search(line)
        if match:
            marked |= {(rule.strip(), number) for rule in match.group(1).split(",")}
    return marked


def needs_active(path: Path) -> bool:
    """Return whether one of the rules that a program is marked with takes active checks."""
    proofs = (REPOSITORY / "proofs" / rule / "proof.toml" for rule, _ in expected(path))
    return any(tomllib.loads(proof.read_text(encoding="utf-8")).get("active", False) for proof in proofs)


def supervise(
    path: Path, *arguments: str, active: bool = False, record: Path | None = None, counting: bool = True
) -> Supervised:
    """Run one program under supervision and return what was found.

    Args:
        path: the program.
        arguments: its own.
        active: with active checks.
        record: folder for a record of the run.
        counting: whether steps that repeat are only counted, as they are for users; else the rules see each of them.
    """
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    options = {"active": active, "record": record and str(record), "counting": counting}
    server.stdin.write(json.dumps({"command": [str(path), *arguments], "options": options}) + "\n")
    server.stdin.flush()
    answer = json.loads(server.stdout.readline())
    answer["found"] = {tuple(pair) for pair in answer.get("found", [])}
    return Supervised(**answer)


@functools.cache
def _server() -> subprocess.Popen[str]:
    environment = os.environ | {"TRUESTEP_DATA": str(DATA), "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=REPOSITORY,
    )
    atexit.register(server.kill)
    return server


def _serve() -> None:
    import sklearn.datasets  # noqa: F401
    import torch
    import torch._dynamo  # imported by the first optimizer, and half of a short program's time
    import torch.utils.data  # noqa: F401

    from truestep.probes import Scene  # noqa: F401
    from truestep.rules import all_rules
    from truestep.supervision import Session  # noqa: F401

    all_rules()
    for line in sys.stdin:
        with tempfile.TemporaryDirectory() as folder:
            result, output = Path(folder, "result"), Path(folder, "output")
            child = os.fork()
            if not child:
                _child(**json.loads(line), result=result, output=output)
            how = _wait(child)
            text = output.read_text(errors="replace") if output.exists() else ""
            answer = json.loads(result.read_text()) if result.exists() else {"how": how}
            print(json.dumps(answer | {"output": text}), flush=True)


def _wait(child: int) -> str:
    limit = time.monotonic() + LIMIT_S
    while time.monotonic() < limit:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return f"ended with status {status}"
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"killed after {LIMIT_S:.0f} s"


def _child(command: list[str], options: dict[str, Any], result: Path, output: Path) -> None:
    import runpy
    import traceback

    from truestep.config import Options
    from truestep.findings import Confidence
    from truestep.report import render
    from truestep.supervision import Session, stream

    descriptor = os.open(output, os.O_CREAT | os.O_WRONLY)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = command
    sys.path[0] = str(Path(command[0]).parent)
    if not options["counting"]:
        stream.SHOWINGS = sys.maxsize
    record = Path(options["record"]) if options["record"] else None
    session, how = Session(Options(active=options["active"], record=record), script=command[0]), "finished"
    session.start()
    try:
        runpy.run_path(command[0], run_name="__main__")
    except SystemExit as exit:
        how = "exited" if exit.code else "finished"
    except BaseException:
        traceback.print_exc()
        how = "crashed"
    summary = session.stop(how)
    sure = [f for f in summary.findings if f.confidence is not Confidence.LOW and not f.explained_by]
    findings = [
        {
            "rule": f.rule,
            "confidence": str(f.confidence),
            "site": str(f.primary.site),
            "message": f.message,
            "seen": str(f.seen),
            "first_step": f.seen.first_step,
            "cost": f.cost,
            "help": f.help,
        }
        for f in summary.findings
    ]
    answer = {
        "how": how,
        "steps": summary.steps,
        "found": [[f.rule, f.primary.site.line if f.primary.site else 0] for f in sure],
        "findings": findings,
        "errors": list(summary.internal_errors),
        "report": json.loads(render(summary, "json")),
    }
    sys.stdout.flush()
    result.write_text(json.dumps(answer))
    os._exit(0)


if __name__ == "__main__":
    _serve()
