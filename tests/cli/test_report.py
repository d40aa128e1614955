"""`truestep report`, and `truestep run --report`."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest

PROGRAM = """
    import torch

    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(30):
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.step()
        {end}
"""
BLOCK = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {names} else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
from truestep.cli import main
main()
"""


def truestep(folder, *arguments, without=()):
    code = BLOCK.replace("{names}", repr(set(without))) if without else "from truestep.cli import main\nmain()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, encoding="utf-8", check=False)


def write(folder, name="train.py", end="pass"):
    (folder / name).write_text(textwrap.dedent(PROGRAM).format(end=end), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    folder = write(tmp_path_factory.mktemp("recorded"))
    done = truestep(folder, "run", "--quiet", "--record", "runs/a", "--report", "live/page.html", "train.py")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.program
def test_the_page_of_a_record(record):
    done = truestep(record, "report", "runs/a", without=["torch", "numpy"])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"wrote the page {os.path.join('runs', 'a', 'report.html')}\n"
    html = (record / "runs" / "a" / "report.html").read_text(encoding="utf-8")
    assert "1 failure found" in html
    assert "30 backward passes, 30 used, 29 used again by later steps" in html


@pytest.mark.program
def test_the_page_at_the_end_of_the_run_is_that_of_its_record(record):
    truestep(record, "report", "runs/a")
    live, replayed = ((record / name).read_text("utf-8") for name in ("live/page.html", "runs/a/report.html"))
    assert live == replayed


@pytest.mark.program
def test_a_page_of_two_runs(record):
    done = truestep(record, "report", "runs/a", "runs/a/rank-0.jsonl", "--output", "both.html")
    assert done.stdout == "wrote the page both.html\n"
    assert "2 runs compared" in (record / "both.html").read_text(encoding="utf-8")
    assert truestep(record, "report", "runs/a", "runs/a").stdout.endswith("comparison.html\n")


def test_no_record(tmp_path):
    done = truestep(tmp_path, "report", "runs/none")
    assert done.returncode == 2
    assert done.stderr.startswith("BadRecord: ")


@pytest.mark.program
def test_the_run_says_where_the_page_is(tmp_path):
    done = truestep(write(tmp_path), "run", "--report", "page.html", "train.py")
    assert done.stderr.endswith("truestep: wrote the page page.html\n")
    assert "missing-zero-grad" in done.stderr
    done = truestep(tmp_path, "run", "--report", "page.html", "--format", "json", "--output", "out.json", "train.py")
    assert done.stderr.endswith("truestep: wrote the report to out.json; wrote the page page.html\n")


@pytest.mark.program
@pytest.mark.parametrize(
    ("end", "said", "code"),
    [
        (
            "torch.zeros(2) @ torch.zeros(3) if step == 20 else 0",
            "The script ended with RuntimeError after 21 steps",
            1,
        ),
        ("raise SystemExit(3)", "in the 1 step before the script called sys.exit", 3),
    ],
)
def test_a_run_that_ends_early_has_a_page(tmp_path, end, said, code):
    done = truestep(write(tmp_path, end=end), "run", "--quiet", "--report", "page.html", "train.py")
    assert done.returncode == code
    assert said.lower() in (tmp_path / "page.html").read_text(encoding="utf-8").lower()


def test_a_script_without_torch_has_a_page(tmp_path):
    (tmp_path / "train.py").write_text("print(1)\n", encoding="utf-8")
    done = truestep(tmp_path, "run", "--report", "page.html", "train.py")
    assert done.returncode == 0, done.stderr
    assert "the script never imported torch" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.program
@pytest.mark.parametrize("arguments", [["report", "runs/a"], ["run", "--report", "page.html", "train.py"]])
def test_without_jinja2_nothing_is_begun(record, arguments):
    done = truestep(record, *arguments, without=["jinja2"])
    assert done.returncode == 2
    assert "needs Jinja2" in done.stderr
    assert "pip install 'truestep[report]'" in done.stderr


def test_a_page_that_cannot_be_written_stops_the_run_before_it_begins(tmp_path):
    write(tmp_path, end="print('ran')")
    (tmp_path / "file").write_text("", encoding="utf-8")
    for place in ("file/page.html", "."):
        done = truestep(tmp_path, "run", "--report", place, "train.py")
        assert done.returncode == 2
        assert "the page cannot be written" in done.stderr
        assert done.stdout == ""


@pytest.mark.program
def test_a_run_without_a_page_imports_no_template_engine(tmp_path):
    (tmp_path / "train.py").write_text("print(1)\n", encoding="utf-8")
    command = [sys.executable, "-X", "importtime", "-m", "truestep", "run"]
    for options, expected in (([], False), (["--report", "page.html"], True)):
        done = subprocess.run(
            [*command, *options, "train.py"], capture_output=True, text=True, cwd=tmp_path, check=True
        )
        assert ("jinja2.environment" in done.stderr) is expected


@pytest.mark.program
def test_several_ranks_have_one_page(tmp_path):
    done = truestep(write(tmp_path), "run", "--record", "runs/a", "--quiet", "train.py")
    assert done.returncode == 0
    lines = (tmp_path / "runs" / "a" / "rank-0.jsonl").read_text(encoding="utf-8")
    second = lines.replace('"script"', '"rank":1,"world_size":2,"script"', 1)
    (tmp_path / "runs" / "a" / "rank-1.jsonl").write_text(second, encoding="utf-8")
    done = truestep(tmp_path, "report", "runs/a")
    assert done.returncode == 0, done.stderr
    html = (tmp_path / "runs" / "a" / "report.html").read_text(encoding="utf-8")
    assert "2 ranks were watched" in html
    assert "30 steps of SGD" in html


@pytest.mark.program
def test_a_page_follows_a_run_until_its_end(tmp_path):
    write(tmp_path, end="import time; time.sleep(0.0 if step < 5 else 0.1)")
    code = "from truestep.cli import main\nmain()"

    def start(*arguments):
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.Popen(command, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    run = start("run", "--quiet", "--record", "runs/a", "train.py")
    recorded, page = tmp_path / "runs/a/rank-0.jsonl", tmp_path / "runs/a/report.html"
    while not (recorded.exists() and recorded.stat().st_size):
        assert run.poll() is None
        time.sleep(0.02)
    follower = start("report", "--follow", "runs/a")
    while not page.exists():
        assert follower.poll() is None, follower.stderr.read()
        time.sleep(0.02)
    assert 'data-reload="2.0"' in page.read_text(encoding="utf-8")
    run.communicate(timeout=600)
    said, errors = follower.communicate(timeout=600)
    assert follower.returncode == 0, errors
    assert [line.partition(";")[0] for line in said.splitlines()] == ["wrote the page runs/a/report.html"] * 2
    text = page.read_text(encoding="utf-8")
    assert "data-reload" not in text.partition("<head>")[0]
    assert "<b>30</b> steps" in text
    assert list(page.parent.glob(".*")) == []


@pytest.mark.program
def test_ctrl_c_leaves_a_page_that_stays(tmp_path, record):
    folder = tmp_path / "a"
    shutil.copytree(record / "runs/a", folder)
    lines = (folder / "rank-0.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "rank-0.jsonl").write_text("".join(lines[:-1]), encoding="utf-8")  # without its end
    page = folder / "report.html"
    page.unlink(missing_ok=True)
    command = [sys.executable, "-c", "from truestep.cli import main\nmain()", "report", "--follow", str(folder)]
    follower = subprocess.Popen(command, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not page.exists():
        assert follower.poll() is None, follower.stderr.read()
        time.sleep(0.02)
    time.sleep(0.2)
    follower.send_signal(signal.SIGINT)
    _, errors = follower.communicate(timeout=600)
    assert (follower.returncode, errors) == (0, "")
    assert "data-reload" not in page.read_text(encoding="utf-8").partition("<head>")[0]
