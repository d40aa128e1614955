"""Modules of this command that hide modules of the same name beside the program."""

from __future__ import annotations

import os
import sys
from types import ModuleType


def forget_shadowed(folder: str) -> None:
    """Remove imported modules of this command from `sys.modules` if the program's folder has one of the same name.

    Under plain python, a script imports the ``click.py`` beside it. This must not change because this command has
    already imported another module of the same name.
    """
    try:
        names = {name.partition(".")[0] for name in os.listdir(folder) if _importable(folder, name)}
    except OSError:
        return
    mine = {name.partition(".")[0] for name in sys.modules} - {"truestep", "__main__", *sys.builtin_module_names}
    suspects = {name for name in names & mine if not _from(folder, sys.modules.get(name))}
    if not suspects:
        return
    import subprocess

    ask = [sys.executable, "-c", "import sys; print(*sys.modules)"]
    reply = subprocess.run(ask, capture_output=True, text=True, check=False, cwd=os.sep)
    suspects -= {name.partition(".")[0] for name in reply.stdout.split()}
    for name in [name for name in sys.modules if name.partition(".")[0] in suspects]:
        del sys.modules[name]


def _importable(folder: str, name: str) -> bool:
    if name.endswith((".py", ".so", ".pyd")):
        return True
    return name.isidentifier() and os.path.isfile(os.path.join(folder, name, "__init__.py"))


def _from(folder: str, module: ModuleType | None) -> bool:
    file = getattr(module, "__file__", None) or ""
    return os.path.realpath(file).startswith(os.path.realpath(folder) + os.sep)
