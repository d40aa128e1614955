"""The remedy for anomaly detection that was left on: keep it off."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.seams.patch import patch


class NoAnomalyMode(Change):
    """Calls that switch anomaly detection on have no effect."""

    name = "no-anomaly-mode"
    remedies = ("anomaly-mode-left-on",)
    silences = True

    def install(self, stack: ExitStack) -> None:
        import torch

        def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
            self.applied += bool(enabled)
            switch(False, check_nan)

        switch: Any = patch(stack, torch, "set_anomaly_enabled", set_anomaly_enabled)
