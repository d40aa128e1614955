"""Programs that train and make other processes: the report is about the launched one, the children are undisturbed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tiers import only

pytest.importorskip("torch")

TRAINING = """
import os, sys, time
import torch
import torch.multiprocessing as mp
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def build():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    return model, torch.optim.SGD(model.parameters(), lr=1e-3)


def train(model, optimizer, steps, clear=True):
    for _ in range(steps):
        if clear:
            optimizer.zero_grad()
        x = torch.randn(8, 4)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
    return round(loss.item(), 6)

"""


@dataclass
class Run:
    code: int
    out: str
    err: str
    report: dict[str, Any]

    @property
    def found(self) -> set[str]:
        return {finding["rule"] for finding in self.report["findings"] if finding["confidence"] != "low"}


def python(arguments: list[str], folder: Path, **environment: str) -> tuple[int, str, str]:
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=600)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, out, err


def both(folder: Path, body: str) -> Run:
    """Run a program plainly and watched; output, errors and exit code are the same."""
    (folder / "train.py").write_text(TRAINING + textwrap.dedent(body))
    plain = python(["train.py"], folder)
    report = folder / "report.json"
    watching = ["-m", "truestep", "run", "--format", "json", "--output", str(report)]
    code, out, err = python([*watching, "train.py"], folder)
    err = "".join(line for line in err.splitlines(keepends=True) if not line.startswith("truestep: "))
    assert (code, out, err) == plain
    run = Run(code, out, err, json.loads(report.read_text()))
    assert run.report["internal_errors"] == []
    return run


CLEAR = {"True": set(), "False": {"missing-zero-grad"}}


@pytest.mark.parametrize("clear", only(["True"], CLEAR))
def test_fork_in_the_middle_of_training(clear: str, tmp_path: Path) -> None:
    run = both(
        tmp_path,
        f"""
        model, optimizer = build()
        train(model, optimizer, 5, {clear})
        child = os.fork()
        if child == 0:
            print("child", train(model, optimizer, 20, not {clear}), flush=True)
            os._exit(3)
        print("status", os.waitpid(child, 0)[1] >> 8, flush=True)
        print("parent", train(model, optimizer, 5, {clear}))
        """,
    )
    assert run.code == 0
    assert run.found == CLEAR[clear]
    assert run.report["steps"] == 10


def test_forked_child_that_ends_by_itself_writes_no_report(tmp_path: Path) -> None:
    run = both(
        tmp_path,
        """
        model, optimizer = build()
        train(model, optimizer, 3)
        sys.stdout.flush()
        child = os.fork()
        train(model, optimizer, 4, clear=child != 0)
        if child == 0:
            sys.exit(5)
        print(os.waitpid(child, 0)[1] >> 8)
        """,
    )
    assert run.out == "5\n"
    assert (run.found, run.report["steps"]) == (set(), 7)


@pytest.mark.program
@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_training_in_started_processes(method: str, tmp_path: Path) -> None:
    """Processes that train are supervised, and their findings are in one report."""
    run = both(
        tmp_path,
        f"""
        def worker(rank):
            torch.manual_seed(rank)
            model, optimizer = build()
            print(train(model, optimizer, 12, clear=False), flush=True)

        if __name__ == "__main__":
            process = mp.get_context("{method}").Process(target=worker, args=(0,))
            process.start()
            process.join()
            print(process.exitcode, "_bootstrap" in vars(process))
        """,
    )
    assert run.out.endswith("0 False\n")
    assert run.found == {"missing-zero-grad"}
    assert (run.report["steps"], run.report["ranks"]) == (12, 1)
    assert run.report["coverage"]["processes"] == 0
    assert run.report["internal_errors"] == []


@pytest.mark.slow
def test_two_spawned_ranks_are_one_report(tmp_path: Path) -> None:
    run = both(
        tmp_path,
        """
        def worker(rank, store):
            torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
            torch.manual_seed(rank)
            train(*build(), 12, clear=False)

        if __name__ == "__main__":
            mp.spawn(worker, (os.path.abspath(f"store-{os.getpid()}"),), nprocs=2)
        """,
    )
    assert run.found == {"missing-zero-grad"}
    (finding,) = run.report["findings"]
    assert (finding["seen"]["total"], finding["rank"]) == (24, None)
    assert (run.report["ranks"], run.report["missing_ranks"]) == (2, [])


def test_killed_process_is_not_called_clear(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        TRAINING
        + textwrap.dedent(
            """
            def worker():
                train(*build(), 3)
                os._exit(4)

            if __name__ == "__main__":
                process = mp.get_context("fork").Process(target=worker)
                process.start()
                process.join()
                print(process.exitcode)
            """
        )
    )
    watched = python(["-m", "truestep", "run", "--format", "json", "--output", "report.json", "train.py"], tmp_path)
    assert watched[:2] == (0, "4\n")
    report = json.loads((tmp_path / "report.json").read_text())
    started = "the process started at train.py:33 is not watched"
    assert report["headline"].endswith(started)
    assert {verdict["outcome"] for verdict in report["verdicts"]} == {"not-observed"}


def test_error_in_a_process_has_its_own_traceback(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        TRAINING
        + textwrap.dedent(
            """
            def worker():
                model, optimizer = build()
                train(model, optimizer, 3)
                model(torch.randn(8, 5))

            if __name__ == "__main__":
                process = mp.get_context("fork").Process(target=worker)
                process.start()
                process.join()
                print(process.exitcode)
            """
        )
    )
    plain = python(["train.py"], tmp_path)
    watched = python(
        ["-m", "truestep", "run", "--quiet", "--format", "json", "--output", "report.json", "train.py"], tmp_path
    )
    assert watched[:2] == plain[:2] == (0, "1\n")
    assert "truestep" not in watched[2]
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["post_mortem"]["primary"]["site"]["line"] == 30
    assert report["ended"] == "finished"


@pytest.mark.slow
def test_failing_spawned_worker(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        TRAINING
        + textwrap.dedent(
            """
            def worker(rank):
                train(*build(), 3)
                raise ValueError("worker")

            if __name__ == "__main__":
                mp.spawn(worker, nprocs=1)
            """
        )
    )
    plain = python(["train.py"], tmp_path)
    watched = python(["-m", "truestep", "run", "--quiet", "--output", "report", "train.py"], tmp_path)
    assert watched[:2] == plain[:2]
    assert watched[0] == 1
    assert "truestep" not in watched[2]
    assert "ValueError: worker" in watched[2]


@pytest.mark.parametrize(
    "method", ["fork", *(pytest.param(method, marks=pytest.mark.slow) for method in ("spawn", "forkserver"))]
)
def test_pool_beside_training(method: str, tmp_path: Path) -> None:
    run = both(
        tmp_path,
        f"""
        def evaluate(state):
            model, optimizer = build()
            model.load_state_dict(state)
            return train(model, optimizer, 6, clear=False)

        if __name__ == "__main__":
            model, optimizer = build()
            train(model, optimizer, 6)
            with mp.get_context("{method}").Pool(2) as pool:
                torch.manual_seed(1)
                states = [{{name: p.detach().clone() for name, p in model.named_parameters()}}] * 2
                losses = pool.map(evaluate, states)
                train(model, optimizer, 6)
                print(len(losses), all(loss > 0 for loss in losses))
        """,
    )
    assert run.out == "2 True\n"
    assert (run.found, run.report["steps"]) == (set(), 12)


@pytest.mark.program
def test_loader_workers(tmp_path: Path) -> None:
    run = both(
        tmp_path,
        """
        from torch.utils.data import DataLoader, TensorDataset

        if __name__ == "__main__":
            model, optimizer = build()
            x = torch.randn(64, 4)
            loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), 8, shuffle=True, num_workers=2)
            for epoch in range(2):
                for inputs, targets in loader:
                    loss = nn.functional.mse_loss(model(inputs), targets)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            print(f"{loss.item():.6f}")
        """,
    )
    assert (run.found, run.report["steps"]) == (set(), 16)


@pytest.mark.slow
def test_hogwild(tmp_path: Path) -> None:
    """Children train the shared weights of a model that the parent evaluates."""
    run = both(
        tmp_path,
        """
        def worker(model):
            optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
            train(model, optimizer, 10)

        if __name__ == "__main__":
            model, _ = build()
            model.share_memory()
            before = model[0].weight.detach().clone()
            processes = [mp.get_context("spawn").Process(target=worker, args=(model,)) for _ in range(2)]
            for process in processes:
                process.start()
            for process in processes:
                process.join()
            model.eval()
            with torch.no_grad():
                model(torch.randn(4, 4))
            print([process.exitcode for process in processes], not torch.equal(before, model[0].weight))
        """,
    )
    assert run.out == "[0, 0] True\n"
    assert run.found == set()


def test_subprocess_is_a_plain_python(tmp_path: Path) -> None:
    run = both(
        tmp_path,
        """
        import subprocess

        model, optimizer = build()
        train(model, optimizer, 4)
        code = "import sys; print('truestep' in sys.modules, sys.argv)"
        print(subprocess.run([sys.executable, "-c", code, "x"], capture_output=True, text=True).stdout)
        """,
    )
    assert run.out == "False ['-c', 'x']\n\n"


@pytest.mark.program
def test_termination_while_the_report_waits_for_a_rank(tmp_path: Path) -> None:
    """A launcher ends the other ranks when one has failed: the report comes out all the same."""
    (tmp_path / "train.py").write_text(TRAINING + "train(*build(), 5, clear=False)\nopen('done', 'w').close()\n")
    ranks = {"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": f"lost-{os.getpid()}", "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "truestep", "run", "--format", "json", "--output", "report.json", "train.py"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", **ranks},
        stderr=subprocess.DEVNULL,
    )
    try:
        limit = time.monotonic() + 60
        while not (tmp_path / "done").exists() and time.monotonic() < limit:
            time.sleep(0.02)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
    finally:
        process.kill()
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["missing_ranks"] == [1]
    assert [finding["rule"] for finding in report["findings"]] == ["missing-zero-grad"]
