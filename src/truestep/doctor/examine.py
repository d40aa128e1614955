"""All facts about this machine."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from truestep import __version__
from truestep.doctor import machine
from truestep.doctor.ask_torch import ask
from truestep.doctor.compilers import compiler
from truestep.doctor.facts import Facts
from truestep.doctor.folders import folder, temporary
from truestep.doctor.graphics import graphics
from truestep.doctor.packages import packages
from truestep.doctor.variables import variables


def examine(runs: Path) -> Facts:
    """Return the facts about this machine. Takes a few seconds, mostly to import torch.

    Args:
        runs: the folder for runs; it need not exist yet.
    """
    torch, accelerators, speeds = ask()
    return Facts(
        truestep=__version__,
        interpreter=machine.interpreter(),
        torch=torch,
        graphics=graphics(),
        accelerators=accelerators,
        processors=dataclasses.replace(machine.processors(), speeds=speeds),
        memory=machine.memory(),
        shared=machine.shared(),
        handles=machine.handles(),
        folders=(folder("runs", runs), temporary()),
        compiler=compiler(),
        variables=variables(),
        packages=packages(),
    )
