"""SIGTERM and SIGINT: the window is finished, the run saved and ended; without a folder nothing is changed."""

import importlib.util
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from torch import nn

from truestep import Run
from truestep.loop.checkpoint.listing import find
from truestep.loop.process.signals import Signals, spare_once

PROGRAMS = Path(__file__).parent / "programs"
_spec = importlib.util.spec_from_file_location("training_program", PROGRAMS / "training.py")
training = importlib.util.module_from_spec(_spec)
sys.modules["training_program"] = training
_spec.loader.exec_module(training)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The final weights and the log of each training without a signal, made once."""
    known = {}

    def of(*options):
        if options not in known:
            out = tmp_path_factory.mktemp("whole") / "run"
            training.main([str(out), *options])
            known[options] = outcome(out)
        return known[options]

    return of


def outcome(out):
    final = torch.load(out / "final.pt", weights_only=True)
    return {key: value.tolist() for key, value in final["model"].items()}, (out / "metrics.jsonl").read_bytes()


def signalled(out, when, signals, *options):
    command = [sys.executable, "-W", "ignore", str(PROGRAMS / "signalled.py"), str(out), when, signals, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)


RARELY = ["--save-every", "100"]


@pytest.mark.parametrize(
    ("when", "signals", "code", "options", "saved"),
    [
        pytest.param("step:7", "TERM", 143, [], 7, marks=pytest.mark.program),
        pytest.param("step:7", "INT", 130, ["--workers", "2"], 7, marks=pytest.mark.program),
        pytest.param("window", "TERM", 143, ["--workers", "2", "--accumulate", "4"], 6, marks=pytest.mark.program),
        ("window", "TERM", 143, ["--accumulate", "4"], 6),
        pytest.param("evaluation", "TERM", 143, ["--asynchronous"], 15, marks=pytest.mark.program),
    ],
)
def test_a_signal_ends_the_step_and_saves(when, signals, code, options, saved, whole, tmp_path):
    out = tmp_path / "run"
    ended = signalled(out, when, signals, *RARELY, *options)
    assert ended.returncode == code, ended.stderr
    assert ended.stderr.splitlines() == [
        f"truestep: SIG{signals}: finishing the step and saving; once more ends at once"
    ]
    assert find(out).step == saved
    training.main([str(out), *RARELY, *options])
    assert outcome(out) == whole(*RARELY, *options)


@pytest.mark.program
def test_a_second_signal_ends_at_once(tmp_path):
    ended = signalled(tmp_path / "run", "step:7", "INT,INT")
    assert ended.returncode in (
        -signal.SIGINT,
        1,
    )  # 1 where torch loads modules at exit, and python forgets why it ends
    assert ended.stderr.endswith("KeyboardInterrupt\n")
    assert find(tmp_path / "run").step == 4, "nothing was saved after the signal"
    assert signalled(tmp_path / "other", "step:7", "INT,TERM").returncode == -signal.SIGTERM


# --- owners of handlers ---

NUMBERS = (signal.SIGTERM, signal.SIGINT)


def handlers():
    return [signal.getsignal(number) for number in NUMBERS]


@pytest.fixture
def defaults():
    """The handlers of a plain program, while a test runs."""
    before = handlers()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield handlers()
    for number, handler in zip(NUMBERS, before, strict=True):
        signal.signal(number, handler)


def made(out):
    run = Run(out=out, max_epochs=1, device="cpu")
    model = run.model(nn.Linear(2, 1))
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    return run, model, run.loader(torch.utils.data.TensorDataset(torch.randn(6, 2)), batch_size=2)


def test_handlers_are_there_while_a_loop_runs_and_no_longer(defaults, tmp_path):
    run, model, loader = made(tmp_path / "run")
    with run:
        for _ in run.epochs():
            inside = handlers()
            for (x,) in run.train(loader):
                assert handlers() == inside
                run.step(model(x).mean())
            assert handlers() == inside
    assert all(one != other for one, other in zip(inside, defaults, strict=True))
    assert handlers() == defaults


def test_a_run_without_folder_leaves_signals_alone(defaults):
    run, model, loader = made(None)
    for _ in run.epochs():
        for (x,) in run.train(loader):
            run.step(model(x).mean())
            assert handlers() == defaults
    run.close()


def test_a_handler_of_the_program_stays(defaults, tmp_path):
    taken = []
    signal.signal(signal.SIGTERM, lambda number, frame: taken.append(number))
    run, model, loader = made(tmp_path / "run")
    with run:
        for _ in run.epochs():
            for (x,) in run.train(loader):
                run.step(model(x).mean())
                os.kill(os.getpid(), signal.SIGTERM)
    assert taken == [signal.SIGTERM] * 3


def test_handlers_are_put_back_after_an_exception_that_keeps_the_loop(defaults, tmp_path):
    run, _, loader = made(tmp_path / "run")
    epochs = run.epochs()
    with pytest.raises(ZeroDivisionError), run:
        next(epochs)
        batches = run.train(loader)
        next(batches)
        assert handlers() != defaults
        _ = 1 / 0
    assert handlers() == defaults
    batches.close()
    epochs.close()
    assert handlers() == defaults


def test_one_sigterm_is_spared_while_an_error_is_shown(defaults):
    spare_once(60)
    os.kill(os.getpid(), signal.SIGTERM)
    assert handlers() == defaults, "the next one ends the program"
    signals = Signals()
    signals.install()
    spare_once(60)
    signals.restore()
    assert handlers() != defaults, "still spared where the handler of a run was"
    os.kill(os.getpid(), signal.SIGTERM)
    assert handlers() == defaults
    assert signals.received == 0


def test_a_later_sigterm_is_not_spared(defaults):
    program = "import os, signal, truestep.loop.process.signals as s; s.spare_once(-1); os.kill(os.getpid(), 15)"
    ended = subprocess.run([sys.executable, "-c", program], check=False)
    assert ended.returncode == -signal.SIGTERM


def test_sigterm_of_a_program_with_a_handler_is_not_spared(defaults):
    taken = []
    signal.signal(signal.SIGTERM, lambda number, frame: taken.append(number))
    spare_once(60)
    os.kill(os.getpid(), signal.SIGTERM)
    assert taken == [signal.SIGTERM]


def test_a_run_in_a_thread_trains_and_leaves_signals_alone(defaults, tmp_path):
    seen = []

    def train():
        run, model, loader = made(tmp_path / "run")
        with run:
            for _ in run.epochs():
                for (x,) in run.train(loader):
                    run.step(model(x).mean())
                    seen.append(handlers())

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert seen == [defaults] * 3


def test_a_run_inside_a_run_leaves_its_handlers_in_place(defaults, tmp_path):
    outer = made(tmp_path / "outer")[0]
    with outer:
        for _ in outer.epochs():
            taken = handlers()
            inner, model, again = made(tmp_path / "inner")
            with inner:
                for _ in inner.epochs():
                    for (x,) in inner.train(again):
                        inner.step(model(x).mean())
                        assert handlers() == taken
            assert handlers() == taken
    assert handlers() == defaults
