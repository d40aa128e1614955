"""The laws of the house, for post-mortems: no code of the program runs, nothing changes, no failure gets out."""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import truestep
from truestep import postmortem
from truestep.postmortem.evidence import crash
from truestep.supervision import Session

PROGRAMS = Path(__file__).with_name("programs") / "died"
CHOSEN = ["gan_steps_between", "lstm_state", "convolutions_then_linear", "block_adds_in_place"]


def modules() -> list[Any]:
    names = [info.name for info in pkgutil.walk_packages(postmortem.__path__, "truestep.postmortem.")]
    return [importlib.import_module(name) for name in names]


def internals() -> Iterator[tuple[Any, str]]:
    for module in modules():
        for name, value in vars(module).items():
            if getattr(value, "__module__", "") != module.__name__:
                continue
            if isinstance(value, FunctionType):
                yield module, name
            elif isinstance(value, type) and not issubclass(value, Exception):
                yield from ((value, method) for method, body in vars(value).items() if isinstance(body, FunctionType))


def died(name: str) -> tuple[Session, BaseException]:
    import runpy

    session = Session()
    session.start()
    try:
        runpy.run_path(str(PROGRAMS / f"{name}.py"), run_name="__main__")
    except Exception as error:
        return session, error
    raise AssertionError("the program did not die")


@pytest.mark.program
def test_an_internal_that_raises_becomes_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = set()
    for name in ("gan_steps_between", "inside_a_sequential"):
        session, error = died(name)
        for owner, internal in internals():

            def raising(*args: object, **kwargs: object) -> object:
                failed.add(internal)
                raise ZeroDivisionError("planted")

            before = len(session._scene.errors)
            with monkeypatch.context() as patch:
                original = vars(owner)[internal]
                for one in [owner, *modules()]:
                    if vars(one).get(internal) is original:
                        patch.setattr(one, internal, raising)
                session.examine(error)
            if len(session._scene.errors) > before:
                assert "planted" in session._scene.errors[-1]
                session._scene.errors.clear()
        session.stop("crashed")
    assert len(failed) > 20


@pytest.mark.parametrize(
    "name",
    [
        *CHOSEN[:2],
        *(pytest.param(name, marks=pytest.mark.slow) for name in CHOSEN[2:]),
        "../silent/raised_again_in_other_words",
    ],
)
def test_traceback_and_exit_code_are_those_of_python(name: str, tmp_path: Path) -> None:
    values = {**os.environ, "OMP_NUM_THREADS": "1"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments, str((PROGRAMS / f"{name}.py").resolve())]
        return subprocess.run(command, capture_output=True, text=True, env=values, check=False, cwd=tmp_path)

    plain, watched = run(), run("-m", "truestep", "run", "--record", "record")
    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout) == (1, plain.stdout)
    assert watched.stderr.startswith(plain.stderr)
    report = watched.stderr[len(plain.stderr) :]
    assert report.startswith("post-mortem[") == (name in CHOSEN), report


def block(session: Session, seen: list[Any]) -> None:
    """Raise in a watched block. An assertion would make pytest call ``locals()`` here, and nothing would be read."""
    with session:
        model = torch.nn.Linear(3, 2)
        x = torch.ones(4, 5)
        seen += [weakref.ref(model), weakref.ref(x), torch.get_rng_state()]
        model(x)


def test_nothing_is_kept_alive_and_nothing_changes() -> None:
    session = truestep.watch()
    seen: list[Any] = []
    with pytest.raises(RuntimeError) as caught:
        block(session, seen)
    assert session.post_mortem is not None
    assert session.post_mortem.slug == "shapes-do-not-fit"
    assert session.post_mortem.message == "`model` takes 3 numbers per sample and was given 5"
    assert torch.equal(seen.pop(), torch.get_rng_state())
    assert seen[1]()._version == 0
    caught.value.__traceback__ = None
    del caught
    gc.collect()
    assert [ref() for ref in seen] == [None, None]


class Hostile:
    """A value in a frame: every method that could be called on it records the call."""

    calls: list[str] = []

    def __getattribute__(self, name: str) -> object:
        Hostile.calls.append(name)
        raise ZeroDivisionError

    def __getattr__(self, name: str) -> object:
        Hostile.calls.append(name)
        raise ZeroDivisionError

    def __eq__(self, other: object) -> bool:
        Hostile.calls.append("==")
        raise ZeroDivisionError

    def __hash__(self) -> int:
        Hostile.calls.append("hash")
        raise ZeroDivisionError

    def __repr__(self) -> str:
        Hostile.calls.append("repr")
        raise ZeroDivisionError

    def __bool__(self) -> bool:
        Hostile.calls.append("bool")
        raise ZeroDivisionError

    def __len__(self) -> int:
        Hostile.calls.append("len")
        raise ZeroDivisionError

    @property
    def __class__(self) -> type:  # type: ignore[override]
        Hostile.calls.append("class")
        raise ZeroDivisionError

    @property
    def __dict__(self) -> dict[str, object]:  # type: ignore[override]
        Hostile.calls.append("dict")
        raise ZeroDivisionError


class Dictionary(dict):  # type: ignore[type-arg]
    def items(self) -> Any:
        Hostile.calls.append("items")
        raise ZeroDivisionError

    __iter__ = items


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(3, 2)
        vars(self)["odd"] = Hostile()

    @property
    def size(self) -> int:
        Hostile.calls.append("size")
        raise ZeroDivisionError

    def forward(self, x: Any) -> Any:
        odd = Hostile()  # noqa: F841
        return self.fc(x)


def dies_among_hostile_objects() -> None:
    odd = Hostile()
    table = Dictionary(a=torch.ones(2))
    net = Net()
    total = odd, table, net  # noqa: F841
    net(torch.ones(2, 4))


def test_no_code_of_the_program_runs() -> None:
    session = Session()
    session.start()
    try:
        dies_among_hostile_objects()
    except RuntimeError as error:
        Hostile.calls.clear()
        session.examine(error)
        calls = list(Hostile.calls)
    summary = session.stop("crashed")
    assert calls == []
    assert summary.internal_errors == ()
    assert summary.post_mortem is not None
    assert summary.post_mortem.message == "`net.fc` takes 3 numbers per sample and was given 4"


def test_the_time_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crash, "LIMIT_S", -1.0)
    session, error = died("gan_steps_between")
    session.examine(error)
    summary = session.stop("crashed")
    assert (summary.post_mortem, summary.internal_errors) == (None, ())


def test_ranks_hand_on_what_was_found() -> None:
    from truestep.findings import Summary
    from truestep.supervision.exchange import from_dict, to_dict

    session, error = died("gan_without_detach")
    session.examine(error)
    summary: Summary = session.stop("crashed")
    assert summary.post_mortem is not None
    assert from_dict(json.loads(json.dumps(to_dict(summary)))) == summary


def test_a_record_replays_with_what_was_found(tmp_path: Path) -> None:
    from truestep.config import Options
    from truestep.supervision.record import read

    session = Session(Options(record=tmp_path))
    session.start()
    try:
        dies_among_hostile_objects()
    except RuntimeError as failure:
        session.examine(failure)
    summary = session.stop("crashed")
    assert summary.post_mortem is not None
    assert read(tmp_path).post_mortem == summary.post_mortem
