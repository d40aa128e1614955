"""Steps that repeat are passed over, and the report of the run does not change by it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiers import few

from truestep.config import Options
from truestep.events import OptimizerStepped
from truestep.findings import Outcome, Summary
from truestep.supervision import Session, stream
from truestep.supervision.record import read

torch = pytest.importorskip("torch")
nn = torch.nn

from truestep.probes.context import repetition

STEPS = 400


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


class Training:
    """A small model with dropout, its optimizer, and a batch."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.criterion = nn.MSELoss()
        self.x, self.y = torch.randn(8, 4), torch.randn(8, 1)

    def backward(self) -> None:
        self.criterion(self.model(self.x), self.y).backward()


def plain(watched: Callable[[int], None]) -> None:
    training = Training()
    for step in range(STEPS):
        watched(step)
        training.optimizer.zero_grad()
        training.backward()
        training.optimizer.step()


def never_zeroed(watched: Callable[[int], None]) -> None:
    training = Training()
    for step in range(STEPS):
        watched(step)
        training.backward()
        training.optimizer.step()


def zeroed_by_hand(watched: Callable[[int], None]) -> None:
    training = Training()
    for step in range(STEPS):
        watched(step)
        output = training.model(training.x)
        for parameter in training.model.parameters():
            if parameter.grad is not None:
                parameter.grad.zero_()
        loss = training.criterion(output, training.y)
        if step % 95 == 94:
            nn.functional.l1_loss(output, training.y)
        loss.backward()
        training.optimizer.step()


def accumulated(watched: Callable[[int], None]) -> None:
    training = Training()
    for step in range(STEPS):
        watched(step)
        for _ in range(3):
            training.backward()
        training.optimizer.step()
        training.optimizer.zero_grad(set_to_none=False)


def evaluated(watched: Callable[[int], None]) -> None:
    training = Training()
    for step in range(STEPS):
        watched(step)
        if step % 90 == 41:
            training.model.eval()
            with torch.no_grad():
                for _ in range(3):
                    training.criterion(training.model(training.x), training.y)
            training.model.train()
        training.backward()
        training.optimizer.step()
        training.optimizer.zero_grad()


def evaluated_without_eval(watched: Callable[[int], None]) -> None:
    training = Training()
    held_out = [torch.randn(8, 4) for _ in range(5)]
    for step in range(STEPS):
        watched(step)
        training.optimizer.zero_grad()
        training.backward()
        training.optimizer.step()
        if step % 90 == 41:
            for x in held_out:
                with torch.no_grad():
                    training.criterion(training.model(x), training.y)


def adversarial(watched: Callable[[int], None]) -> None:
    generator, critic = nn.Linear(3, 4), nn.Linear(4, 1)
    of_generator = torch.optim.Adam(generator.parameters(), 1e-3)
    of_critic = torch.optim.Adam(critic.parameters(), 1e-3)
    noise, real = torch.randn(8, 3), torch.randn(8, 4)
    for step in range(STEPS // 2):
        watched(2 * step)
        of_critic.zero_grad()
        made = generator(noise).detach()
        (critic(made).mean() - critic(real).mean()).backward()
        of_critic.step()
        watched(2 * step + 1)
        of_generator.zero_grad()
        generated = generator(noise)
        critic(generated).mean().neg().backward()
        of_generator.step()


def with_a_loader(watched: Callable[[int], None]) -> None:
    training = Training()
    data = torch.utils.data.TensorDataset(torch.randn(800, 4), torch.randn(800, 1))
    schedule = torch.optim.lr_scheduler.StepLR(training.optimizer, 100)
    step = 0
    for _ in range(6):  # a few batches of the first three passes are read
        for x, y in torch.utils.data.DataLoader(data, 8):
            watched(step)
            step += 1
            training.optimizer.zero_grad()
            training.criterion(training.model(x), y).backward()
            nn.utils.clip_grad_norm_(training.model.parameters(), 1.0)
            training.optimizer.step()
            schedule.step()


def skipping(watched: Callable[[int], None]) -> None:
    """Steps that are left half-way, as after an overflow or a bad batch."""
    training = Training()
    for step in range(STEPS):
        watched(step)
        training.optimizer.zero_grad()
        loss = training.criterion(training.model(training.x), training.y)
        if step % 75 == 74:
            continue
        loss.backward()
        if step % 101 == 100:
            continue
        training.optimizer.step()


def swapped(watched: Callable[[int], None]) -> None:
    """Weights that exchange contents: with converted ones, and with those of another model for a while."""
    training, other = Training(), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 1))
    pairs = list(zip(training.model.parameters(), other.parameters(), strict=True))
    torch.__future__.set_swap_module_params_on_conversion(True)
    for step in range(STEPS):
        watched(step)
        if step != 300:
            training.optimizer.zero_grad(set_to_none=False)
        training.backward()
        if step % 90 == 41:
            training.model.double().float()
        training.optimizer.step()
        if step % 90 == 83:
            training.model.double().float()
            for _ in range(2):
                for mine, theirs in pairs:
                    torch.utils.swap_tensors(mine, theirs)
    torch.__future__.set_swap_module_params_on_conversion(False)


def scheduled(watched: Callable[[int], None]) -> None:
    """A schedule per step that vanishes, one every third step, and clips with a limit that changes for one step."""
    training = Training()
    fast = torch.optim.lr_scheduler.ExponentialLR(training.optimizer, 0.93)
    slow = torch.optim.lr_scheduler.StepLR(training.optimizer, 7, 0.5)
    for step in range(STEPS):
        watched(step)
        training.optimizer.zero_grad()
        training.backward()
        nn.utils.clip_grad_norm_(training.model.parameters(), 2.0 if step == 320 else 1.0)
        training.optimizer.step()
        fast.step()
        if step % 3 == 2:
            slow.step()
        if step == 333:
            fast.step()


def warmed(watched: Callable[[int], None]) -> None:
    """A long warm-up, and a schedule that is switched off."""
    training = Training()
    schedule = torch.optim.lr_scheduler.LambdaLR(training.optimizer, lambda n: 0.0 if n > 350 else min(1.0, n / 300))
    for step in range(STEPS):
        watched(step)
        training.optimizer.zero_grad()
        training.backward()
        training.optimizer.step()
        schedule.step()


def compiled(watched: Callable[[int], None]) -> None:
    """A model that ``torch.compile`` returned, evaluated at another line from time to time."""
    training = Training()
    model = torch.compile(training.model, backend="eager")
    for step in range(STEPS):
        watched(step)
        training.optimizer.zero_grad()
        training.criterion(model(training.x), training.y).backward()
        training.optimizer.step()
        if step % 150 == 149:
            model.eval()
            with torch.no_grad():
                training.criterion(model(training.x), training.y).item()
            model.train()


PROGRAMS = [
    plain, never_zeroed, zeroed_by_hand, accumulated, evaluated, evaluated_without_eval, adversarial, with_a_loader,
    skipping, swapped, scheduled, warmed, compiled,
]  # fmt: skip
SHORTEST = never_zeroed
"""Part of `make test`, the others of `make programs`."""


def supervised(program: Callable[[Callable[[int], None]], None], folder: Path) -> tuple[Summary, int]:
    """Run a program; return its summary, and how many steps began while coasting."""
    coasting = 0
    session = Session(Options(record=folder))

    def watched(step: int) -> None:
        nonlocal coasting
        coasting += session._scene.coast.on

    torch.manual_seed(0)
    with session:
        program(watched)
    return session.stop(), coasting


def said(summary: Summary) -> list[Any]:
    return [summary.findings, summary.verdicts, summary.steps, summary.internal_errors]


def recorded(folder: Path) -> list[str]:
    return (folder / "rank-0.jsonl").read_text().splitlines()


@pytest.mark.parametrize(
    "program",
    [pytest.param(one, id=one.__name__, marks=[pytest.mark.program] * (one != SHORTEST)) for one in PROGRAMS],
)
def test_a_coasted_run_has_the_findings_counts_and_record_of_one_seen_in_full(
    program: Callable[[Callable[[int], None]], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(repeats: int, again: int) -> tuple[Summary, int]:
        monkeypatch.setattr(stream, "_REPEATS", repeats)
        monkeypatch.setattr(stream, "_REPEATS_AGAIN", again)
        return supervised(program, tmp_path / str(repeats))

    full, none = run(10**9, 10**9)
    assert none == 0
    for repeats, least in ((2, 150), (64, 30)):
        coasted, coasting = run(repeats, min(repeats, 8))
        assert coasting > least, repeats
        assert said(coasted) == said(full), repeats
        assert coasted.internal_errors == (), repeats
        assert recorded(tmp_path / str(repeats)) == recorded(tmp_path / str(10**9)), repeats
        replayed = read(tmp_path / str(repeats))
        assert (replayed.findings, replayed.verdicts) == (coasted.findings, coasted.verdicts), repeats


INTERNALS = [
    "context.repetition:Coast.closed",
    "context.repetition:Coast.name",
    "context.repetition:Coast._learn",
    "context.repetition:Coast._record",
    "context.repetition:Coast._begin",
    "context.repetition:Coast._span",
    "context.repetition:Coast.expect",
    "context.repetition:Coast.account",
    "context.repetition:Coast._stop",
    "context.repetition:Coast._restore",
    "backward.backward:BackwardProbe._key",
    "forward.module:ModuleProbe._learn",
    "gradients.ledger:Ledger.stepped",
    "gradients.gradient_states:Held.sync",
]


@pytest.mark.parametrize("name", few(3, INTERNALS))
def test_what_raises_while_coasting_never_reaches_the_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_REPEATS", 3)
    weights = []
    for fails in (False, True):
        torch.manual_seed(0)
        training = Training()
        with monkeypatch.context() as patch, Session() as session:
            if fails:
                module, _, path = name.partition(":")
                owner, _, method = path.partition(".")
                patch.setattr(getattr(importlib.import_module(f"truestep.probes.{module}"), owner), method, planted)
            for step in range(100):
                training.optimizer.zero_grad()
                training.backward()
                nn.utils.clip_grad_norm_(training.model.parameters(), 1.0)
                training.optimizer.step()
                if step == 80:
                    training.model.eval()
        assert bool(session.stop().internal_errors) <= fails
        weights.append([parameter.detach().clone() for parameter in training.model.parameters()])
    assert all(torch.equal(one, two) for one, two in zip(*weights, strict=True))


def planted(*args: object, **kwargs: object) -> object:
    raise ZeroDivisionError("planted")


def test_no_step_is_passed_over_before_the_repeats() -> None:
    coasting: list[bool] = []
    training = Training()
    with Session() as session:
        for _ in range(stream.SHOWINGS + stream._REPEATS):
            coasting.append(session._scene.coast.on)
            training.optimizer.zero_grad()
            training.backward()
            training.optimizer.step()
    assert not any(coasting)


def test_zeroing_that_stops_at_once_is_found_at_its_first_step() -> None:
    training = Training()
    with Session() as session:
        for step in range(330):
            if step < 310:
                training.optimizer.zero_grad()
            training.backward()
            training.optimizer.step()
    (found,) = session.findings
    assert found.rule == "missing-zero-grad"
    assert found.seen.first_step == 310
    assert found.seen.count == 20


def test_zeroing_by_hand_that_stops_is_found_at_the_next_full_step() -> None:
    training = Training()
    with Session() as session:
        for step in range(400):
            if step < 310:
                for parameter in training.model.parameters():
                    parameter.grad = None
            training.backward()
            training.optimizer.step()
    (found,) = session.findings
    assert found.rule == "missing-zero-grad"
    assert found.seen.first_step is not None
    assert 310 <= found.seen.first_step <= 310 + repetition.LIGHT_STEPS
    assert found.seen.count == 400 - found.seen.first_step


def test_a_loss_that_is_not_finite_is_found_within_two_steps() -> None:
    training = Training()
    with Session() as session:
        for step in range(330):
            training.optimizer.zero_grad()
            loss = training.criterion(training.model(training.x), training.y)
            (loss * (1.0 if step < 311 else float("inf"))).backward()
            training.optimizer.step()
    found = {finding.rule: finding for finding in session.findings}
    first = found["nan-or-inf"].seen.first_step
    assert first is not None
    assert 311 <= first <= 312


def test_an_evaluation_without_any_call_of_eval_is_seen_where_it_happens() -> None:
    training = Training()
    with Session() as session:
        for step in range(330):
            training.optimizer.zero_grad()
            training.backward()
            training.optimizer.step()
            if step == 310:
                assert session._scene.coast.on
                with torch.no_grad():
                    training.model(training.x)
                assert not session._scene.coast.on
    assert session.steps == 330


def test_steps_and_findings_are_right_while_coasting() -> None:
    training = Training()
    with Session() as session:
        for step in range(300):
            training.backward()
            training.optimizer.step()
            assert session.steps == step + 1
            if step == 290:
                assert session._scene.coast.on
                (found,) = session.findings
                assert found.seen.count == 290
    assert session._scene.sampling.step == 300


def test_a_run_ends_after_the_steps_asked_for_while_coasting() -> None:
    training = Training()
    done = 0
    session = Session(Options(steps=333))
    session.start()
    with pytest.raises(SystemExit):
        for _ in range(400):
            training.optimizer.zero_grad()
            training.backward()
            training.optimizer.step()
            done += 1
    assert session.stop().steps == 333
    assert done == 332


def test_a_step_that_raises_is_no_end_of_watching() -> None:
    class Fails(torch.optim.SGD):
        fail = False

        def step(self, closure: Any = None) -> None:
            if self.fail:
                raise RuntimeError("planted")
            super().step()

    training = Training()
    training.optimizer = Fails(training.model.parameters(), lr=1e-3)
    with Session() as session:
        for step in range(330):
            training.optimizer.zero_grad()
            training.backward()
            training.optimizer.fail = step == 310
            try:
                training.optimizer.step()
            except RuntimeError:
                assert step == 310
                session._scene.depth.step = 0
    assert session.findings == ()
    assert session.steps == 329


def test_every_event_reaches_listeners_that_ask_for_it() -> None:
    seen: list[object] = []
    training = Training()
    with Session(also=seen.append):
        for _ in range(200):
            training.optimizer.zero_grad()
            training.backward()
            training.optimizer.step()
    assert sum(isinstance(event, OptimizerStepped) for event in seen) == 200


def test_a_rule_that_needs_what_was_passed_over_is_still_clear() -> None:
    training = Training()
    with Session() as session:
        for _ in range(300):
            training.optimizer.zero_grad()
            training.backward()
            training.optimizer.step()
    assert session.verdicts["missing-zero-grad"].outcome is Outcome.CLEAR
