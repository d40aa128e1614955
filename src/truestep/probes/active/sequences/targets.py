"""Targets of a loss next to the call that it follows: whether a sequence model reads them, and their order."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import Any

from truestep.events import CheckSkipped, Site, TargetsCompared
from truestep.probes.active import restored_states
from truestep.probes.active.sequences.ahead import Ahead, Tokens, kept, look, repeated, sequences, skipped
from truestep.probes.active.sequences.windows import Windows, reads_end
from truestep.probes.active.trial import Trial
from truestep.probes.context.scene import Scene
from truestep.probes.copies.call import Call, called
from truestep.probes.copies.objects import Refused, copy_of
from truestep.probes.variables.origins import target_made_at
from truestep.seams.refs import Ref

_KINDS = ("cross_entropy", "nll_loss")
_LARGEST = 1 << 18
_ATTEMPTS = 3
_MOST_MODELS = 8
_RANK = 3
_IN_A_MODEL = 2
"""Depth of calls inside a trainable model in a sampled step; inside a module that computes a loss it is 1."""


@dataclass(slots=True)
class _Called:
    """A call of training on tokens."""

    module: Ref
    model: int
    call: Call
    site: Site | None
    corners: list[tuple[tuple[int, ...], Any, Any]]
    """Results with a score for each position: shape, and the rows of the second position in each direction."""


@dataclass(slots=True)
class _Loss:
    """A loss over classes."""

    target: Any
    classes: int
    second: Any
    """The second row of its input, if that has two dimensions."""
    site: Site | None
    made: Site | None
    """Line that makes the target."""
    whole: bool
    """False for a loss of each target, of which the program can leave some out."""
    several: bool = False
    """True if the call computes others, too."""


class TargetsRead:
    """Emits `TargetsCompared`.

    Args:
        scene: the scene.
        aside: returns the context manager in which copies run.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._left: dict[int, int] = {}
        """Model to the number of checks left."""
        self._windows = Windows(scene.torch)
        self._call: _Called | None = None
        self._inside: _Loss | None = None
        """A loss that was computed in the call under way."""

    def returned(self, module: Any, model: int, site: Site | None, frame: FrameType, result: Any) -> None:
        """Handle a call in training that has returned."""
        loss, self._call, self._inside = self._inside, None, None
        if self._left.get(model, len(self._left) < _MOST_MODELS) <= 0:
            return
        with self._scene.unseen.begin() or nullcontext():
            self._keep(module, model, site, frame, result)
        if loss is not None:
            self._compare(loss)

    def _keep(self, module: Any, model: int, site: Site | None, frame: FrameType, result: Any) -> None:
        """Keep copies of the arguments of a call with tokens."""
        torch = self._scene.torch
        try:
            call = called(module, frame)
            if not sequences(call, torch):
                return
            self._call = _Called(Ref(module), model, kept(call, torch), site, _corners(result, torch))
        except Refused:
            return

    def computed(
        self,
        kind: str,
        site: Site | None,
        frame: FrameType,
        input: Any,
        target: Any,
        *,
        whole: bool,
        ignored: int | None = None,
    ) -> None:
        """Handle a loss of training.

        Args:
            kind: name of the loss.
            site: its line.
            frame: a frame within it.
            input: its input.
            target: its targets.
            whole: False for a loss of each target.
            ignored: the class that it leaves out, if any.
        """
        inside = self._scene.depth.inside == _IN_A_MODEL
        if kind not in _KINDS or not (inside or self._call) or input.dim() != target.dim() + 1:
            return
        if target.is_floating_point() or not 1 < target.numel() <= _LARGEST:
            return
        second = input.detach()[1].clone() if input.dim() == _RANK - 1 else None
        made = target_made_at(self._scene, frame, site)
        given = target.detach().clone()
        if ignored is not None and ignored >= 0:
            given[given == ignored] = -1  # as those that are left out by torch's own index
        loss = _Loss(given, int(input.shape[1]), second, site, made, whole)
        if inside:
            loss.several = self._inside is not None
            self._inside = loss
        else:
            self._compare(loss)

    def forget(self) -> None:
        """Drop the copies of a call that no loss followed."""
        self._call = self._inside = None

    def _compare(self, loss: _Loss) -> None:
        scene, made, self._call = self._scene, self._call, None
        module = None if made is None else made.module()
        if made is None or module is None:
            return
        found: list[tuple[Tokens, bool, Ahead]] = []
        try:
            aside: AbstractContextManager[None] = self._aside()
            with aside:
                same = repeated(made.call, loss.target, scene.torch)
                if self._skips(made, loss):
                    return
                if not same:
                    self._end(made, module, loss)
                    return
                self._left[made.model] = self._left.get(made.model, _ATTEMPTS) - 1
                for tokens in same:
                    crossed = self._is_crossed(made, tokens, loss)
                    if crossed:
                        found.append((tokens, True, Ahead(tokens.shift)))
                        continue
                    with restored_states.kept(scene.torch):
                        trial = Trial(scene, copy_of(module, scene), made.call)
                        whole = loss.whole and not bool((loss.target < 0).any())
                        found.append((tokens, False, look(trial, tokens, loss.classes, whole)))
        except Refused as refused:
            reason = f"the model was not checked: {refused}"
            scene.emit(CheckSkipped(check="targets", reason=reason))
            return
        # An argument that is read in one dimension only is drawn upon by chance, as in scheduled sampling.
        labels = {tokens.path for tokens, _, ahead in found if not ahead.used}
        found = [one for one in found if one[0].path not in labels]
        if not found:
            return
        reads = all(ahead.reads for _, _, ahead in found)
        tokens, crossed, ahead = found[0]
        if not (reads or crossed):
            self._left[made.model] = 0
        scene.emit(
            TargetsCompared(
                model=made.model,
                shift=tokens.shift,
                crossed=crossed,
                reads=reads and not crossed,
                cause=ahead.site if reads else None,
                site=made.site,
                loss=loss.site,
                made=loss.made,
            )
        )

    def _skips(self, made: _Called, loss: _Loss) -> bool:
        """Emit targets that are the second token after each position; return False for others."""
        if loss.several or not _is_aligned(made, loss) or not skipped(made.call, loss.target, self._scene.torch):
            return False
        self._left[made.model] = self._left.get(made.model, _ATTEMPTS) - 1
        event = TargetsCompared(model=made.model, shift=2, site=made.site, loss=loss.site, made=loss.made)
        self._scene.emit(event)
        self._call = made  # for a loss on the next tokens beside it
        return True

    def _end(self, made: _Called, module: Any, loss: _Loss) -> None:
        """Emit the last column of tokens if it is the target of each row."""
        scene = self._scene
        path = self._windows.ending(module, made.model, made.call, loss.target, loss.classes, loss.site)
        if path is None:
            return
        with restored_states.kept(scene.torch):
            reads = reads_end(Trial(scene, copy_of(module, scene), made.call), path)
        if reads:
            last = int(made.call.tensors(scene.torch)[path].shape[1]) - 1
            scene.emit(
                TargetsCompared(
                    model=made.model, column=last, reads=True, site=made.site, loss=loss.site, made=loss.made
                )
            )

    def _is_crossed(self, made: _Called, tokens: Tokens, loss: _Loss) -> bool:
        """Return True if outputs and targets are in different orders."""
        shape = made.call.tensors(self._scene.torch)[tokens.path].shape
        for size, along, down in made.corners:
            if loss.second is None or size[2] != loss.classes or size[0] == size[1]:
                continue
            ordered = bool((loss.second == along).all())
            if ordered == bool((loss.second == down).all()):
                continue
            if size[1 - tokens.time] == shape[1 - tokens.time]:
                return tokens.crossed == ordered
            if size[tokens.time] == shape[1 - tokens.time]:
                return tokens.crossed != ordered
        return False


def _is_aligned(made: _Called, loss: _Loss) -> bool:
    """Return True if the scores of a loss begin with those of the first position of the only result with scores."""
    second, scores = loss.second, [along for size, along, _ in made.corners if size[2] == loss.classes]
    return second is not None and len(scores) == 1 and bool((second == scores[0]).all())


def _corners(result: Any, torch: Any) -> list[tuple[tuple[int, ...], Any, Any]]:
    parts = list(result.values()) if isinstance(result, dict) else result
    tensors = parts[:4] if isinstance(parts, tuple | list) else (parts,)
    return [
        (tuple(part.shape), part.detach()[0, 1].clone(), part.detach()[1, 0].clone())
        for part in tensors
        if isinstance(part, torch.Tensor) and part.dim() == _RANK and min(part.shape) > 1
    ]
