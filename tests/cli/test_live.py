"""The status line: it never touches the output of the script, and the terminal is as before at any end."""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import tty

import pytest
from terminals import Seen, played, set_size
from tiers import only

from truestep.cli.live import status_line
from truestep.cli.live.drawer import Screen, follow
from truestep.cli.live.status_line import StatusLine, refusal

pytestmark = pytest.mark.cold

DRAWN = """
import os, signal, sys, time
from truestep.cli.live.status_line import StatusLine, _terminal
print("first line", flush=True)
line = StatusLine(steps=9)
line._open(_terminal())
line._tell(loss="loss 0.5")
time.sleep(0.6)
print("last line", flush=True)
{end}
"""
ENDS = {
    "end": ("line.end()", 0),
    "exit without handlers": ("os._exit(7)", 7),
    "kill": ("os.kill(os.getpid(), signal.SIGKILL)", -9),
    "error": ("raise KeyError('x')", 1),
    "fork": ("os.fork() or os._exit(0)\nline.end()", 0),
    "wait for children": ("\ntry:\n    os.wait()\nexcept ChildProcessError:\n    print('no child')\nline.end()", 0),
}
TRAINING = """
import sys, time
import torch
from tqdm import tqdm
torch.manual_seed(0)
x = torch.randn(64, 4)
y = x.sum(1, keepdim=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in tqdm(range(30), ncols=60, mininterval=0):
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    time.sleep(0.05)
sys.stdout.write("counting 1")
for number in range(2, 40):
    sys.stdout.write(f"\\rcounting {number}")
    sys.stdout.flush()
print()
for number in range(30):
    print("row", number)
print("the end", flush=True)
time.sleep(0.5)
"""


@pytest.fixture
def terminal():
    """A pseudo-terminal of 10 rows: its screen, the script's end, and the file descriptor to read."""
    master, slave = os.openpty()
    tty.setraw(slave)
    set_size(slave, 10, 60)
    yield master, slave
    os.close(master)
    os.close(slave)


def shown(master, seen):
    while select.select([master], [], [], 0)[0]:
        seen.feed(os.read(master, 65536))
    return seen.rows


def test_output_scrolls_above_the_line(terminal):
    master, slave = terminal
    seen, screen = Seen(10, 60), Screen(slave, os.getpgrp())
    os.write(slave, b"begin\r\n" * 12 + b"half a li")
    screen.draw([("step 1", "")])
    os.write(slave, b"ne\r\n")
    assert shown(master, seen)[-3:] == ["half a line", "", "step 1"]
    for number in range(30):
        os.write(slave, f"row {number}\r\n".encode())
        screen.draw([(f"step {number}", "31")])
    assert shown(master, seen) == [*(f"row {number}" for number in range(22, 30)), "", "step 29"]
    assert seen.screen.buffer[9][0].fg == "red"
    screen.release()
    os.write(slave, b"after\r\n" * 2)
    assert shown(master, seen)[-3:] == ["after", "after", ""]
    assert seen.screen.margins is None or seen.screen.margins == (0, 9)
    history = ["".join(line[column].data for column in range(60)).rstrip() for line in seen.screen.history.top]
    assert not [row for row in history if "step" in row]


def test_a_line_that_is_written_over_keeps_its_place(terminal):
    master, slave = terminal
    seen, screen = Seen(10, 60), Screen(slave, os.getpgrp())
    for number in range(5):
        os.write(slave, f"\rprogress {number}".encode())
        screen.draw([("status", "")])
        assert shown(master, seen)[0] == f"progress {number}"
        assert (seen.screen.cursor.y, seen.screen.cursor.x) == (0, 10)
    os.write(slave, b"\x1b[32mgreen")
    screen.draw([("status", "2")])
    os.write(slave, b" still green")
    shown(master, seen)
    assert seen.screen.buffer[0][20].fg == "green"


@pytest.mark.parametrize("size", [(6, 60), (16, 60), (10, 40), (3, 60)])
def test_another_size_is_taken_at_the_next_drawing(terminal, size):
    master, slave = terminal
    seen, screen = Seen(10, 60), Screen(slave, os.getpgrp())
    os.write(slave, b"row\r\n" * 4)
    screen.draw([("status", "")])
    shown(master, seen)
    set_size(slave, *size)
    seen.resize(*size)
    screen.draw([("status " + "x" * 100, "")])
    rows = shown(master, seen)
    if size[0] == 3:  # no room
        assert not any("xxx" in row for row in rows)
        return
    assert rows[-1] == ("status " + "x" * 100)[: size[1] - 2] + "…"
    assert sum("status" in row for row in rows) == 1


def test_nothing_is_drawn_while_another_program_is_in_front(terminal, monkeypatch):
    master, slave = terminal
    seen, screen = Seen(10, 60), Screen(slave, 12345)
    monkeypatch.setattr(os, "tcgetpgrp", lambda terminal: 12345)
    screen.draw([("status", "")])
    assert shown(master, seen)[-1] == "status"
    monkeypatch.setattr(os, "tcgetpgrp", lambda terminal: 1)
    screen.draw([("status", "")])
    assert shown(master, seen)[-1] == ""


def test_the_last_message_is_drawn_and_the_end_of_messages_gives_the_row_back(terminal):
    master, slave = terminal
    seen, (source, pipe) = Seen(10, 60), os.pipe()
    thread = threading.Thread(target=follow, args=(Screen(slave, os.getpgrp()), source, os.getpid()))
    thread.start()
    for step in range(50):
        os.write(pipe, json.dumps({"step": f"step {step}", "found": "! rule", "colour": "31"}).encode() + b"\n")
    limit = time.monotonic() + 20
    while "step 49" not in shown(master, seen)[-1] and time.monotonic() < limit:
        time.sleep(0.02)
    assert seen.rows[-1].endswith("  step 49  ! rule")
    drawn = seen.written.count(b"\x1b[2K")
    os.close(pipe)
    thread.join()
    os.close(source)
    assert shown(master, seen)[-1] == ""
    assert drawn < 50


@pytest.mark.parametrize("end", only(["kill"], ENDS))
def test_the_terminal_is_as_before_at_any_end(end, tmp_path):
    code, status = ENDS[end]
    ended = played([sys.executable, "-c", DRAWN.format(end=code)], tmp_path)
    assert ended.status == status
    assert any("no step yet  loss 0.5" in row for row in ended.last_rows)
    assert ended.seen.rows[:2] == ["first line", "last line"]
    assert ended.seen.rows[-1] == ""
    assert ended.seen.written.rindex(b"\x1b[r") > ended.seen.written.rindex(b"loss 0.5")
    assert ended.seen.screen.margins is None or ended.seen.screen.margins == (0, 9)
    assert end != "wait for children" or "no child" in ended.seen.rows


@pytest.mark.program
def test_ctrl_c_ends_the_script_and_not_the_drawing_before_it(tmp_path):
    # "ready" is printed inside of `try`: an interrupt before it would end the script without its `finally`
    end = "try:\n    print('ready', flush=True); time.sleep(60)\nfinally:\n    line.end(); print('ended')"
    ended = played(
        [sys.executable, "-c", DRAWN.format(end=end)],
        tmp_path,
        when="ready",
        then=lambda process, terminal, seen: os.write(terminal, b"\x03"),
    )
    assert ended.status == -signal.SIGINT
    assert any("ended" in row for row in ended.seen.rows)  # where the terminal echoes ^C depends on the moment
    assert ended.seen.rows[-1] == ""


@pytest.mark.program
def test_a_supervised_script_has_its_output_and_the_line(tmp_path):
    (tmp_path / "train.py").write_text(TRAINING)
    ended = played(
        [sys.executable, "-m", "truestep", "run", "--live", "--passive", "train.py"], tmp_path, rows=100, columns=100
    )
    assert ended.status == 0
    rows = ended.seen.rows
    live = [row for row in ended.last_rows if "loss" in row]
    assert any("! missing-zero-grad" in row and "lr 0.01" in row and "norm" in row for row in live), ended.last_rows
    start = rows.index("row 0")
    assert start >= 2, "the terminal must have room for all output"
    assert rows[start - 1] == "counting 39"
    assert "100%|" in rows[start - 2]
    assert rows[start : start + 30] == [f"row {number}" for number in range(30)]
    assert rows[start + 30] == "the end"
    assert "1 failure found" in " ".join(rows)


@pytest.mark.parametrize(
    ("environment", "rank", "terminal", "reason"),
    [
        ({"TERM": "xterm"}, 0, "", "neither standard error nor standard output is a terminal"),
        ({"TERM": "dumb"}, 0, "/dev/tty", "the terminal cannot move its cursor (TERM is dumb or not set)"),
        ({}, 0, "/dev/tty", "the terminal cannot move its cursor (TERM is dumb or not set)"),
        ({"TERM": "xterm"}, 1, "/dev/tty", "rank 0 has it"),
        ({"TERM": "xterm"}, 0, "/dev/tty", ""),
    ],
)
def test_a_reason_is_given_where_no_line_can_be_drawn(environment, rank, terminal, reason, monkeypatch):
    monkeypatch.setattr(status_line, "_terminal", lambda: terminal)
    assert refusal(environment, rank) == reason


def test_an_error_in_a_reading_ends_the_line_and_not_the_script():
    line = StatusLine()
    source, line._pipe = os.pipe()
    line._answer, answer = os.pipe()
    os.close(answer)
    line._passes(type("Pass", (), {"roots": [None]})())
    assert line._pipe == -1
    assert os.read(source, 1) == b""
    line._stepped(None, (), {})
    os.close(source)


@pytest.mark.program
def test_without_a_terminal_the_run_goes_on_and_says_why(tmp_path):
    (tmp_path / "train.py").write_text("import torch\nprint('result')\n")
    command = [sys.executable, "-m", "truestep", "run", "--live", "--quiet", "train.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert done.stdout == "result\n"
    assert done.stderr.splitlines()[0] == (
        "truestep: no status line: neither standard error nor standard output is a terminal"
    )
