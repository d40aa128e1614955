"""All facts about this system."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from truestep import __version__
from truestep.doctor.facts import Facts
from truestep.doctor.readers import system
from truestep.doctor.readers.ask_torch import ask
from truestep.doctor.readers.compilers import compiler
from truestep.doctor.readers.folders import folder, temporary
from truestep.doctor.readers.graphics import graphics
from truestep.doctor.readers.packages import packages
from truestep.doctor.readers.variables import variables


def examine(runs: Path) -> Facts:
    """Return the facts about this system. Takes a few seconds, mostly to import torch.

    Args:
        runs: the folder for runs; it need not exist yet.
    """
    torch, accelerators, speeds = ask()
    return Facts(
        truestep=__version__,
        interpreter=system.interpreter(),
        torch=torch,
        graphics=graphics(),
        accelerators=accelerators,
        processors=dataclasses.replace(system.processors(), speeds=speeds),
        memory=system.memory(),
        shared=system.shared(),
        handles=system.handles(),
        folders=(folder("runs", runs), temporary()),
        compiler=compiler(),
        variables=variables(),
        packages=packages(),
    )
