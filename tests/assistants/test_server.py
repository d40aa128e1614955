"""The server for coding assistants: results in JSON, limits of time and place, nothing of a script in the protocol."""

import json
import os
import signal
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import jsonschema
import pytest
from mcp import Client, StdioServerParameters
from mcp.server.mcpserver import MCPServer

import truestep.report
from truestep.assistants import bounded
from truestep.assistants.server import server

SCHEMA = json.loads(Path(truestep.report.__file__).with_name("report.schema.json").read_text(encoding="utf-8"))
LOOP = """
import torch

print("first line")
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    torch.nn.functional.mse_loss(model(torch.randn(8, 3)), torch.randn(8, 1)).backward()
    optimizer.step()
print("last line")
"""
LINE = 9
"""Of `optimizer.step()`, which steps on mixed gradients."""


@pytest.fixture
def write(tmp_path):
    def write(name, code):
        (tmp_path / name).write_text(textwrap.dedent(code), encoding="utf-8")

    write("train.py", LOOP)
    return write


def call(root, *calls, started=None):
    """Make calls of a server, in this process or over standard input and output; return results and progress."""
    results, progress = [], []

    async def note(*values):
        progress.append(values)

    async def talk():
        async with Client(started or server(root)) as client:
            for name, arguments in calls:
                results.append(await client.call_tool(name, arguments, progress_callback=note))

    in_thread(talk)
    return results, progress


def in_thread(talk):
    """Run a function outside the main thread, in which asyncio would handle SIGINT, and no process would start warm."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(anyio.run, talk).result()


def only(root, name, **arguments):
    ((result,), _) = call(root, (name, arguments))
    assert not result.is_error, result.content
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


def refused(root, name, **arguments):
    ((result,), _) = call(root, (name, arguments))
    assert result.is_error
    return result.content[0].text


@pytest.mark.program
def test_a_client_talks_to_the_server_over_standard_input_and_output(tmp_path, write):
    started = StdioServerParameters(command=sys.executable, args=["-m", "truestep", "mcp"], cwd=tmp_path)
    calls = ("run", {"script": "train.py"}), ("explain", {"words": "missing-zero-grad"})
    (run, explain), _ = call(tmp_path, *calls, started=started)
    done = run.structured_content
    jsonschema.validate(done["report"], SCHEMA)
    (finding,) = done["report"]["findings"]
    assert (finding["rule"], finding["primary"]["site"]["line"]) == ("missing-zero-grad", LINE)
    assert (done["ended"], done["exit_code"]) == ("finished", 0)
    assert done["output"] == "first line\nlast line\n"
    assert "report.json" not in done["errors"]
    assert "Known false alarms" in explain.structured_content["page"]


@pytest.mark.program
def test_run_passes_its_options(tmp_path, write):
    write("train.py", LOOP + "import sys; print(sys.argv[1:]); raise SystemExit(3)")
    done = only(tmp_path, "run", script="train.py", arguments=["--epochs", "2"], ignore=["missing-zero-grad"])
    assert done["report"]["findings"] == []
    assert done["output"].endswith("['--epochs', '2']\n")
    assert done["exit_code"] == 3
    done = only(tmp_path, "run", script="train.py", steps=5, select=["missing-zero-grad"], passive=True)
    assert (done["report"]["steps"], done["report"]["ended"]) == (5, "stopped")
    assert [verdict["rule"] for verdict in done["report"]["verdicts"]] == ["missing-zero-grad"]


@pytest.mark.program
def test_a_crash_is_a_result_with_its_post_mortem(tmp_path, write):
    write("train.py", LOOP + "model(torch.randn(8, 4))")
    done = only(tmp_path, "run", script="train.py")
    assert (done["report"]["ended"], done["exit_code"]) == ("crashed", 1)
    assert done["report"]["post_mortem"]["primary"]["site"]["line"] == len(LOOP.splitlines()) + 1
    assert "RuntimeError" in done["errors"]


@pytest.mark.program
def test_check_and_explain_answer(tmp_path, write):
    done = only(tmp_path, "check", script="train.py")
    assert done["ended"] == "finished"
    assert done["report"]["script"] == "train.py"
    done = only(tmp_path, "explain", words="loss is nan")
    assert done["symptoms"]
    assert "graph" in only(tmp_path, "explain", words="graph-freed")["page"]
    assert "UnknownRule" in refused(tmp_path, "explain", words="mising-zero-grad")


HANGS = """
import os, time
open("pid", "w").write(str(os.getpid()))
while True:
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        {handled}
"""


@pytest.fixture
def hang(monkeypatch, tmp_path, write):
    """Write a script that hangs, and let the limit of 40 s come as soon as it does, however busy the machine is."""

    async def waited(process, seconds, wait=bounded._waited):
        while seconds == 40 and process.returncode is None and not (tmp_path / "pid").exists():
            await anyio.sleep(0.02)
        return await wait(process, 0.1 if seconds == 40 else seconds)

    def hang(handled, *, grace_s):
        write("train.py", LOOP + HANGS.format(handled=handled))
        monkeypatch.setattr(bounded, "_waited", waited)
        monkeypatch.setattr(bounded, "GRACE_S", grace_s)

    return hang


@pytest.mark.program
def test_a_script_that_hangs_is_interrupted_and_reported_on(tmp_path, hang):
    hang("raise", grace_s=60)
    done = only(tmp_path, "run", script="train.py", seconds=40)
    assert done["ended"] == "interrupted after 40 s"
    assert done["report"]["ended"] == "interrupted"
    assert [finding["rule"] for finding in done["report"]["findings"]] == ["missing-zero-grad"]
    assert done["output"] == "first line\nlast line\n"  # written at the end of the interpreter


@pytest.mark.program
def test_a_script_that_ignores_interrupts_is_killed_and_its_findings_stay(tmp_path, hang):
    hang("pass", grace_s=0.5)
    done = only(tmp_path, "run", script="train.py", seconds=40)
    assert done["ended"] == "killed after 40 s: it did not react to an interrupt"
    assert done["report"]["ended"] == "unfinished"
    assert [finding["rule"] for finding in done["report"]["findings"]] == ["missing-zero-grad"]
    assert gone(tmp_path / "pid")


def test_a_cancelled_call_leaves_no_process(tmp_path, write):
    write("train.py", LOOP + HANGS.format(handled="pass"))

    async def talk():
        async with Client(server(tmp_path)) as client:
            async with anyio.create_task_group() as calls:
                calls.start_soon(client.call_tool, "run", {"script": "train.py", "seconds": 500})
                while not (tmp_path / "pid").exists():
                    await anyio.sleep(0.05)
                calls.cancel_scope.cancel()

    in_thread(talk)
    assert gone(tmp_path / "pid")


def gone(file):
    """Wait for the end of the process whose number is in a file."""
    number = int(file.read_text())
    for _ in range(600):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return True
        state = Path(f"/proc/{number}/stat")
        if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.program
def test_a_script_outside_the_folder_is_refused(tmp_path, write):
    inside = tmp_path / "inside"
    inside.mkdir()
    text = refused(inside, "run", script="../train.py")
    assert f"{tmp_path}/train.py is outside {inside}" in text
    assert f"truestep mcp --root {tmp_path}" in text
    (inside / "link.py").symlink_to(tmp_path / "train.py")
    assert "is outside" in refused(inside, "check", script="link.py")
    assert "is outside" in refused(inside, "tune", script=str(tmp_path / "train.py"))
    assert "is outside" in refused(inside, "run", script="train.py", folder="..")
    assert "does not exist" in refused(inside, "prove", script="train.py", folder="elsewhere")
    assert only(tmp_path, "run", script="../train.py", folder="inside")["exit_code"] == 0


@pytest.mark.program
def test_mistakes_of_a_call_are_explained(tmp_path, write):
    text = refused(tmp_path, "run", script="trian.py")
    assert "NoSuchScript" in text
    assert "UnknownRule" in refused(tmp_path, "run", script="train.py", select=["no-such-rule"])
    assert "seconds" in refused(tmp_path, "run", script="train.py", seconds=0)
    assert "NoSuchScript" in refused(tmp_path, "prove", script="missing.py")
    write("broken.py", "def f(:\n")
    assert "ScriptSyntaxError" in refused(tmp_path, "run", script="broken.py")


PROOF = {
    "rule": "missing-zero-grad",
    "losses": {"as_it_is": [list(range(100)), [1.5]], "remedied": [[]]},
    "gradient_norms": {"as_it_is": [], "remedied": []},
}


def test_prove_and_tune_return_their_documents(tmp_path, monkeypatch):
    """The commands are simulated: an experiment takes half a minute, and has tests in `tests/experiments`."""
    asked = []

    async def run(arguments, *, folder, seconds):
        asked.append(list(arguments))
        code, out = {"prove": (1, json.dumps([PROOF])), "tune": (3, "nothing")}[arguments[0]]
        return bounded.Ended(code, out, "0:01 run 1\n", 1.0, in_time=True)

    monkeypatch.setattr(bounded, "run", run)
    done = only(tmp_path, "prove", script="train.py", rule="missing-zero-grad", arguments=["-x"])
    assert (done["answer"], done["output"]) == ("matters", "")
    (proof,) = done["proofs"]
    assert proof["losses"]["as_it_is"] == [[0, 9, 18, 27, 36, 45, 54, 63, 72, 81, 90, 99], [1.5]]
    assert proof | {"losses": 0} == PROOF | {"losses": 0}
    done = only(tmp_path, "tune", script="train.py", seconds=100, only=["fused-optimizer"])
    assert (done["tuning"], done["exit_code"], done["output"]) == (None, 3, "nothing")
    assert asked == [
        ["prove", "--format=json", "--seeds=3", "--steps=2000", "--rule=missing-zero-grad", "--", "train.py", "-x"],
        ["tune", "--format=json", "--budget=80", "--only=fused-optimizer", "--", "train.py"],
    ]


def test_a_long_call_reports_its_progress(tmp_path, monkeypatch):
    async def run(arguments, *, folder, seconds):
        await anyio.sleep(0.1)
        return bounded.Ended(0, "[]", "", 0.1, in_time=True)

    monkeypatch.setattr(bounded, "run", run)
    monkeypatch.setattr("truestep.assistants.server._PROGRESS_S", 0.01)
    _, progress = call(tmp_path, ("prove", {"script": "train.py", "seconds": 60}))
    assert progress
    assert all(0 <= passed <= total == 60 for passed, total, _ in progress)


def test_scripts_can_be_interrupted_if_the_client_ignores_interrupts(tmp_path, monkeypatch):
    from truestep.assistants import server as module

    seen = []
    monkeypatch.setattr(MCPServer, "run", lambda self, transport: seen.append(signal.getsignal(signal.SIGINT)))
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        module.serve(tmp_path)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert seen == [signal.default_int_handler]


def test_the_server_needs_its_extra(tmp_path, monkeypatch):
    from truestep.cli.assisting.mcp import mcp
    from truestep.errors import PackageMissing, UsageError

    with pytest.raises(UsageError, match="is not a folder"):
        mcp(tmp_path / "missing")
    monkeypatch.setattr("truestep.cli.assisting.mcp.find_spec", lambda name: None)
    with pytest.raises(PackageMissing, match=r"pip install 'truestep\[mcp\]'"):
        mcp(tmp_path)


def test_lint_reads_files_without_running_them(write, tmp_path):
    write("train.py", LOOP.replace("import torch", "import torch\nraise SystemExit('it was run')", 1))

    (result,), _ = call(tmp_path, ("lint", {"paths": ["train.py"], "confidence": "high"}))

    document = result.structured_content["lint"]
    assert document["schema"] == "truestep.lint/1"
    assert [one["rule"] for one in document["findings"]] == ["missing-zero-grad"]
    assert document["findings"][0]["primary"]["site"]["line"] == LINE + 1
    assert not list(tmp_path.glob(".truestep_cache"))


def test_lint_reads_only_below_the_folder_of_the_server(tmp_path):
    (result,), _ = call(tmp_path, ("lint", {"paths": ["train.py", ".."]}))

    assert result.is_error
    assert "is outside" in result.content[0].text
