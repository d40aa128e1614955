"""The packages that TrueStep and its extras need, and their installed versions."""

from __future__ import annotations

import re
from importlib import metadata

from truestep.doctor.facts import Package

EXTRAS = {
    "torch": "supervision and the toolkit",
    "settings": "settings as flags and files",
    "metrics": "torchmetrics in evaluations",
    "data": "tables and pictures as data sets",
    "tensorboard": "logs for TensorBoard",
    "wandb": "logs for Weights & Biases",
    "mlflow": "logs for MLflow",
    "remote": "checkpoints in remote storage",
    "pictures": "charts of experiments as PNG",
    "report": "reports as HTML pages",
    "mcp": "the server for coding assistants",
    "lsp": "the server for editors",
    "watch": "`truestep lint --watch`",
    "onnx": "exports to ONNX",
    "quantise": "int8 in exports",
    "new": "the programs of `truestep new`, exercises",
    "demo": "the demo",
}
"""Purpose of each extra, without those for the development of TrueStep."""
_OWN = {"all", "dev", "docs", "frameworks"}
"""Extras of the development, and the one that includes the others."""


def packages() -> tuple[Package, ...]:
    """Return the packages in TrueStep's metadata: first those it always needs, then extra by extra."""
    try:
        lines = metadata.requires("truestep") or []
    except metadata.PackageNotFoundError:
        return ()
    return read(lines)


def read(lines: list[str]) -> tuple[Package, ...]:
    """Return the packages in lines of metadata.

    >>> for package in read(["rich<16,>=13.9", "tyro>=0.9; extra == 'settings'"]):
    ...     package.name, package.needs, package.extra
    ('rich', '<16,>=13.9', '')
    ('tyro', '>=0.9', 'settings')
    """
    found: list[Package] = []
    for line in lines:
        parts = re.match(r"([\w.-]+)\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?$", line)
        if parts is None:
            continue
        name, needs, marker = parts[1], parts[2].strip(), parts[3] or ""
        extra = re.search(r"extra\s*==\s*['\"]([\w.-]+)['\"]", marker)
        if not (extra and extra[1] in _OWN) and name.lower() != "truestep":
            found.append(Package(name=name, needs=needs, version=_version(name), extra=extra[1] if extra else ""))
    order = ["", *EXTRAS]
    return tuple(sorted(found, key=lambda package: order.index(package.extra) if package.extra in order else 99))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
