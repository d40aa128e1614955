"""The preprocessing and the settings of a run in its checkpoints: the file `inference.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truestep.errors import BadPart
from truestep.loop.checkpoint.checkpoint import Checkpoint

FILE = "inference.json"


@dataclass
class Record:
    """Values that prepare new inputs.

    Attributes:
        preprocessing: of the first data set of the run that has one, or as given by the user; None without one.
        settings: of the run, in types of JSON.
        given: True if the user has given it.
    """

    preprocessing: dict[str, Any] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    given: bool = False

    def meet(self, dataset: object) -> None:
        """Take the preprocessing of a data set, if the run has none."""
        if self.preprocessing is None:
            preparation: Any = getattr(dataset, "preparation", None)
            if callable(getattr(preparation, "document", None)):
                self.preprocessing = preparation.document()

    def give(self, values: object) -> None:
        """Take the preprocessing of a data set or a mapping of the user.

        Raises:
            BadPart: it cannot be written as JSON, or the data set has none.
        """
        document = getattr(getattr(values, "preparation", None), "document", None)
        held = document() if callable(document) else dict(values) if isinstance(values, Mapping) else None
        if held is None:
            raise BadPart(
                f"run.keep_preprocessing() was given a {type(values).__name__}",
                expected="expected a data set of truestep.data with a preprocessing, or a mapping of numbers and text",
                remedy='write run.keep_preprocessing({"mean": 0.5, "std": 0.2})',
            )
        try:
            json.dumps(held)
        except (TypeError, ValueError) as error:
            raise BadPart(
                f"the preprocessing cannot be written as JSON: {error}",
                expected="expected numbers, text, lists and dictionaries",
                remedy="convert tensors with .tolist()",
            ) from error
        self.preprocessing, self.given = held, True

    def documents(self) -> dict[str, str]:
        """Return the text of the file for a checkpoint, by name; {} without a preprocessing."""
        if self.preprocessing is None:
            return {}
        return {FILE: json.dumps({"preprocessing": self.preprocessing, "settings": self.settings}, indent=1) + "\n"}


def record_of(checkpoint: Checkpoint) -> Record:
    """Return the record of a checkpoint; settings of a checkpoint without one are those of the folder of its run.

    Raises:
        BadCheckpoint: the file is damaged.
    """
    if FILE in checkpoint.manifest.files:
        held = json.loads(checkpoint.file(FILE).read_text(encoding="utf-8"))
        return Record(held["preprocessing"], held["settings"])
    beside = checkpoint.path.parent.parent / "settings.json"
    return Record(None, read_json(beside))


def read_json(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file; {} if it cannot be read."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, dict) else {}
