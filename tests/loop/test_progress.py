"""Progress gives way to the output of the program, says little elsewhere, and changes nothing."""

import contextlib
import io
import sys

import pytest
import torch
from torch import nn

from truestep import Run
from truestep.loop.log import progress_line as progress_module
from truestep.loop.log.banner import introduction
from truestep.loop.log.progress_line import Completion, ProgressLine
from truestep.loop.log.throughput import Throughput
from truestep.loop.process import terminal

WIPE = "\r\x1b[2K"


class Terminal(io.StringIO):
    """A terminal of which everything that was written is kept."""

    def isatty(self):
        return True

    @contextlib.contextmanager
    def streams(self):
        """Be both streams of the program."""
        with contextlib.redirect_stdout(self), contextlib.redirect_stderr(self):
            yield
            assert (sys.stdout, sys.stderr) == (self, self), "the streams are restored"

    def screen(self):
        """Return its final text, without colours."""
        lines, text = [""], self.getvalue()
        for part in text.replace(WIPE, "\0").splitlines(keepends=True):
            for place, shown in enumerate(part.split("\0")):
                lines[-1] = shown if place else lines[-1] + shown
            if part.endswith("\n"):
                lines[-1] = lines[-1].rstrip("\n")
                lines.append("")
        return lines


@pytest.fixture
def screen(monkeypatch):
    """A terminal on which progress is drawn at every step."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress_module, "_REDRAWN_S", 0.0)
    return Terminal()


def trained(body=lambda step: None, **settings):
    settings = {"seed": 1, "device": "cpu", "max_epochs": 2, "watch": False, "log_every_n_steps": 2} | settings
    run = Run(**settings)
    data = torch.utils.data.TensorDataset(*torch.randn(2, 20, 3, generator=torch.Generator().manual_seed(0)))
    loader = run.loader(data, batch_size=4, shuffle=True)
    model = run.model(nn.Linear(3, 3))
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    with run:
        for _ in run.epochs():
            for x, y in run.train(loader, model):
                loss = nn.functional.mse_loss(model(x), y)
                run.step(loss)
                run.log({"loss": loss})
                body(run.global_step)
    return model


def test_what_the_program_prints_stays_whole(screen):
    def body(step):
        print("printed", step)
        print("half", end="")
        print(" and half", step, file=sys.stderr)
        sys.stdout.writelines(["two\n", "lines\n"])

    with screen.streams():
        trained(body)
    expected = []
    for step in range(1, 11):
        expected += [f"printed {step}", f"half and half {step}", "two", "lines"]
    assert screen.screen()[1:] == [*expected, ""], "the first line introduces the run"
    assert "epoch 2/2" in screen.getvalue()


def test_the_line_waits_for_the_end_of_a_line_of_the_program(screen):
    with screen.streams():
        trained(lambda step: print(".", end="", flush=True))
    after = screen.getvalue().partition(".")[2]
    assert "epoch" not in after
    assert screen.screen()[-1] == "." * 10


def test_the_line_gives_way_to_tqdm(screen):
    tqdm = pytest.importorskip("tqdm").tqdm
    with screen.streams(), tqdm(total=10, mininterval=0, file=sys.stderr) as bar:
        trained(lambda step: bar.update())
        assert "epoch 1/2" not in screen.getvalue()
    assert "100%" in screen.screen()[1]


def test_streams_are_put_back_after_an_exception(screen):
    def body(step):
        raise KeyError(step)

    with screen.streams(), pytest.raises(KeyError):
        trained(body)
    assert screen.screen()[-1] == ""


def test_a_stream_that_the_program_replaced_stays(screen):
    own = io.StringIO()
    with contextlib.redirect_stdout(own):
        trained(lambda step: setattr(sys, "stdout", own))
        assert sys.stdout is own


def test_the_line_is_no_longer_than_the_terminal(screen, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    with screen.streams():
        trained()
    lines = screen.getvalue().split(WIPE)[1:]
    plain = [terminal_text(line) for line in lines]
    assert any("epoch 1/2" in line for line in plain)
    assert all(len(line.rstrip("\n")) < 40 for line in plain)


def terminal_text(text):
    from rich.text import Text

    return Text.from_ansi(text).plain


def test_elsewhere_there_are_few_lines(capsys):
    trained()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0] == (
        "truestep: Linear (12 parameters, float32, cpu), forward pass in fp32; first batch: (4, 3) float32, "
        "(4, 3) float32, cpu"
    )
    assert said[1].startswith("truestep: epoch 2/2, step 10, loss ")
    assert "lr 0.1" in said[1]
    assert "steps/s" in said[1]


def test_lines_come_by_the_clock_in_a_long_epoch(capsys, monkeypatch):
    monkeypatch.setattr(progress_module, "_LINE_S", 0.0)
    trained()
    said = capsys.readouterr().err.splitlines()
    assert [line.split(", ")[1] for line in said[2:7]] == [f"step {step}" for step in range(2, 7)]


@pytest.mark.parametrize("terminal_there", [True, False])
def test_progress_can_be_switched_off(terminal_there, monkeypatch):
    stream = Terminal() if terminal_there else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    trained(progress=False)
    assert stream.getvalue() == ""


def test_progress_changes_no_weight(screen):
    with screen.streams():
        shown = trained()
    assert "epoch 2/2" in screen.getvalue()
    assert torch.equal(shown.weight, trained(progress=False).weight)


def test_a_step_between_two_drawings_draws_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    drawn = []
    monkeypatch.setattr(ProgressLine, "_drawn", lambda self, position, now: drawn.append(position.step) or "x")
    trained(max_epochs=4)
    assert drawn[0] == 1
    assert len(drawn) < 20


def test_a_terminal_that_is_gone_ends_no_training(monkeypatch):
    gone = Terminal()
    monkeypatch.setattr(sys, "stderr", gone)
    gone.close()
    trained()


@pytest.mark.parametrize(
    ("position", "part"),
    [
        (Completion(5), None),
        (Completion(5, 20), 0.25),
        (Completion(5, 20, epoch=1, epochs=2, in_epoch=True), 0.5),
        (Completion(5, batch=1, batches=4), 0.25),
        (Completion(5, epoch=3, epochs=3, in_epoch=True), 1.0),
        (Completion(0, epoch=0, epochs=2, batch=1, batches=None, in_epoch=True), 0.0),
    ],
)
def test_part_of_a_run(position, part):
    assert position.part == part


def test_frozen_and_lazy_parameters_are_introduced():
    model = nn.Sequential(nn.Linear(100, 200), nn.LazyLinear(3))
    model[0].weight.requires_grad_(False)
    assert introduction({"m": model}, {"x": torch.ones(2, dtype=torch.bfloat16)}, "bf16") == (
        "Sequential (20.2 k parameters, 20.0 k frozen, float32, cpu), forward pass in bf16; "
        "first batch: (2,) bfloat16, cpu"
    )


def test_the_clock_runs_in_training_loops_only(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("truestep.loop.log.throughput.time.perf_counter", lambda: now[0])
    pace = Throughput(torch.device("cpu"), peak=1000.0)
    pace.flops_per_sample = 5.0
    pace.enter()
    before = pace.measure(0)
    now[0] = 2.0
    pace.samples += 100
    pace.leave()
    now[0] = 50.0
    measured = pace.measure(10).since(before)
    assert (measured["steps_per_s"], measured["samples_per_s"], measured["mfu"]) == (5.0, 50.0, 0.25)


def test_samples_of_an_incomplete_last_batch_are_counted():
    run = Run(device="cpu", max_epochs=2, watch=False, progress=False)
    loader = run.loader(torch.randn(10, 3), batch_size=4)
    with run:
        for _ in run.epochs():
            for _ in run.train(loader):
                pass
    assert (run._log.pace.samples, run._log.pace.batches) == (20, 6)


def test_the_guard_is_the_stream_in_all_else(screen):
    with screen.streams():
        line = terminal.StatusLine(screen)
        line.show("status")
        assert sys.stdout is not screen
        assert sys.stdout.isatty()
        assert sys.stdout.getvalue().endswith("status")
        line.close()
    assert screen.screen() == [""]
