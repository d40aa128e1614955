"""Own your PyTorch training loop, prove every step.

    with truestep.watch() as session:
        train(model, loader)
    for finding in session.findings:
        print(finding.message)

Importing this package does not import torch and changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from truestep import data, debugging, errors, schedules, testing
    from truestep.findings import Confidence, Finding, Severity, Verdict
    from truestep.loop.checkpoint.weights import load_weights
    from truestep.loop.inference.trained import Trained
    from truestep.loop.loading.loader import Loader
    from truestep.loop.log.mean import Mean
    from truestep.loop.run.run import Run
    from truestep.loop.settings.settings import Settings
    from truestep.model.ema import EMA
    from truestep.model.freeze import freeze, unfreeze
    from truestep.model.groups import parameter_groups
    from truestep.model.recompute import recompute
    from truestep.model.scaling import effective_batch_size, scaled_lr
    from truestep.model.swa import SWA
    from truestep.model.table import parameter_table
    from truestep.supervision import Session, watch

__version__ = "0.1.0"
__all__ = [
    "EMA",
    "SWA",
    "Confidence",
    "Finding",
    "Loader",
    "Mean",
    "Run",
    "Session",
    "Settings",
    "Severity",
    "Trained",
    "Verdict",
    "__version__",
    "data",
    "debugging",
    "effective_batch_size",
    "errors",
    "freeze",
    "load_weights",
    "parameter_groups",
    "parameter_table",
    "recompute",
    "scaled_lr",
    "schedules",
    "testing",
    "unfreeze",
    "watch",
]

_HOMES = {
    "EMA": "truestep.model.ema",
    "SWA": "truestep.model.swa",
    "Loader": "truestep.loop.loading.loader",
    "Mean": "truestep.loop.log.mean",
    "Run": "truestep.loop.run.run",
    "Settings": "truestep.loop.settings.settings",
    "Trained": "truestep.loop.inference.trained",
    "effective_batch_size": "truestep.model.scaling",
    "freeze": "truestep.model.freeze",
    "load_weights": "truestep.loop.checkpoint.weights",
    "parameter_groups": "truestep.model.groups",
    "parameter_table": "truestep.model.table",
    "recompute": "truestep.model.recompute",
    "scaled_lr": "truestep.model.scaling",
    "unfreeze": "truestep.model.freeze",
    "Confidence": "truestep.findings",
    "Finding": "truestep.findings",
    "Severity": "truestep.findings",
    "Verdict": "truestep.findings",
    "Session": "truestep.supervision",
    "watch": "truestep.supervision",
    "load_ipython_extension": "truestep.notebook",
    "unload_ipython_extension": "truestep.notebook",
}


_ROOMS = {"data", "debugging", "errors", "schedules", "testing"}
"""Public modules."""


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    from truestep._lazy import attribute

    return attribute(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
