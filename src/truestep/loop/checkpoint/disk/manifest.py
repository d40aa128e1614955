"""The manifest of a checkpoint, which is written last: a folder with a manifest is finished."""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

NAME = "manifest.json"
FORMAT = "truestep.checkpoint/1"


class BadManifest(ValueError):
    """A manifest is missing, damaged or in another format; the message says which."""


@dataclass(frozen=True)
class Manifest:
    """Description of a checkpoint, with the size and checksum of each of its files.

    Args:
        step: number of optimizer steps.
        epoch: number of completed epochs.
        save: number of saves into the folder so far; orders checkpoints where clocks and steps cannot.
        metric: metric that selects the best checkpoint, or None.
        mode: "min" or "max".
        files: size in bytes and CRC-32 of each file.
        models: file name of each model.
        versions: versions of torch and truestep.
        time: time of the save, UTC; only for users to read.
        origin: path that the run was started from (`resume=` of another run or of an older checkpoint), or empty.
        claim: number of the claim on the mirror under which it was saved; 0 without a mirror.
        run: random name of the run, which its mirror also has; empty without a mirror.
    """

    step: int
    epoch: int
    save: int
    metric: float | None
    mode: str
    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    time: str = ""
    origin: str = ""
    claim: int = 0
    run: str = ""

    @property
    def order(self) -> tuple[int, int]:
        """Claim and save: the checkpoint with the highest is the newest, whichever machines have saved."""
        return self.claim, self.save

    def text(self) -> str:
        """Return the manifest as JSON, with its own checksum.

        Example:
            >>> files = {"state.pt": (7, "00ab12cd")}
            >>> manifest = Manifest(step=3, epoch=0, save=1, metric=0.5, mode="min", files=files)
            >>> Manifest.parse(manifest.text()) == manifest
            True
            >>> Manifest.parse(manifest.text().replace('"step": 3', '"step": 7'))
            Traceback (most recent call last):
            ...
            truestep.loop.checkpoint.disk.manifest.BadManifest: its checksum is wrong
        """
        content: dict[str, Any] = {"format": FORMAT, **asdict(self)}
        if self.metric is not None and not math.isfinite(self.metric):
            content["metric"] = str(self.metric)  # JSON has no nan
        content["files"] = {name: {"bytes": size, "crc32": crc} for name, (size, crc) in self.files.items()}
        return json.dumps({**content, "checksum": _checksum(content)}, indent=2) + "\n"

    @classmethod
    def parse(cls, text: str) -> Manifest:
        """Return the manifest in a text.

        Args:
            text: return value of `text()`.

        Raises:
            BadManifest: the text is damaged, or in another format.
        """
        try:
            content = json.loads(text)
            if content.pop("format", None) != FORMAT:
                raise BadManifest(f"its format is not {FORMAT}")
            if content.pop("checksum", None) != _checksum({"format": FORMAT, **content}):
                raise BadManifest("its checksum is wrong")
            content["files"] = {name: (entry["bytes"], entry["crc32"]) for name, entry in content["files"].items()}
            content["metric"] = None if content["metric"] is None else float(content["metric"])
            manifest = cls(**content)
            # security: a checkpoint of unknown origin must not refer to files outside of its folder
            for name in (*manifest.files, *manifest.models.values()):
                if name not in manifest.files or name in ("", ".", "..") or "/" in name or "\\" in name:
                    raise BadManifest(f"it names a file that is not in the checkpoint: {name[:80]!r}")
            return manifest
        except BadManifest:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadManifest(f"it is not a manifest: {error}") from error

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Return the manifest of a checkpoint folder.

        Args:
            folder: the checkpoint.

        Raises:
            BadManifest: the manifest is missing or damaged.
        """
        try:
            return cls.parse((folder / NAME).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise BadManifest("it has no manifest.json: it was never finished") from None
        except (OSError, UnicodeDecodeError) as error:
            raise BadManifest(f"manifest.json cannot be read: {error}") from error
        except BadManifest as error:
            raise BadManifest(f"manifest.json: {error}") from error

    def fault(self, folder: Path) -> str:
        """Return the first file that is missing or has another size, in words; empty if there is none."""
        for name, (size, _) in self.files.items():
            try:
                found = (folder / name).stat().st_size
            except OSError:
                return f"{name} is missing"
            if found != size:
                return f"{name} has {found:,} bytes, expected {size:,}"
        return ""


def _checksum(content: dict[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"
