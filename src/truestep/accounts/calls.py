"""The account of calls: each call of a model by a script, and its purpose.

A call is *training* if a backward pass follows with its graph. Other calls between two backward passes are a *block*.
They are *evaluations* if their results are measured (compared with targets, or as a loss that is only read), or if they
are in eval mode and their blocks are rarer than the backward passes. Others serve the steps (targets, rollouts,
samples). A model that no backward pass trains, as a part of another one either, is *fixed*: a teacher, or an average.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from truestep import events as ev
from truestep.accounts._account import Account, Entry, amount, line_of, place
from truestep.accounts.run_objects import Objects
from truestep.events import Event, ModelCalled, Site

_Key = tuple[str, int, Site | None, str, bool]
"""Kind of the fact ("trained", "pass", "apart", "block"), model, line, mode and True if gradients were recorded."""
_MOST_WAITING = 4096
"""Calls of a model that wait for a backward pass."""


@dataclass(slots=True)
class CallLine:
    """The calls of one model at one line."""

    model: int
    site: Site | None
    trained: dict[str, int] = field(default_factory=dict)
    """Mode to the number of calls with a graph that a backward pass followed."""
    apart: dict[tuple[str, bool], int] = field(default_factory=dict)
    """Mode, and True if a graph was recorded, to the number of the other calls."""
    blocks: int = 0
    """Number of rows of other calls with no backward pass between them."""

    @property
    def besides(self) -> bool:
        """Return True if it has other calls than for training; a graph that was not used does not count beside it."""
        return any(not recorded or not self.trained for _, recorded in self.apart)


class Calls(Account[_Key]):
    """Counts calls by model, line, mode and purpose."""

    name = "calls"

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self._waiting: dict[int, list[ModelCalled]] = {}
        """Model to its calls with a graph since the last backward pass."""
        self._measured: set[tuple[int, Site | None]] = set()
        """Models and lines with a call that measures the model."""
        self._in_block: set[tuple[int, Site | None]] = set()
        """Models and lines with a call apart from training since the last backward pass."""

    def note(self, event: Event) -> None:
        """Enter an event."""
        match event:
            case ModelCalled(tracked=True) if not (event.only_read and measures(event)):
                waiting = self._waiting.setdefault(event.model, [])
                if waiting and event.training and not waiting[-1].training:
                    self._set_apart(event.model)
                if len(waiting) < _MOST_WAITING:
                    waiting.append(event)
            case ModelCalled():
                self._apart(event)
            case ev.BackwardEnded() | ev.GradientsTaken():
                self._used()

    def lines(self) -> list[CallLine]:
        """Return the facts of each line with calls of a model, in the order of their first call."""
        lines: dict[tuple[int, Site | None], CallLine] = {}
        for key in self.tally:
            kind, model, site, mode, recorded = key
            if kind == "pass":
                continue
            line = lines.setdefault((model, site), CallLine(model, site))
            count = self.tally[key]
            if kind == "trained":
                line.trained[mode] = count
            elif kind == "apart":
                line.apart[mode, recorded] = count
            else:
                line.blocks += count
        for model, waiting in self._waiting.items():
            for call in waiting:
                line = lines.setdefault((model, call.site), CallLine(model, call.site))
                line.apart[mode_of(call), True] = line.apart.get((mode_of(call), True), 0) + 1
            for site in {call.site for call in waiting}:
                lines[model, site].blocks += (model, site) not in self._in_block
        return list(lines.values())

    def purposes(self) -> dict[tuple[int, Site | None], str]:
        """Return the purpose of each line: "training", "evaluation", "step" (calls that serve the steps), "fixed"."""
        return {
            (line.model, line.site): "training" if line.trained else self._other_purpose(line) for line in self.lines()
        }

    def _other_purpose(self, line: CallLine) -> str:
        """Return the purpose of the calls of a line that no backward pass followed."""
        if (line.model, line.site) in self._measured:
            return "evaluation"
        passes = self.passes(line.model)
        if not passes:
            return "fixed"
        rare = 2 * line.blocks <= passes
        return "evaluation" if rare and all(mode == "eval" for mode, _ in line.apart) else "step"

    def passes(self, model: int) -> int:
        """Return the number of backward passes that followed calls of a model, or of one that it is a part of."""
        passes = self.tally["pass", model, None, "", True]
        met = self.objects.models.get(model)
        if passes or met is None or not met.parameters:
            return passes
        mine = set(met.parameters)
        wholes = [other for other in self.objects.models.values() if mine <= set(other.parameters)]
        return max((self.tally["pass", other.model, None, "", True] for other in wholes), default=0)

    def entry(self) -> Entry | None:
        """Return the purposes of the calls, with their modes."""
        lines = self.lines()
        if not lines:
            return None
        parts, facts = [], []
        for purpose in ("training", "evaluation", "step", "fixed"):
            if purpose == "training":
                chosen = [line for line in lines if line.trained]
                own = chosen
            else:
                chosen = [line for line in lines if line.besides and self._other_purpose(line) == purpose]
                own = [line for line in chosen if not line.trained]
            parts += [_text(purpose, chosen)] if chosen else []
            facts += [self._facts(purpose, line) for line in own]
        return Entry("; ".join(parts), {"lines": facts})

    # --- entries -----------------------------------------------------------------------------------------------------

    def _apart(self, call: ModelCalled) -> None:
        mode = mode_of(call)
        if measures(call):
            self._measured.add((call.model, call.site))
        self.tally.add(("apart", call.model, call.site, mode, call.tracked))
        if (call.model, call.site) not in self._in_block:
            self._in_block.add((call.model, call.site))
            self.tally.add(("block", call.model, call.site, mode, call.tracked))

    def _set_apart(self, model: int) -> None:
        """Enter calls in eval mode as no part of the training call that comes now."""
        for call in self._waiting[model]:
            self._apart(call)
        self._waiting[model].clear()

    def _used(self) -> None:
        for model, waiting in self._waiting.items():
            if waiting:
                self.tally.add(("pass", model, None, "", True))
            for call in waiting:
                self.tally.add(("trained", model, call.site, mode_of(call), True))
        self._waiting.clear()
        self._in_block.clear()

    def _facts(self, purpose: str, line: CallLine) -> dict[str, Any]:
        apart = [{"mode": mode, "graphs": recorded, "calls": count} for (mode, recorded), count in line.apart.items()]
        return {
            "model": self.objects.model_name(line.model),
            "site": line_of(line.site),
            "purpose": purpose,
            "training": [{"mode": mode, "calls": count} for mode, count in line.trained.items()],
            "others": apart,
            "blocks": line.blocks,
        }


def measures(call: ModelCalled | ev.FunctionCalled) -> bool:
    """Return True if a call measures a model: its result is compared with targets, or its loss is only read."""
    if call.use == "compared":
        return call.only_read or not call.grad
    return call.use == "loss" and call.only_read


def mode_of(call: ModelCalled) -> str:
    """Return the mode of the layers that depend on it: "train", "eval" or "mixed"; without any, that of the model."""
    if call.sensitive and call.frozen_sensitive:
        return "mixed"
    if call.sensitive or call.frozen_sensitive:
        return "train" if call.sensitive else "eval"
    return "train" if call.training else "eval"


def _text(purpose: str, lines: list[CallLine]) -> str:
    if purpose == "training":
        counts: dict[str, int] = {}
        for line in lines:
            for mode, count in line.trained.items():
                counts[mode] = counts.get(mode, 0) + count
        if len(counts) == 1:
            ((mode, count),) = counts.items()
            return f"{count:,} training, {_mode_text({mode})}"
        return ", ".join(f"{count:,} training in {_mode_text({mode})}" for mode, count in counts.items())
    blocks, calls = sum(line.blocks for line in lines), sum(sum(line.apart.values()) for line in lines)
    modes = {mode for line in lines for mode, _ in line.apart}
    recorded = {graph for line in lines for _, graph in line.apart}
    noun = {
        "evaluation": amount(blocks, "evaluation"),
        "step": amount(calls, "other call"),
        "fixed": f"{amount(calls, 'call')} of models without backward passes",
    }
    graphs = "no gradients" if recorded == {False} else "unused graphs" if recorded == {True} else "some unused graphs"
    first = max(lines, key=lambda line: line.blocks)
    where = f" ({place(first.site)})" if len(lines) == 1 and purpose == "evaluation" and first.site else ""
    return f"{noun[purpose]}, {_mode_text(modes)}, {graphs}{where}"


def _mode_text(modes: set[str]) -> str:
    if "mixed" in modes:
        return "both modes"
    return f"{' and '.join(sorted(modes, reverse=True))} mode"
