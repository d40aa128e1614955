"""`truestep.watch` around blocks and functions: nested, repeated, beside threads, interrupted; `truestep.testing`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import truestep
from truestep import Session, Severity
from truestep.errors import FindingsRaised, UnknownRule
from truestep.events import BackwardEnded, GradientsZeroed, ModelMet, OptimizerBuilt, OptimizerStepped
from truestep.findings import Outcome
from truestep.testing import assert_clean, assert_finds, capture_events

torch = pytest.importorskip("torch")
nn = torch.nn


class Training:
    """A model, an optimizer and two ways to train them."""

    def __init__(self) -> None:
        self.model = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.x, self.y = torch.randn(8, 4), torch.randn(8, 1)

    def backward(self) -> None:
        nn.functional.mse_loss(self.model(self.x), self.y).backward()

    def well(self, steps: int = 6) -> None:
        for _ in range(steps):
            self.optimizer.zero_grad()
            self.backward()
            self.optimizer.step()

    def badly(self, steps: int = 6) -> None:
        for _ in range(steps):
            self.backward()
            self.optimizer.step()


def rules(session: Session) -> set[str]:
    return {finding.rule for finding in session.findings}


def patched() -> dict[str, Any]:
    from torch.optim import Optimizer, lr_scheduler, optimizer
    from torch.utils.data import DataLoader

    return {
        "call": nn.Module.__call__,
        "impl": nn.Module._wrapped_call_impl,
        "train": nn.Module.train,
        "zero": (nn.Module.zero_grad, Optimizer.zero_grad),
        "init": (Optimizer.__init__, Optimizer.add_param_group),
        "backward": torch.autograd._engine_run_backward,
        "lr": {name: vars(lr_scheduler.LRScheduler).get(name) for name in ("__init__", "step", "_update_lr")},
        "loader": DataLoader.__iter__,
        "files": (torch.save, torch.load),
        "hooks": (len(optimizer._global_optimizer_pre_hooks), len(optimizer._global_optimizer_post_hooks)),
        "forward": len(nn.modules.module._global_parameter_registration_hooks),
    }


@pytest.fixture(autouse=True)
def nothing_stays_behind() -> Iterator[None]:
    torch.manual_seed(0)
    before = patched()
    yield
    assert patched() == before


def test_block_is_watched_and_what_lies_outside_is_not() -> None:
    training = Training()
    training.badly()
    training.optimizer.zero_grad()
    with truestep.watch() as session:
        training.well()
    training.badly()
    assert (rules(session), session.steps) == (set(), 6)


def test_training_is_the_same_as_unwatched() -> None:
    weights = []
    for watched in (False, True):
        torch.manual_seed(3)
        training = Training()
        if watched:
            with truestep.watch():
                training.well(20)
        else:
            training.well(20)
        weights.append((training.model.weight.detach().clone(), torch.get_rng_state()))
    assert torch.equal(weights[0][0], weights[1][0])
    assert torch.equal(weights[0][1], weights[1][1])


def test_nested_sessions_each_see_their_own_part() -> None:
    training = Training()
    with truestep.watch() as outer:
        training.badly(3)
        training.optimizer.zero_grad()
        with truestep.watch() as inner:
            training.well()
        training.optimizer.zero_grad()
        training.badly(3)
    assert (rules(inner), inner.steps) == (set(), 6)
    assert outer.steps == 12
    assert rules(outer) <= {"missing-zero-grad", "zero-grad-once-per-epoch"}
    assert len(rules(outer)) == 1


def test_sessions_may_end_in_any_order() -> None:
    training = Training()
    first, second = truestep.watch(), truestep.watch()
    first.start()
    second.start()
    training.well(3)
    first.stop()
    training.optimizer.zero_grad()
    training.badly()
    second.stop()
    assert (rules(first), first.steps) == (set(), 3)
    assert (rules(second), second.steps) == ({"missing-zero-grad"}, 9)


def test_repeated_sessions_know_nothing_of_each_other() -> None:
    training = Training()
    for number in range(6):
        with truestep.watch() as session:
            (training.badly if number % 2 else training.well)()
        training.optimizer.zero_grad()
        assert rules(session) == ({"missing-zero-grad"} if number % 2 else set())
        assert session.steps == 6


def test_gradients_of_before_the_session_are_not_held_against_it() -> None:
    training = Training()
    training.badly()
    with truestep.watch() as session:
        training.well()
    assert rules(session) == set()


def test_session_per_epoch() -> None:
    training = Training()
    for _ in range(3):
        with assert_clean():
            training.well()


def test_findings_while_the_session_runs() -> None:
    training = Training()
    with truestep.watch() as session:
        assert (session.findings, session.steps) == ((), 0)
        training.well()
        assert session.findings == ()
        training.badly()
        (finding,) = session.findings
        assert (finding.rule, finding.severity) == ("missing-zero-grad", Severity.ERROR)
        assert session.verdicts["missing-zero-grad"].outcome is Outcome.FOUND
        early = finding.seen.count
        training.badly(50)
        (finding,) = session.findings
        assert finding.seen.count == early + 50
    (last,) = session.findings
    assert last.seen == finding.seen


def test_asking_all_the_time_changes_nothing() -> None:
    training = Training()
    with truestep.watch() as asked, truestep.watch() as quiet:
        for _ in range(20):
            training.badly(1)
            _ = asked.findings
    assert [f.seen for f in asked.findings] == [f.seen for f in quiet.findings]


def test_stopping_twice_gives_the_same_summary() -> None:
    session = truestep.watch()
    session.start()
    Training().badly()
    assert session.stop() is session.stop()


def test_findings_before_the_start_are_none() -> None:
    session = truestep.watch()
    assert session.findings == ()
    assert session.steps == 0
    assert session.stop().findings == ()


def test_function_and_method() -> None:
    class Experiment:
        def __init__(self) -> None:
            self.session = truestep.watch()

        def fit(self) -> None:
            with self.session:
                Training().badly()

    def train() -> Session:
        with truestep.watch() as session:
            Training().badly()
            return session

    experiment = Experiment()
    experiment.fit()
    for session in (train(), experiment.session):
        (finding,) = session.findings
        site = finding.primary.site
        assert site is not None
        assert (site.path, site.function) == (__file__, "badly")


def test_generator_left_early() -> None:
    def batches() -> Iterator[Session]:
        with truestep.watch() as session:
            while True:
                yield session

    training = Training()
    for number, session in enumerate(batches()):
        training.badly(1)
        if number == 5:
            break
    assert rules(session) == {"missing-zero-grad"}


@pytest.mark.parametrize(("error", "how"), [(KeyboardInterrupt, "interrupted"), (ValueError, "crashed")])
def test_exception_passes_and_findings_stay(error: type[BaseException], how: str) -> None:
    training, session = Training(), truestep.watch()
    with pytest.raises(error), session:
        training.badly()
        raise error
    assert (session.how, session.steps) == (how, 6)
    assert rules(session) == {"missing-zero-grad"}


def test_exception_inside_a_forward_leaves_the_seams_whole() -> None:
    class Failing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 1)
            self.fails = False

        def forward(self, x: Any) -> Any:
            if self.fails:
                raise KeyboardInterrupt
            return self.layer(x)

    training = Training()
    training.model = Failing()
    training.optimizer = torch.optim.SGD(training.model.parameters(), lr=1e-3)
    with truestep.watch() as session:
        training.well(2)
        training.model.fails = True
        with pytest.raises(KeyboardInterrupt):
            training.model(training.x)
        training.model.fails = False
        training.well(4)
    assert (rules(session), session.steps) == (set(), 6)
    assert session.stop().internal_errors == ()


def test_other_threads_do_their_work() -> None:
    training, stop, seen = Training(), threading.Event(), []
    serving = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).eval()

    def serve() -> None:
        while not stop.is_set():
            with torch.no_grad():
                seen.append(serving(torch.zeros(2, 4)).sum().item())

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with truestep.watch() as session:
            training.well(60)
    finally:
        stop.set()
        thread.join()
    assert seen
    assert rules(session) == set()
    assert session.stop().internal_errors == ()


def test_training_in_a_thread() -> None:
    training = Training()
    with truestep.watch() as session:
        thread = threading.Thread(target=training.badly)
        thread.start()
        thread.join()
    assert (rules(session), session.steps) == ({"missing-zero-grad"}, 6)


def test_session_started_in_one_thread_and_stopped_in_another() -> None:
    session = truestep.watch()
    session.start()
    Training().badly()
    thread = threading.Thread(target=session.stop)
    thread.start()
    thread.join()
    assert rules(session) == {"missing-zero-grad"}


def test_selected_and_ignored_rules() -> None:
    with truestep.watch(select=("graph-cut",)) as selected, truestep.watch(ignore=("missing-zero-grad",)) as ignored:
        Training().badly()
    assert (rules(selected), rules(ignored)) == (set(), set())
    assert set(selected.verdicts) == {"graph-cut"}
    assert "missing-zero-grad" not in ignored.verdicts
    with pytest.raises(UnknownRule):
        truestep.watch(select=("no-such-rule",))


def test_record_is_kept(tmp_path: Any) -> None:
    with truestep.watch(record=tmp_path / "record"):
        Training().badly()
    assert any((tmp_path / "record").iterdir())


# --- truestep.testing ----------------------------------------------------------------------------------------------


def test_assert_finds_takes_exactly_these() -> None:
    with assert_finds("missing-zero-grad") as session:
        Training().badly()
    assert session.steps == 6


@pytest.mark.parametrize(
    ("expected", "run"), [(("missing-zero-grad",), "well"), ((), "badly"), (("graph-cut",), "badly")]
)
def test_assert_finds_raises_on_anything_else(expected: tuple[str, ...], run: str) -> None:
    with pytest.raises(FindingsRaised, match="other failures than expected") as raised, assert_finds(*expected):
        getattr(Training(), run)()
    assert ("missing-zero-grad at" in str(raised.value)) == (run == "badly")


def test_assert_finds_refuses_an_unknown_rule() -> None:
    with pytest.raises(UnknownRule), assert_finds("mising-zero-grad"):
        pass


def test_assert_clean() -> None:
    with assert_clean():
        Training().well()
    with pytest.raises(FindingsRaised), assert_clean():
        Training().badly()


def test_error_of_the_code_wins_over_the_assertion() -> None:
    with pytest.raises(ZeroDivisionError), assert_clean():
        Training().badly()
        _ = 1 / 0


def test_captured_events_are_the_run_in_order() -> None:
    training = Training()
    with capture_events() as events:
        training.well(2)
    kinds = [type(event) for event in events]
    chosen = [k for k in kinds if k in (GradientsZeroed, BackwardEnded, OptimizerStepped)]
    assert chosen == [GradientsZeroed, BackwardEnded, OptimizerStepped] * 2
    assert kinds.index(ModelMet) < kinds.index(BackwardEnded)
    assert kinds.count(OptimizerBuilt) == 1
    sites = {event.site.function for event in events if isinstance(event, OptimizerStepped) and event.site}
    assert sites == {"well"}
