"""A server of the Model Context Protocol on standard input and output, with commands of TrueStep as tools.

Each tool runs a command in a child process with a limit of its time, and returns its JSON document. The output of a
script goes to pipes, never to the standard output of the server, which carries the protocol.
"""

from __future__ import annotations

import json
import re
import signal
import tempfile
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent
from pydantic import Field

from truestep import __version__
from truestep.assistants import bounded
from truestep.assistants.bounded import Ended
from truestep.postmortem.catalogue import POST_MORTEMS
from truestep.rules import all_rules

_INSTRUCTIONS = """\
TrueStep finds silent failures of PyTorch training scripts: mistakes that do not crash, such as a missing zero_grad or
an evaluation in train mode. Call `lint` after each edit: it reads the files in a moment and runs nothing. Call `run`
on a script after each change of its training loop, since it observes far more; the script is not edited.
A finding has the line, the evidence, its cost and the fix; read the manual page of its rule with `explain` before the
change, which takes a symptom in words too. A rule that was not observed is not clean: run more steps, or more of the
script. `check` asks quick questions about the model and the data. `prove` measures whether a finding matters in this
script, `tune` which speed-ups gain. Scripts really run: give arguments for a short training."""
_TAIL = 4000
"""Most characters of the script's output in a result."""
_WROTE = re.compile(r"^truestep: wrote the report to .*\n", re.MULTILINE)
"""The report is in the result."""
_PROGRESS_S = 5.0
_REPLAY_S = 30.0

Script = Annotated[str, Field(description="Path of the script, relative to the folder")]
Arguments = Annotated[list[str] | None, Field(description="Command line arguments of the script")]
Folder = Annotated[str, Field(description="Working directory of the script, at or below that of the server")]
Rules = Annotated[list[str] | None, Field(description="Ids of rules")]
_T = TypeVar("_T")


def serve(root: Path) -> None:
    """Serve on standard input and output until the client closes them.

    Args:
        root: the folder to which scripts are restricted.
    """
    signal.signal(signal.SIGTERM, bounded.end_all)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a client that ignores it would pass that on to scripts
    server(root).run("stdio")


def server(root: Path) -> MCPServer[Any]:
    """Return the server.

    Args:
        root: the folder to which scripts are restricted.
    """
    made: MCPServer[Any] = MCPServer(
        "truestep", version=__version__, instructions=_INSTRUCTIONS, subscriptions=False, log_level="ERROR"
    )
    tools = Tools(root.resolve())
    for tool in (tools.lint, tools.run, tools.check, tools.explain, tools.prove, tools.tune):
        made.add_tool(tool)
    return made


class Tools:
    """The tools, with docstrings that are their descriptions.

    Args:
        root: resolved path of the folder to which scripts are restricted.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._one_at_a_time = anyio.Lock()

    async def lint(
        self,
        paths: Annotated[list[str] | None, Field(description="Files and folders; default: the whole folder")] = None,
        folder: Annotated[str, Field(description="Folder of the paths, at or below that of the server")] = ".",
        confidence: Annotated[
            Literal["high", "medium", "low"], Field(description="Least confidence of the findings")
        ] = "medium",
        select: Rules = None,
        ignore: Rules = None,
        seconds: Annotated[float, Field(description="Limit of the time", ge=1, le=86400)] = 50,
    ) -> CallToolResult:
        """Find silent failures in Python files and notebooks without running them; needs no torch.

        Fast: call it after each edit of a training loop. Returns `lint`, with `findings` (rule, line, confidence,
        help). It reads the syntax only: code without findings is not clean until `run` has observed it.
        """
        asked = paths or ["."]
        places = [self._place(path, folder) for path in asked]
        options = [f"--confidence={confidence}"]
        options += [f"--select={id}" for id in select or ()] + [f"--ignore={id}" for id in ignore or ()]
        call = ["lint", "--format=json", "--no-cache", *options, "--", *asked]
        ended = await bounded.run(call, folder=places[0], seconds=seconds)
        document = _document(ended)
        if document is None:
            raise ToolError(ended.err.strip() if ended.in_time else f"lint has not ended after {seconds:g} s")
        return _result({"lint": document})

    async def run(
        self,
        script: Script,
        context: Context,
        arguments: Arguments = None,
        folder: Folder = ".",
        steps: Annotated[int | None, Field(description="Stop after this many optimizer steps", ge=1)] = None,
        seconds: Annotated[float, Field(description="Limit of the time", ge=1, le=86400)] = 50,
        select: Rules = None,
        ignore: Rules = None,
        passive: Annotated[bool, Field(description="Leave out checks on copies of model and data")] = False,
    ) -> CallToolResult:
        """Run a PyTorch training script under supervision and report its silent failures.

        The script is not edited and has the same results as under python. Returns `report`, with `findings` (rule,
        line, evidence, cost, help), `verdicts` (found, clear or not-observed, with the reason) and `ledger` (facts of
        the run); `ended`; and the end of the script's `output`. At the limit the script is interrupted, and the
        report is about the steps until then. Rules about complete runs need a run to its end: prefer fewer epochs to
        a limit.
        """
        options = [f"--steps={steps}"] if steps is not None else []
        options += [f"--select={id}" for id in select or ()] + [f"--ignore={id}" for id in ignore or ()]
        options += ["--passive"] if passive else []
        return await self._supervised("run", options, script, arguments, folder, seconds, context)

    async def check(
        self,
        script: Script,
        context: Context,
        arguments: Arguments = None,
        folder: Folder = ".",
        steps: Annotated[int, Field(description="Largest number of optimizer steps", ge=1)] = 200,
        seconds: Annotated[float, Field(description="Limit of the time", ge=1, le=86400)] = 50,
    ) -> CallToolResult:
        """Check copies of a script's model and data in its first steps, up to its first evaluation.

        Answers whether each input has influence, whether the samples of a batch are independent, whether labels
        belong to their inputs, and more. Quick: seconds, also for a long training. The result is that of
        `run`.
        """
        return await self._supervised("check", [f"--steps={steps}"], script, arguments, folder, seconds, context)

    async def explain(
        self, words: Annotated[str, Field(description="Id of a rule or post-mortem, or a symptom in a few words")]
    ) -> CallToolResult:
        """Show the manual page of a rule, or find rules by symptom.

        With an id such as "missing-zero-grad" or "graph-freed": `page`, with the failure, its cost, an example, the
        fix and known false alarms. With a symptom such as "loss is nan", "accuracy stuck" or a message of torch:
        `symptoms`, with the most probable causes first.
        """
        listed = words in all_rules() or words in POST_MORTEMS
        options = [] if listed else ["--format=json"]
        ended = await bounded.run(["explain", *options, "--", words], folder=self._root, seconds=_REPLAY_S)
        if ended.code:
            raise ToolError(ended.err.strip())
        return _result({"page": ended.out} if listed else {"symptoms": json.loads(ended.out)})

    async def prove(
        self,
        script: Script,
        context: Context,
        rule: Annotated[str | None, Field(description="Id of one finding's rule; default: all findings")] = None,
        arguments: Arguments = None,
        folder: Folder = ".",
        seeds: Annotated[int, Field(description="Number of seeds", ge=3)] = 3,
        steps: Annotated[int, Field(description="Optimizer steps of each run", ge=2)] = 2000,
        seconds: Annotated[float, Field(description="Limit of the time", ge=1, le=86400)] = 300,
    ) -> CallToolResult:
        """Measure whether a finding matters: run the script with and without its fix over several seeds, and compare.

        The fix is applied from outside, in a copy of the folder; nothing is overwritten. Returns `proofs`, and
        `answer`: "matters", "does not matter" or "uncertain". It runs the script twice per seed.
        """
        options = [f"--seeds={seeds}", f"--steps={steps}", *([f"--rule={rule}"] if rule else [])]
        ended = await self._experiment("prove", options, script, arguments, folder, seconds, context)
        answers = {0: "does not matter", 1: "matters"}
        return _result(
            {
                "answer": answers.get(ended.code, "uncertain"),
                "proofs": [_thinned(proof) for proof in _document(ended) or ()],
                **_ending(ended, seconds),
            }
        )

    async def tune(
        self,
        script: Script,
        context: Context,
        arguments: Arguments = None,
        folder: Folder = ".",
        seconds: Annotated[float, Field(description="Limit of the time", ge=20, le=86400)] = 300,
        only: Annotated[list[str] | None, Field(description="Names of the only speed-ups to try")] = None,
    ) -> CallToolResult:
        """Measure the gain of each recommended speed-up on a script and this machine: alone, then combined.

        Each is applied from outside, in a copy of the folder; nothing is overwritten. Returns `tuning`, with the gain
        of each speed-up and the lines to write. Let nothing else run on the machine.
        """
        options = [f"--budget={max(10.0, 0.8 * seconds):.0f}", *(f"--only={name}" for name in only or ())]
        ended = await self._experiment("tune", options, script, arguments, folder, seconds, context)
        return _result({"tuning": _document(ended), **_ending(ended, seconds)})

    # --- the commands ------------------------------------------------------------------------------------------------

    async def _supervised(
        self,
        command: str,
        options: Sequence[str],
        script: str,
        arguments: Sequence[str] | None,
        folder: str,
        seconds: float,
        context: Context,
    ) -> CallToolResult:
        place = self._place(script, folder)
        with tempfile.TemporaryDirectory(prefix="truestep-mcp-") as scratch:
            file, record = Path(scratch, "report.json"), Path(scratch, "record")
            own = ["--format=json", f"--output={file}", *([f"--record={record}"] if command == "run" else [])]
            ended = await self._one(
                [command, *own, *options, "--", script, *(arguments or ())], place, seconds, context
            )
            if not file.exists() and ended.in_time and ended.code == 2:
                raise ToolError(ended.err.strip())
            if not file.exists() and record.is_dir():  # killed before its report
                replay = ["replay", "--format=json", f"--output={file}", str(record)]
                await bounded.run(replay, folder=place, seconds=_REPLAY_S)
            report = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
        if report is not None:
            report["record"] = None  # the folder is gone
        return _result({"report": report, **_ending(ended, seconds)})

    async def _experiment(
        self,
        command: str,
        options: Sequence[str],
        script: str,
        arguments: Sequence[str] | None,
        folder: str,
        seconds: float,
        context: Context,
    ) -> Ended:
        place = self._place(script, folder)
        call = [command, "--format=json", *options, "--", script, *(arguments or ())]
        ended = await self._one(call, place, seconds, context)
        if ended.in_time and ended.code == 2:
            raise ToolError(ended.err.strip())
        return ended

    async def _one(self, arguments: Sequence[str], place: Path, seconds: float, context: Context) -> Ended:
        """Run a command; others wait, since they would disturb its times."""
        async with self._one_at_a_time:
            return await _with_progress(bounded.run(arguments, folder=place, seconds=seconds), seconds, context)

    def _place(self, script: str, folder: str) -> Path:
        """Return the working directory of a script.

        Raises:
            ToolError: it or the script is not below the folder of the server.
        """
        place = (self._root / folder).resolve()
        for what, path in (("folder", place), ("script", (place / script).resolve())):
            if not path.is_relative_to(self._root):
                raise ToolError(
                    f"the {what} {path} is outside {self._root}\n"
                    f"  expected a path below the folder in which the server was started\n"
                    f"  start the server there: truestep mcp --root {path.parent if what == 'script' else path}"
                )
        if not place.is_dir():
            raise ToolError(
                f"the folder {folder} does not exist\n"
                f"  expected a folder below {self._root}\n"
                "  leave it out for the folder of the server"
            )
        return place


async def _with_progress(work: Awaitable[_T], seconds: float, context: Context) -> _T:
    """Await some work, and report the time that has passed: clients wait longer for a call that reports."""
    begun = anyio.current_time()

    async def report() -> None:
        while True:
            await anyio.sleep(_PROGRESS_S)
            await context.report_progress(min(anyio.current_time() - begun, seconds), seconds)

    async with anyio.create_task_group() as reporters:
        reporters.start_soon(report)
        result = await work
        reporters.cancel_scope.cancel()
    return result


def _ending(ended: Ended, seconds: float) -> dict[str, Any]:
    """Return how a command ended, for its result."""
    if ended.in_time:
        how = "finished"
    elif ended.interrupted:
        how = f"interrupted after {seconds:g} s"
    else:
        how = f"killed after {seconds:g} s: it did not react to an interrupt"
    return {
        "ended": how,
        "exit_code": ended.code,
        "seconds": round(ended.seconds, 1),
        "output": ended.out[-_TAIL:],
        "errors": _WROTE.sub("", ended.err)[-_TAIL:],
    }


def _document(ended: Ended) -> Any:
    """Return the JSON document of an experiment; None if it printed none."""
    try:
        document = json.loads(ended.out)
    except ValueError:
        return None
    ended.out = ""
    return document


def _thinned(proof: dict[str, Any]) -> dict[str, Any]:
    """Return a proof with few values of each curve, the last one among them: thousands would fill a conversation."""
    curves = ("losses", "gradient_norms")
    short = {
        name: {
            variant: [
                [values[(number * (len(values) - 1)) // 11] for number in range(12)] if len(values) > 12 else values
                for values in series
            ]
            for variant, series in proof[name].items()
        }
        for name in curves
        if name in proof
    }
    return proof | short


def _result(document: dict[str, Any]) -> CallToolResult:
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=document)
