"""Run programs under supervision, each in its own process: of the tests over proofs, healthy programs and seeds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("TRUESTEP_DATA", REPOSITORY.parent / "shared" / "data"))
_MARK = re.compile(r"#\s*error:\s*([\w-]+(?:\s*,\s*[\w-]+)*)")
LIMIT_S = 180.0


@dataclass
class Supervised:
    """The result of one program."""

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


def supervise(
    path: Path,
    *arguments: str,
    record: Path | None = None,
    counting: bool = True,
    steps: int | None = None,
    cwd: Path = REPOSITORY,
) -> Supervised:
    """Run one program under supervision and return the result.

    Args:
        path: the program.
        arguments: its own.
        record: folder for a record of the run.
        counting: whether steps that repeat are only counted, as they are for users; else the rules see each of them.
        steps: number of steps after which the program is stopped.
        cwd: folder that it runs in.
    """
    options = {"record": record and str(record), "counting": counting, "steps": steps}
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result")
        request = {"command": [str(path), *arguments], "options": options, "result": str(result)}
        try:
            done = subprocess.run(
                [sys.executable, __file__, json.dumps(request)],
                cwd=cwd,
                env=os.environ | {"TRUESTEP_DATA": str(DATA), "OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=LIMIT_S,
                check=False,
            )
            how, output = f"ended with status {done.returncode}", done.stdout
        except subprocess.TimeoutExpired as error:
            how, output = f"killed after {LIMIT_S:.0f} s", error.stdout or b""
        answer = json.loads(result.read_text()) if result.exists() else {"how": how}
    answer["found"] = {tuple(pair) for pair in answer.get("found", [])}
    return Supervised(**answer, output=output.decode(errors="replace"))


def _run(command: list[str], options: dict[str, Any], result: str) -> None:
    """Run a program in this process, write the result to a file, and exit."""
    import traceback

    from truestep.config import Options
    from truestep.findings import Confidence
    from truestep.report import render
    from truestep.supervision import Session, stream
    from truestep.supervision.launching.program import Target, prepare

    program = prepare(Target(command[0], tuple(command[1:])))
    main = program.place()
    if not options["counting"]:
        stream.SHOWINGS = sys.maxsize
    record = Path(options["record"]) if options["record"] else None
    session, how = Session(Options(record=record, steps=options["steps"]), script=command[0]), "finished"
    session.start()
    try:
        program.run(main)
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
    sys.stderr.flush()
    Path(result).write_text(json.dumps(answer))
    os._exit(0)


if __name__ == "__main__":
    _run(**json.loads(sys.argv[1]))
