"""``%load_ext truestep``: supervised cells and views of sessions, in a shell in this process and in a real notebook."""

import contextlib
import re
import sys
import textwrap
from pathlib import Path

import nbclient
import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

import truestep
from truestep import source
from truestep.findings import LedgerLine, Summary
from truestep.notebook import Report, of_session
from truestep.report import card

SETUP = """
import torch, truestep
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(16, 4), torch.randn(16, 1)
"""
BROKEN = """
for epoch in range(12):
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
"""
HEALTHY = BROKEN.replace("optimizer.step()", "optimizer.step(); optimizer.zero_grad()")
STEP = 3
"""Line of `optimizer.step()` in these."""


@pytest.fixture(scope="module")
def ipython():
    with contextlib.suppress(KeyError):
        sys.modules["truestep.notebook"]._loaded.clear()
    config = Config()
    config.HistoryManager.enabled = False
    hook, excepthook = sys.displayhook, sys.excepthook
    shell = InteractiveShell.instance(config=config)
    yield shell
    InteractiveShell.clear_instance()
    sys.displayhook, sys.excepthook = hook, excepthook


class Cells:
    """Runs cells, as a notebook does; keeps the reports shown and the printed output of the last one."""

    def __init__(self, shell):
        self.shell = shell

    def __call__(self, code):
        with capture_output() as captured:
            self.result = self.shell.run_cell(textwrap.dedent(code).strip("\n"), store_history=True)
        self.printed = captured.stdout + captured.stderr
        self.shown = [output.data for output in captured.outputs]
        return self.shown[-1]["text/plain"] if self.shown else ""

    @property
    def number(self):
        return self.shell.execution_count - 1


@pytest.fixture
def run(ipython):
    ipython.run_line_magic("load_ext", "truestep")
    cells = Cells(ipython)
    cells(SETUP)
    yield cells
    ipython.run_line_magic("unload_ext", "truestep")


def test_a_finding_has_the_number_and_the_line_of_the_cell(run):
    text = run("%%truestep" + BROKEN)
    assert run.result.success
    assert text.startswith("error[missing-zero-grad]: ")
    assert f"--> In[{run.number}]:{STEP + 1}:5" in text
    assert f"{STEP + 1} |     optimizer.step()" in text
    assert f"12 of SGD (In[{run.number}]:{STEP + 1})" in text
    html = run.shown[-1]["text/html"]
    assert f"In[{run.number}]:{STEP + 1}:5" in html
    assert '<span class="code hot">' in html


def test_a_healthy_cell_is_clean_with_its_own_value_and_weights(run):
    plain = run(SETUP + HEALTHY + "before = model.weight")
    assert plain == ""
    text = run("%%truestep" + SETUP + HEALTHY + "\ntorch.equal(before, model.weight)")
    assert text.rpartition("\n\n")[2].startswith("no failure found, ")
    assert run.result.result is True
    assert "True" in run.printed or run.shown[0]["text/plain"] == "True"


def test_a_cell_that_runs_twice_is_judged_twice(run):
    first = run("%%truestep" + BROKEN)
    one = run.number
    second = run("%%truestep" + BROKEN)
    assert run.number == one + 1
    assert f"In[{one}]" in first
    assert f"In[{one}]" not in second
    assert f"In[{one + 1}]" in second
    assert "11 of 12 steps" in first
    assert "11 of 12 steps" in second
    run("optimizer.zero_grad()")
    assert "no failure found" in run("%%truestep" + HEALTHY)


def test_a_model_that_is_defined_again_is_judged_with_its_own_optimizer(run):
    run("%%truestep" + HEALTHY)
    run("model = torch.nn.Linear(4, 1); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)")
    assert "no failure found" in run("%%truestep" + HEALTHY)
    run("model = torch.nn.Linear(4, 1)")
    text = run("%%truestep" + HEALTHY)
    assert "no failure found" not in text.rpartition("\n\n")[2]


def test_an_error_keeps_its_traceback_and_gets_a_post_mortem(run):
    text = run("%%truestep\n" + HEALTHY + "model(torch.zeros(3, 3))")
    assert isinstance(run.result.error_in_exec, RuntimeError)
    assert "truestep" not in run.printed.replace("%%truestep", "")
    assert text.startswith("post-mortem[shapes-do-not-fit]: ")
    assert f"In[{run.number}]:6:1" in text


def test_an_interrupted_cell_keeps_its_findings(run):
    run("%%truestep" + BROKEN + "    if epoch == 6: raise KeyboardInterrupt")
    text = run.shown[-1]["text/plain"]
    assert text.startswith("error[missing-zero-grad]: ")
    assert "6 of 7 steps" in text
    assert "the script was interrupted after 7 steps" in text


def test_arguments_choose_rules(run):
    assert "no failure found" in run("%%truestep --ignore missing-zero-grad" + BROKEN)
    text = run("%%truestep --select scheduler-never-stepped,clip-after-step --passive" + BROKEN)
    assert "2 not observed" in text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%%truestep --alow x", "it takes --select RULES, --ignore RULES and --passive"),
        ("%%truestep --ignore missing-zero-gard", 'no rule is called "missing-zero-gard"'),
        ("%%truestep --ignore 'x", "No closing quotation"),
        ("%%time\n%%truestep", "%%truestep must be the first line of a cell"),
    ],
)
def test_mistakes_are_explained_and_the_cell_does_not_run(run, line, said):
    run("ran = False")
    assert run(f"{line}\nran = True") == ""
    assert "UsageError: " in run.printed
    assert said in run.printed
    assert run.shell.user_ns["ran"] is False
    assert not truestep.supervision.session.watching()


def test_a_cell_that_cannot_be_compiled_has_no_report(run):
    run("%%truestep\nfor:")
    assert isinstance(run.result.error_before_exec, SyntaxError)
    assert run.shown == []
    assert "no failure found" in run("%%truestep" + HEALTHY)


def test_sessions_and_summaries_are_shown_as_reports(run):
    run("with truestep.watch() as session:" + textwrap.indent(BROKEN, "    ") + "session")
    formats, _ = run.shell.display_formatter.format(run.shell.user_ns["session"])
    assert formats["text/plain"].startswith("error[missing-zero-grad]: ")
    assert 'class="truestep-report"' in formats["text/html"]
    formats, _ = run.shell.display_formatter.format(run.shell.user_ns["session"].stop())
    assert formats["text/plain"].startswith("error[missing-zero-grad]: ")
    run("session = truestep.watch(); session.start()")
    run(HEALTHY)
    session = run.shell.user_ns["session"]
    try:
        formats, _ = run.shell.display_formatter.format(session)
        assert formats["text/plain"].startswith("no failure found, ")
        assert formats["text/plain"].endswith("so far: the session is running")
        assert "so far" in formats["text/html"]
        assert session.is_live
    finally:
        session.stop()


def test_everything_is_undone(ipython):
    ipython.run_line_magic("load_ext", "truestep")
    ipython.run_line_magic("load_ext", "truestep")
    ipython.run_line_magic("unload_ext", "truestep")
    cells = Cells(ipython)
    cells("import truestep\nwith truestep.watch() as session: pass\nsession")
    assert cells("%%truestep\n1") == ""
    assert "not found" in cells.printed
    assert source.LABELS == []
    formats, _ = ipython.display_formatter.format(ipython.user_ns["session"])
    assert "text/html" not in formats


def test_the_card_escapes_the_texts_of_the_program():
    line = LedgerLine("loss", "<b>of</b> `x<y`", rules=("x",))
    html = card.html(Summary("cell", "finished", steps=20, ledger=(line,)))
    assert "&lt;b&gt;of&lt;/b&gt; <code>x&lt;y</code>" in html
    assert '<p class="headline good">' in html
    assert "script" not in html


def test_a_session_that_never_began_has_a_report():
    report = of_session(truestep.watch())
    assert repr(report) == "nothing was checked: no optimizer step was seen"
    assert repr(Report(Summary("cell", "finished", steps=20))).startswith("no failure found")


@pytest.mark.program
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_has_the_reports_as_outputs(tmp_path):
    interrupted = BROKEN + "    if epoch == 6: os.kill(os.getpid(), signal.SIGINT); time.sleep(60)"
    cells = [
        "%load_ext truestep",
        "%%truestep\nimport os, signal, time" + SETUP + HEALTHY + "model.weight.shape",
        "%%truestep" + BROKEN,
        "%%truestep" + interrupted,
        "with truestep.watch() as session:" + textwrap.indent(HEALTHY, "    ") + "session",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells])
    nbclient.NotebookClient(
        notebook, timeout=600, allow_errors=True, resources={"metadata": {"path": tmp_path}}
    ).execute()
    nbformat.validate(notebook)
    _, healthy, broken, stopped, watched = (cell.outputs for cell in notebook.cells)
    assert [output.output_type for output in healthy] == ["execute_result", "display_data"]
    assert healthy[0].data["text/plain"] == "torch.Size([1, 4])"
    assert "no failure found" in healthy[1].data["text/plain"]
    (report,) = broken
    assert f"--> In[3]:{STEP + 1}:5" in report.data["text/plain"]
    assert "optimizer.step()" in report.data["text/html"]
    assert [output.output_type for output in stopped] == ["error", "display_data"]
    assert stopped[0].ename == "KeyboardInterrupt"
    assert "interrupted after 7 steps" in stopped[1].data["text/plain"]
    (shown,) = watched
    assert shown.data["text/plain"].rpartition("\n\n")[2].startswith("no failure found")
    assert "truestep-report" in shown.data["text/html"]


def test_the_cells_of_the_page_on_notebooks(ipython):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "notebooks.md").read_text(encoding="utf-8")
    cell, quoted = re.findall(
        r"^    (%%truestep\n(?:    .*\n|\n(?=    ))+?)\n(    error(?:.*\n)+?)\n", page, re.MULTILINE
    )[0]
    ipython.reset(new_session=True)
    cells = Cells(ipython)
    cells("%load_ext truestep")
    cells("import torch, truestep")
    cells(SETUP)
    printed = cells("    " + cell).splitlines()
    expected = textwrap.dedent(quoted).splitlines()[:-1]
    start = printed.index(expected[0])
    assert printed[start : start + len(expected)] == expected
    cells("def train(model, loader):" + textwrap.indent(HEALTHY, "    ") + "\nloader = None")
    started, trained, stopped = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    cells(started)
    cells(trained)
    formats, _ = ipython.display_formatter.format(cells.result.result)
    assert formats["text/plain"].startswith("no failure found, ")
    cells(stopped)
    assert not ipython.user_ns["session"].is_live
    ipython.run_line_magic("unload_ext", "truestep")
