"""`truestep lint --watch`: the findings again after each change, until it is interrupted."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from truestep.cli import main

pytest.importorskip("watchfiles")

BAD = """\
import torch
import torch.nn.functional as F

model = torch.nn.Linear(2, 2)
F.cross_entropy(torch.softmax(model(x), 1), y).backward()
"""


def _save_again_and_again(path, enough):
    """Save a file until it was noticed: the watch begins a moment after the first result."""
    for number in range(200):
        path.write_text(BAD + f"# {number}\n", encoding="utf-8")
        if enough.wait(0.5):
            return


@pytest.mark.program
def test_a_change_is_checked_and_an_interrupt_ends_it(tmp_path):
    path = tmp_path / "net.py"
    path.write_text("import torch\n", encoding="utf-8")
    command = [sys.executable, "-u", "-m", "truestep", "lint", "--watch", "--no-cache", "--statistics", "."]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ)
    ) as process:
        try:
            assert process.stdout.readline() == "no failure found in 1 file\n"
            assert process.stdout.readline().startswith("watching")
            saved = threading.Event()
            writer = threading.Thread(target=_save_again_and_again, args=(path, saved))
            writer.start()
            try:
                assert any("softmax-before-cross-entropy" in line for line in process.stdout)
            finally:
                saved.set()
                writer.join()
            process.send_signal(signal.SIGINT)
            assert "caught" not in process.stdout.read()
            assert process.wait(60) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("arguments", [["--fix"], ["--diff"], ["--write-baseline", "base.json"], ["-"]])
def test_it_goes_with_nothing_that_is_for_one_check(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SystemExit) as ended:
        main(["lint", "--watch", *arguments])

    assert ended.value.code == 2
    assert "--watch does not go with" in capsys.readouterr().err
