"""Inputs and targets of the CTC loss. Seam: ``torch.ctc_loss``, which ``torch.nn.functional`` looks up at each call.

Values are read at the first sampled steps, on the CPU.
"""

from __future__ import annotations

import functools
from contextlib import ExitStack
from typing import Any

from truestep.events import Site, TranscriptsRead
from truestep.probes.context.probe import Probe, sees
from truestep.probes.context.values import has_values
from truestep.seams.code.weaving import compiling, teach_script
from truestep.seams.divided import is_divided
from truestep.seams.patch import patch

_LOOKS = 3
_ROWS = 64
_ROUNDING = 1e-2
_LARGEST = 1 << 22
_MATRIX = 2


class Transcripts(Probe):
    """Emits `TranscriptsRead`."""

    def install(self, stack: ExitStack) -> None:
        self._looks: dict[object, int] = {}
        torch, scene = self.scene.torch, self.scene
        original, compiles = torch.ctc_loss, compiling(torch)
        grad_enabled, dynamo = torch.is_grad_enabled, torch.compiler.is_dynamo_compiling

        @functools.wraps(original, assigned=("__name__", "__doc__"))
        def ctc_loss(log_probs: Any, targets: Any, *args: Any, **kwargs: Any) -> Any:
            if not dynamo() and scene.active and scene.sampling.on and not scene.coast.on and grad_enabled():
                if not scene.depth.fetching and not compiles():
                    self.look(scene.sites.quick(2), log_probs, targets, args, kwargs)
            return original(log_probs, targets, *args, **kwargs)

        ctc_loss.__module__, ctc_loss.__qualname__ = "torch", "ctc_loss"
        patch(stack, torch, "ctc_loss", ctc_loss)
        teach_script(stack, original, ctc_loss)

    @sees
    def look(self, site: Site | None, log_probs: Any, targets: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """Read one call."""
        if self._looks.get(site, 0) >= _LOOKS or not all(map(self._is_readable, (log_probs, targets))):
            return
        self._looks[site] = self._looks.get(site, 0) + 1
        names = ("input_lengths", "target_lengths", "blank")
        given = dict(zip(names, args, strict=False)) | kwargs
        blank, lengths = given.get("blank", 0), given.get("target_lengths")
        rows = log_probs.detach().flatten(0, -2)[:_ROWS].double()
        values = self._kind(rows)
        counted = self._counted(targets.detach(), lengths)
        blanks = round(100 * float((counted == blank).double().mean())) if counted.numel() else 0
        event = TranscriptsRead(values=values, blank=int(blank), blanks=blanks, site=site)
        self.scene.emit(event)

    def _is_readable(self, tensor: Any) -> bool:
        plain = type(tensor) is self.scene.torch.Tensor and tensor.is_cpu and not is_divided(tensor)
        return plain and has_values(tensor) and 0 < tensor.numel() <= _LARGEST

    def _kind(self, rows: Any) -> str:
        """Return the kind of the rows: of which the exponentials sum to one, of probabilities, or of other numbers."""
        if bool((rows.logsumexp(1).abs() <= _ROUNDING).all()):
            return "log-probabilities"
        return "probabilities" if bool((rows >= 0).all() and ((rows.sum(1) - 1).abs() <= _ROUNDING).all()) else "others"

    def _counted(self, targets: Any, lengths: Any) -> Any:
        """Return the targets without their padding."""
        if targets.dim() != _MATRIX or lengths is None:
            return targets.flatten()
        torch = self.scene.torch
        ends = lengths.detach() if isinstance(lengths, torch.Tensor) else torch.tensor(lengths)
        return targets[torch.arange(targets.shape[1]) < ends.cpu()[:, None]]
