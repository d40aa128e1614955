"""All advice on a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from truestep.doctor.advice.advice import Advice, Level
from truestep.doctor.advice.machine import on_folders, on_handles, on_memory, on_shared, on_threads
from truestep.doctor.advice.torch_setup import on_accelerators, on_build, on_compiling, on_distributed, on_precision
from truestep.doctor.advice.variables import on_variables
from truestep.doctor.facts import Facts, Package
from truestep.doctor.versions import on_versions

_TOPICS: tuple[Callable[[Facts], Iterator[Advice]], ...] = (
    *(on_build, on_versions, on_accelerators, on_precision, on_threads, on_memory, on_shared, on_handles, on_folders),
    *(on_compiling, on_distributed, on_variables),
)


def advise(facts: Facts) -> list[Advice]:
    """Return the advice that follows from the facts, in the order of the sheet; [] if all is well."""
    found = [advice for topic in _TOPICS for advice in topic(facts)]
    return [*found, *_on_packages(facts)]


def _on_packages(facts: Facts) -> Iterator[Advice]:
    """Yield advice on packages in a version that does not fit; missing optional packages need none."""
    for package in facts.packages:
        if package.version is None and not package.extra:
            text = f"{package.name} is not installed, and TrueStep needs it"
            yield Advice(Level.PROBLEM, "package-missing", "truestep", text, _install(package, facts))
        elif package.version is not None and not package.fits and package.name != "torch":
            whom = f"the extra {package.extra}" if package.extra else "TrueStep"
            text = f"{whom} needs {package.name} {package.needs}, but {package.version} is installed"
            about = f"[{package.extra}]" if package.extra else "truestep"
            yield Advice(Level.WARNING, "package-does-not-fit", about, text, _install(package, facts))


def _install(package: Package, facts: Facts) -> str:
    return f'{facts.interpreter.installer} "{package.name}{package.needs}"'
