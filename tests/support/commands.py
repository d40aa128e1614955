"""Commands of truestep, called in the process of a test: the processes that they start are then started warm."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import pytest

from truestep.cli import main
from truestep.cli.experimenting import stopping


class Done(NamedTuple):
    """The end of a command."""

    code: int
    out: str
    err: str


def called(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Done:
    """Call ``truestep`` with arguments; without its handlers of signals, with which processes would start cold."""
    monkeypatch.setattr(stopping, "_signals", lambda caught: contextlib.nullcontext())
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return Done(int(ended.value.code or 0), *capfd.readouterr())
