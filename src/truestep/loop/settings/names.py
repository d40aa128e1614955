"""Names of settings: those of other trainers, and checks of names."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable
from dataclasses import fields

from truestep.errors import BadSettings

ALIASES = {
    "gradient_accumulation_steps": "accumulate",
    "accumulate_grad_batches": "accumulate",
    "max_grad_norm": "clip_norm",
    "gradient_clip_val": "clip_norm",
    "save_top_k": "keep_last",
    "save_total_limit": "keep_last",
    "log_interval": "log_every_n_steps",
    "logging_steps": "log_every_n_steps",
    "num_train_epochs": "max_epochs",
    "output_dir": "out",
    "resume_from_checkpoint": "resume",
    "manual_seed": "seed",
}
"""Names of settings in other trainers, and their names here; both are accepted as flags and in files."""


def check_fields(kind: type) -> None:
    """Raise an error if an annotation of a settings class is not a field, because the decorator is missing.

    Raises:
        BadSettings: the class is not decorated with `@dataclass`.
    """
    known = {field.name for field in fields(kind)}
    for name in inspect.get_annotations(kind):
        if name not in known and not name.startswith("_"):
            raise BadSettings(
                f"{name} of {kind.__name__} is not a setting, because {kind.__name__} is not a dataclass",
                expected="expected a dataclass that extends truestep.Settings",
                remedy=f"write @dataclass above class {kind.__name__}",
            )


def check_names(kind: type, names: Iterable[str], remedy: str) -> None:
    """Raise an error if a name is not a setting.

    Args:
        kind: the settings class.
        names: the names to check.
        remedy: remedy of the error, with `{}` for the nearest name.

    Raises:
        BadSettings: a name is unknown.
    """
    known = [field.name for field in fields(kind)]
    for name in names:
        if name not in known:
            near = [ALIASES[name]] if name in ALIASES else difflib.get_close_matches(name, known, n=1)
            raise BadSettings(
                f'"{name}" is not a setting of a run',
                expected=f"expected one of {', '.join(known)}",
                remedy=remedy.format(near[0]) if near else "leave it out",
            )
