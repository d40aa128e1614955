"""The score: the order of operations in the first steps and in a typical one, as lanes of notes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from truestep import events as ev
from truestep.accounts import Objects
from truestep.accounts._account import amount
from truestep.events import Event, Site
from truestep.findings import Summary
from truestep.timeline import Passage

LANES = ("data", "mode", "clear", "forward", "loss", "backward", "clip", "step", "schedule", "state")
ALWAYS = {"forward", "loss", "clear", "backward", "step"}
"""Lanes that are shown without a note as well: an operation that is missing is a finding of many loops."""
_AFTER_A_STEP = {"clip", "clear", "schedule", "state"}
_FIRST = 3
"""Steps from the start of the run that are shown."""
_MOST = 48
"""Notes of one step that are shown."""
_LONGEST_PHRASE = 8
"""Most notes in a row that are looked for as a repeated phrase."""


@dataclass(frozen=True, slots=True)
class Note:
    """One operation."""

    lane: str
    text: str
    """The operation, for people."""
    path: str = ""
    line: int = 0
    """0 if unknown."""
    part: str = ""
    """"wrong" for the site of a finding, "related" for one that a finding names."""
    times: int = 1
    """Number of times that the phrase of this note is played in a row."""
    phrase: int = 1
    """Number of notes in this phrase, if this is its first one and it is repeated; 0 for its other notes."""
    label: str = ""
    """Text in the head of the note: the line, or a word."""


@dataclass(frozen=True, slots=True)
class Bar:
    """The operations of one step."""

    title: str
    notes: tuple[Note, ...]
    left_out: int = 0
    """Number of notes that are not shown."""


def score(summary: Summary) -> list[Bar]:
    """Return the first steps, and the step that came most often."""
    timeline = summary.timeline
    if timeline is None:
        return []
    played = [(one, _notes(one.events, timeline.objects, _parts(summary, one.step))) for one in timeline.opening]
    played = [(passage, notes) for passage, notes in played if notes]
    for (_, notes), (_, following) in itertools.pairwise(played):
        _move_tail(following, notes)
    bars = [_bar(_title(passage), notes) for passage, notes in played[:_FIRST]]
    typical = timeline.typical()
    if typical and typical[0].times > 2:
        parts = _parts(summary, timeline.step)
        bodies = [_notes(passage.events, timeline.objects, parts) for passage in typical]
        for position, notes in enumerate(bodies):
            _move_tail(bodies[(position + 1) % len(bodies)], notes)
        several = [f", step {position} of {len(bodies)}" if len(bodies) > 1 else "" for position in range(1, 5)]
        like = "steps were like this one" if len(bodies) == 1 else "rounds were like this one"
        titles = [f"{typical[0].times:,} {like}{which}" for which in several]
        bars += [_bar(title, notes) for title, notes in zip(titles, bodies, strict=False)]
    return bars


def _move_tail(following: list[Note], notes: list[Note]) -> None:
    """Move the operations after a step that end its pass through the loop, from the next chunk to its own.

    They are on lines below that of the step, in its file: a chunk ends with a step, and the body of a loop does not.
    """
    step = next((note for note in reversed(notes) if note.lane == "step"), None)
    while step is not None and following:
        first = following[0]
        if first.lane not in _AFTER_A_STEP or first.path != step.path or first.line <= step.line:
            return
        notes.append(following.pop(0))


def _title(passage: Passage) -> str:
    stepped = any(isinstance(event, ev.OptimizerStepped | ev.HandStepped) for event in passage.events)
    return (
        f"step {passage.step}"
        if stepped
        else f"after {amount(passage.step, 'step')}"
        if passage.step
        else "before a step"
    )


def _parts(summary: Summary, step: int) -> dict[Site, str]:
    """Return the parts that sites have in findings, for a chunk after this number of steps."""
    found = [finding for finding in summary.shown() if step >= (finding.seen.first_step or 0)]
    sites = [mark.site for finding in found for mark in finding.related if mark.site is not None]
    wrong = [finding.primary.site for finding in found if finding.primary.site is not None]
    return dict.fromkeys(sites, "related") | dict.fromkeys(wrong, "wrong")


def _notes(events: tuple[Event, ...], objects: Objects, parts: dict[Site, str]) -> list[Note]:
    notes: list[Note] = []
    inside: list[Note] = []
    for event in events:
        if not _lane(event):
            continue
        note = _note(event, objects, parts)
        # A call is seen when it returns: a loss inside of the model's forward is seen before it.
        if isinstance(event, ev.LossComputed) and event.site is not None and event.site.function.endswith(".forward"):
            inside.append(note)
        else:
            notes.append(note)
            if isinstance(event, ev.ModelCalled):
                notes += inside
                inside = []
    return notes + inside


def _bar(title: str, notes: list[Note]) -> Bar:
    folded = _folded(notes)
    return Bar(title, tuple(folded[:_MOST]), max(0, len(folded) - _MOST))


def _note(event: Event, objects: Objects, parts: dict[Site, str]) -> Note:
    site: Site | None = getattr(event, "site", None)
    text = _text(event, objects)
    if site is None:
        return Note(_lane(event), text, label=_letter(event))
    return Note(_lane(event), text, site.path, site.line, parts.get(site, ""), label=str(site.line))


def _letter(event: Event) -> str:
    return "batch" if isinstance(event, ev.BatchDrawn) else "end" if isinstance(event, ev.LoaderEnded) else "·"


_LANES: dict[type[Event], str] = {
    ev.LoaderStarted: "data",
    ev.BatchDrawn: "data",
    ev.LoaderEnded: "data",
    ev.ModeSet: "mode",
    ev.ModelCalled: "forward",
    ev.LossComputed: "loss",
    ev.GradientsZeroed: "clear",
    ev.BackwardEnded: "backward",
    ev.GradientsTaken: "backward",
    ev.GradientsUnscaled: "clip",
    ev.GradientsClipped: "clip",
    ev.OptimizerStepped: "step",
    ev.HandStepped: "step",
    ev.SchedulerStepped: "schedule",
    ev.CheckpointSaved: "state",
    ev.CheckpointLoaded: "state",
    ev.StateTaken: "state",
    ev.StateLoaded: "state",
}


def _lane(event: Event) -> str:
    return _LANES.get(type(event), "")


def _text(event: Event, objects: Objects) -> str:
    match event:
        case ev.LoaderStarted():
            return f"a pass over {objects.loader_name(event.loader)} begins"
        case ev.BatchDrawn():
            return f"a batch of {objects.loader_name(event.loader)}"
        case ev.LoaderEnded():
            return f"{objects.loader_name(event.loader)} has no more batches"
        case ev.ModeSet():
            return f"{objects.model_name(event.model)} to {'train' if event.training else 'eval'} mode"
        case ev.ModelCalled():
            mode = "train" if event.training else "eval"
            graph = "with a graph" if event.tracked else "no gradients"
            return f"{objects.model_name(event.model)} called in {mode} mode, {graph}"
        case ev.LossComputed():
            return event.kind
        case ev.GradientsZeroed():
            name = objects.optimizer_name(event.optimizer) if event.optimizer else objects.model_name(event.model)
            return f"gradients of {name} cleared" + (", unused ones among them" if event.fresh else "")
        case ev.BackwardEnded():
            onto = " onto gradients that a step had used" if event.onto_used else ""
            return f"backward pass{onto or (' onto unused gradients' if event.onto_fresh else '')}"
        case ev.GradientsTaken():
            return "torch.autograd.grad"
        case ev.GradientsUnscaled():
            return "gradients unscaled"
        case ev.GradientsClipped():
            return f"gradients clipped: {event.kind} {event.max_norm:g}"
        case ev.OptimizerStepped():
            kind = objects.optimizers.get(event.optimizer)
            mixed = " on mixed gradients" if event.mixed else " on used gradients" if event.reused else ""
            return f"step of {'an optimizer' if kind is None else kind.kind}{mixed}"
        case ev.HandStepped():
            return "update by hand"
        case ev.SchedulerStepped():
            built = objects.schedulers.get(event.scheduler)
            return f"step of {'a schedule' if built is None else built.kind}"
    return {
        "CheckpointSaved": "file saved",
        "CheckpointLoaded": "file read",
        "StateTaken": "state dict taken",
        "StateLoaded": "state dict loaded",
    }[type(event).__name__]


def _folded(notes: list[Note]) -> list[Note]:
    """Return the notes with phrases that are repeated in a row written once."""
    folded: list[Note] = []
    place = 0
    while place < len(notes):
        length, times = _phrase(notes, place)
        if times > 1:
            first = replace(notes[place], times=times, phrase=length)
            folded += [first, *(replace(one, times=times, phrase=0) for one in notes[place + 1 : place + length])]
            place += length * times
        else:
            folded.append(notes[place])
            place += 1
    return folded


def _phrase(notes: list[Note], place: int) -> tuple[int, int]:
    """Return the length of the phrase at a place that is repeated over most notes, and its number of times."""
    best = (1, 1)
    for length in range(1, _LONGEST_PHRASE + 1):
        phrase = notes[place : place + length]
        times = 1
        while len(phrase) == length and notes[place + length * times : place + length * (times + 1)] == phrase:
            times += 1
        if times > 1 and length * times > best[0] * best[1]:
            best = (length, times)
    return best
