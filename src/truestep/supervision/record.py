"""The record of a run: JSON lines of limited size, from which the findings can be replayed without torch."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from truestep import events as ev
from truestep.errors import BadRecord, UnwritableFolder
from truestep.events import Event, Site
from truestep.findings import PostMortem, Summary
from truestep.rules import Rule, all_rules
from truestep.supervision.exchange import post_mortem
from truestep.supervision.judge import Judge, Key
from truestep.supervision.summary import summarise
from truestep.timeline import Timeline

FORMAT = "truestep.record/1"
LIMIT_BYTES = 5_000_000
_FULL = 0.9
_KINDS = {cls.__name__: cls for cls in Event.__subclasses__()}


class Recorder:
    """Writes the record of one rank.

    Args:
        folder: folder for ``rank-0.jsonl``, which is created if it is missing.
        started: the run.
        limit_bytes: size limit; from 90 % of it on, only steps with findings are written.
    """

    def __init__(self, folder: Path, started: ev.RunStarted, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self.path = folder / f"rank-{started.rank}.jsonl"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(_children(folder, started.rank), ignore_errors=True)  # of an earlier run
            self._file = self.path.open("w", encoding="utf-8", buffering=1)
        except OSError as error:
            raise UnwritableFolder(
                f"the record cannot be written to {folder}",
                expected=f"expected a folder that can be created and written, got: {error.strerror or error}",
                remedy="pass another folder with --record DIR",
            ) from None
        self._limit = limit_bytes
        self._size = 0
        self._events: dict[int, int] = {}
        self._kept: list[Event] = []
        self._sites: dict[int, int] = {}
        self._chunks: set[int] = set()
        self._written: set[Key] = set()
        self.truncated = False
        self._write({"format": FORMAT, "started": _plain(started)})

    def show(self, number: int, events: tuple[Event, ...], key: Key, *, fired: bool) -> None:
        """Write a chunk that was passed to the rules."""
        if self._size > self._limit * (1.0 if fired else _FULL):
            self.truncated = True
            return
        if number not in self._chunks:
            ids = [self._event(event) for event in events]
            self._chunks.add(number)
            self._write({"chunk": number, "events": ids})
        self._written.add(key)
        self._write({"show": list(key)})

    def again(self, key: Key, times: int) -> None:
        """Write the number of repetitions of a transition."""
        if key in self._written and self._size <= self._limit:
            self._write({"again": list(key), "times": times})

    def forget(self) -> None:
        """Write that the numbers of chunks start again."""
        self._chunks.clear()
        self._written.clear()
        self._write({"forget": True})

    def close(
        self,
        how: str,
        errors: list[str],
        *,
        given_up: str = "",
        blind: str = "",
        post_mortem: PostMortem | None = None,
        error: str = "",
    ) -> None:
        """Write the end of the run: its error, and the reasons for parts that were not observed."""
        rest: dict[str, Any] = {"given_up": given_up, "blind": blind, "error": error}
        if post_mortem is not None:
            rest["post_mortem"] = asdict(post_mortem)
        self._write({"ended": how, "truncated": self.truncated, "internal_errors": errors} | rest)
        with contextlib.suppress(OSError, ValueError):
            self._file.close()

    def _event(self, event: Event) -> int:
        number = self._events.get(id(event))
        if number is None:
            number = self._events[id(event)] = len(self._events)
            self._kept.append(event)
            body = {"event": number, "is": type(event).__name__} | _plain(event)
            for name, value in body.items():
                if isinstance(value, Site):
                    body[name] = self._site(value) if name == "site" else {"site": self._site(value)}
            self._write(body)
        return number

    def _site(self, site: Site) -> int:
        number = self._sites.get(id(site))
        if number is None:
            number = self._sites[id(site)] = len(self._sites)
            place = [site.path, site.line, site.column, site.end_line, site.end_column, site.function]
            self._write({"site": number, "at": place})
        return number

    def _write(self, line: dict[str, Any]) -> None:
        text = json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n"
        self._size += len(text)
        try:
            self._file.write(text)
        except (OSError, ValueError):
            self.truncated = True
            self._limit = 0


def _plain(event: Event) -> dict[str, Any]:
    """Return the fields of an event that differ from their defaults."""
    return {spec.name: value for spec in fields(event) if (value := getattr(event, spec.name)) != spec.default}


def read(folder: Path, *, select: tuple[type[Rule], ...] = ()) -> Summary:
    """Return the summary of a recorded run, judged again.

    Args:
        folder: the folder passed to ``--record``, or one ``rank-N.jsonl`` file.
        select: rules to use; empty for all.

    Raises:
        BadRecord: the record is missing or damaged.
    """
    path = folder if folder.is_file() else folder / "rank-0.jsonl"
    judge = Judge(select or all_rules().values())
    replay = _Replay(judge)
    try:
        replay.timeline.read_at = path.stat().st_mtime
        with path.open(encoding="utf-8", errors="replace") as lines:
            number = -1
            for number, line in enumerate(lines):
                replay.take(_parse(line, number, path))
            if number < 0:
                _parse("", 0, path)
    except FileNotFoundError:
        raise BadRecord(
            f"{folder} contains no record",
            expected="expected a folder written by `truestep run --record DIR SCRIPT`",
            remedy="pass that folder",
        ) from None
    except (KeyError, TypeError, IndexError) as error:
        raise BadRecord(
            f"{path.name} is damaged",
            expected=f"expected lines of {FORMAT}, got one without {error}",
            remedy="record the run again",
        ) from None
    unseen = replay.unseen
    judge.end("stopped" if unseen["blind"] else replay.how, unseen["given_up"])
    summary = summarise(
        judge,
        replay.started,
        replay.how,
        errors=replay.errors,
        record=str(folder),
        given_up=unseen["given_up"],
        blind=unseen["blind"],
        post_mortem=replay.post_mortem,
        error=unseen["error"],
    )
    return replace(summary, timeline=replay.timeline)


def _parse(line: str, number: int, path: Path) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        value = {} if number and not line.endswith("\n") else None
    if not isinstance(value, dict) or (number == 0 and value.get("format") != FORMAT):
        raise BadRecord(
            f"line {number + 1} of {path.name} is not part of a record",
            expected=f"expected {FORMAT}",
            remedy="pass a folder written by `truestep run --record DIR SCRIPT`",
        )
    return value


class _Replay:
    """Passes the lines of a record to a judge."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.started = ev.RunStarted(script="")
        self.timeline = Timeline()
        self.how = "unfinished"
        self.errors: list[str] = []
        self.unseen = {"given_up": "", "blind": "", "error": ""}
        self.post_mortem: PostMortem | None = None
        self._sites: dict[int, Site] = {}
        self._events: dict[int, Event] = {}
        self._chunks: dict[int, tuple[Event, ...]] = {}

    def take(self, line: dict[str, Any]) -> None:
        match line:
            case {"format": _, "started": started}:
                self.started = ev.RunStarted(**started)
            case {"event": number, "is": kind, **values}:
                if "site" in values:
                    values["site"] = self._sites[values["site"]]
                self._events[number] = _KINDS[kind](**{name: self._value(value) for name, value in values.items()})
            case {"site": number, "at": place}:
                self._sites[number] = Site(*place)
            case {"chunk": number, "events": ids}:
                self._chunks[number] = tuple(self._events[i] for i in ids)
            case {"show": [before, number]}:
                self.judge.show(self._chunks[number], (before, number))
                self.timeline.show(number, self._chunks[number], (before, number))
            case {"again": [before, number], "times": times}:
                self.judge.again(self._chunks[number], (before, number), times)
                self.timeline.again((before, number), times)
            case {"forget": True}:
                self.judge.forget()
                self.timeline.forget()
            case {"ended": how, "internal_errors": errors}:
                self.how, self.errors = how, errors
                self.unseen = {name: str(line.get(name, "")) for name in self.unseen}
                if line.get("post_mortem") is not None:
                    self.post_mortem = post_mortem(line["post_mortem"])

    def _value(self, value: Any) -> Any:
        """Return the original value of a field: lists are tuples, ``{"site": number}`` is a site."""
        if isinstance(value, dict):
            return self._sites[value["site"]]
        return tuple(self._value(item) for item in value) if isinstance(value, list) else value


def ranks(folder: Path) -> Iterator[Path]:
    """Yield the records of all ranks in a folder."""
    yield from sorted(folder.glob("rank-*.jsonl"))


def children(folder: Path, rank: int) -> list[Path]:
    """Return the records of the processes that a rank started by multiprocessing, in the order of their starts."""
    found = _children(folder, rank)
    return sorted(found.iterdir(), key=lambda path: int(path.name)) if found.is_dir() else []


def folder_of_child(folder: Path, rank: int, number: int) -> Path:
    """Return the folder for the record of a process that a rank starts by multiprocessing."""
    return _children(folder, rank) / str(number)


def _children(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}-processes"
