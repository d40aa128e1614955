"""Facts and advice as a sheet of lines: name, value, and the advice below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from truestep.doctor.advice.advice import Advice, Level, plural, size
from truestep.doctor.facts import OLDEST_TORCH, Accelerator, Facts, Folder, Package, Speed
from truestep.doctor.readers.packages import EXTRAS
from truestep.doctor.versions import tested_versions


@dataclass(frozen=True, slots=True)
class SheetLine:
    """One fact; `missing` if something is not installed, with the `command` to install it."""

    what: str
    value: str
    advice: tuple[Advice, ...] = ()
    missing: bool = False
    command: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Lines that belong together."""

    title: str
    lines: tuple[SheetLine, ...]


def sheet(facts: Facts, advice: Sequence[Advice]) -> list[Group]:
    """Return the facts as groups of lines, each with its advice."""
    groups = (
        ("python and torch", _python(facts)),
        ("accelerators and precision", _accelerators(facts)),
        ("processors and memory", _machine(facts)),
        ("disk", (SheetLine(_called(folder), _disk(folder)) for folder in facts.folders)),
        ("compiling, several processes", _tools(facts)),
        ("environment variables", _variables(facts)),
        ("packages", _packages(facts)),
    )
    found: list[Group] = []
    for title, lines in groups:
        advised = tuple(replace(line, advice=tuple(one for one in advice if one.about == line.what)) for line in lines)
        if advised:
            found.append(Group(title, advised))
    return found


def summary(facts: Facts, advice: Sequence[Advice]) -> tuple[bool, str]:
    """Return True if training works here, and a line that says so."""
    counts = {level: sum(one.level is level for one in advice) for level in Level}
    advised = ", ".join(plural(count, level.value) for level, count in counts.items() if count)
    if counts[Level.PROBLEM]:
        return False, f"not ready: {advised}"
    where = "the CPU" if facts.torch.device == "cpu" else facts.torch.device or "the CPU"
    names = [one.name for one in facts.accelerators if facts.torch.device and one.device.startswith(facts.torch.device)]
    where += f" ({names[0]})" if names else ""
    precision = f" in {facts.torch.precision}" if facts.torch.precision else ""
    return True, f"ready: Run trains on {where}{precision}; {advised or 'nothing to improve'}"


def _python(facts: Facts) -> Iterator[SheetLine]:
    python = facts.interpreter
    place = {"venv": "in a virtual environment", "conda": "in a conda environment", "system": "of the system"}
    container = ", in a container" if python.container else ""
    yield SheetLine(
        "python", f"{python.version} {place[python.environment]}, {python.system}{container}\n{python.executable}"
    )
    torch = facts.torch
    if torch.version is None:
        yield SheetLine("torch", f"not installed; {'.'.join(map(str, OLDEST_TORCH))} or newer is needed", missing=True)
        yield SheetLine("checked with", tested_versions(facts))
        return
    parts = [torch.version]
    if torch.threads is not None:
        parts.append(f"built for {'the CPU' if torch.build == 'CPU' else torch.build}")
    if torch.cudnn:
        parts.append(f"{'MIOpen' if torch.rocm else 'cuDNN'} {torch.cudnn}")
    yield SheetLine("torch", ", ".join(parts))
    yield SheetLine("checked with", tested_versions(facts))


def _accelerators(facts: Facts) -> Iterator[SheetLine]:
    for one in facts.accelerators:
        yield SheetLine(one.device, _accelerator(one))
        if one.speeds:
            yield SheetLine("speed", _speeds(one.speeds))
    if not facts.accelerators:
        yield SheetLine("accelerator", _no_accelerator(facts), missing=True)
    if facts.processors.speeds:
        yield SheetLine("speed", f"{_speeds(facts.processors.speeds)} on one core")
    if facts.torch.precision:
        reason = facts.torch.precision_reason
        yield SheetLine("precision", f'"auto" takes {facts.torch.precision}' + (f": {reason}" if reason else ""))


def _accelerator(one: Accelerator) -> str:
    parts = [one.name]
    if one.memory is not None:
        parts.append(f"{size(one.memory)}" if one.free is None else f"{size(one.free)} of {size(one.memory)} free")
    if one.capability:
        parts.append(f"compute capability {one.capability}")
    if one.native:
        parts.append(f"computes in {', '.join(('fp32', *one.native))}")
    return ", ".join(parts)


def _no_accelerator(facts: Facts) -> str:
    graphics = facts.graphics
    counts = ((graphics.nvidia, "NVIDIA"), (graphics.amd, "AMD"))
    seen = ", ".join(plural(count, f"{name} GPU") for count, name in counts if count)
    if not facts.torch.usable:
        there = f"{seen or 'no GPU'} on the PCI bus; " if graphics.nvidia is not None else ""
        return f"{there}unknown without torch"
    if seen:
        return f"torch sees none; on the PCI bus: {seen}"
    return "none" if graphics.nvidia is None else "none: no GPU on the PCI bus"


def _speeds(speeds: tuple[Speed, ...]) -> str:
    """Return the measured speeds of a linear layer as text."""
    unit, factor = ("TFLOPS", 1.0) if max(speed.tflops for speed in speeds) >= 1 else ("GFLOPS", 1000.0)
    figures = ", ".join(f"{speed.format} {_figure(speed.tflops * factor)}" for speed in speeds)
    return f"{figures} {unit} in a linear layer of {speeds[0].size} x {speeds[0].size}, measured"


def _figure(number: float) -> str:
    """Return a number with at least two digits.

    >>> _figure(0.4512), _figure(5.26), _figure(61.3), _figure(714.9)
    ('0.45', '5.3', '61', '715')
    """
    return f"{number:.2f}" if number < 1 else f"{number:.1f}" if number < 10 else f"{number:.0f}"


def _machine(facts: Facts) -> Iterator[SheetLine]:
    processors, memory = facts.processors, facts.memory
    parts = [processors.name]
    if processors.bf16 is not None:
        parts.append(f"bf16 by {', '.join(processors.bf16)}" if processors.bf16 else "no instructions for bf16")
    yield SheetLine("processor", ", ".join(parts))
    yield SheetLine("threads", _threads(facts))
    if memory.total is not None:
        free = f"{size(memory.available)} of " if memory.available is not None else ""
        value = f"{free}{size(memory.total)}{' free' if free else ''}"
        if memory.limit is not None:
            below = f", {size(memory.limit_free)} of it free" if memory.limit_free is not None else ""
            value += f"; this process is limited to {size(memory.limit)} (cgroup){below}"
        yield SheetLine("memory", value)
    shared = facts.shared
    if shared is not None:
        closed = "" if shared.writable else ", not writable"
        yield SheetLine("shared memory", f"{size(shared.free)} of {size(shared.total)} free in {shared.path}{closed}")
    if facts.handles is not None:
        soft, hard = (
            ("no limit" if limit is None else str(limit)) for limit in (facts.handles.soft, facts.handles.hard)
        )
        sharing = f'; workers pass tensors by "{facts.torch.sharing}"' if facts.torch.sharing else ""
        raised = f", can be raised to {hard}" if soft != hard else ""
        yield SheetLine("open files", f"{soft} at most{raised}{sharing}")


def _threads(facts: Facts) -> str:
    processors, threads = facts.processors, facts.torch.threads
    usable = plural(processors.allowed, "processor")
    if processors.allowed < processors.present:
        usable = f"{processors.allowed} of {plural(processors.present, 'processor')}"
    if processors.cores and processors.cores < processors.allowed:
        usable += f" ({plural(processors.cores, 'core')})"
    if processors.quota is not None and processors.quota < processors.allowed:
        usable += f", limited to the time of {processors.quota:.3g} (cgroup)"
    return usable if threads is None else f"{plural(threads, 'thread')} of torch on {usable}"


def _called(folder: Folder) -> str:
    return "disk" if folder.role == "runs" else "temp folder"


def _disk(folder: Folder) -> str:
    parts = []
    if folder.free is not None and folder.total is not None:
        parts.append(f"{size(folder.free)} of {size(folder.total)} free")
    if folder.system:
        parts.append(f"{folder.system}{' (network)' if folder.network else ''}")
    if folder.write_speed is not None:
        parts.append(f"writes {size(folder.write_speed)}/s")
    if folder.failure is not None:
        parts.append("read-only" if folder.read_only else "not writable")
    return "\n".join(filter(None, (folder.path, ", ".join(parts))))


def _tools(facts: Facts) -> Iterator[SheetLine]:
    compiler, torch = facts.compiler, facts.torch
    what = f"{compiler.path} {compiler.version}".strip() if compiler.path else "no C++ compiler"
    tried = "" if compiler.path is None else " fails" if compiler.failure else " works"
    yield SheetLine(
        "torch.compile", f"{what}{tried}, {f'triton {compiler.triton}' if compiler.triton else 'no triton'}"
    )
    if torch.usable:
        backends = ", ".join(torch.backends)
        yield SheetLine("distributed", f"backends {backends}" if backends else "this build has none")


def _variables(facts: Facts) -> Iterator[SheetLine]:
    for name, value in facts.variables:
        yield SheetLine(name, value or '""')


def _packages(facts: Facts) -> Iterator[SheetLine]:
    needed = [package for package in facts.packages if not package.extra]
    yield SheetLine("truestep", f"{facts.truestep}; {_versions(needed)}" if needed else facts.truestep)
    for extra in dict.fromkeys(package.extra for package in facts.packages if package.extra):
        mine = [package for package in facts.packages if package.extra == extra]
        lacking = [package.name for package in mine if package.version is None]
        purpose = f"{EXTRAS[extra]}: " if extra in EXTRAS else ""
        if lacking:
            command = f'{facts.interpreter.installer} "truestep[{extra}]"'
            yield SheetLine(f"[{extra}]", f"{purpose}lacks {', '.join(lacking)}", missing=True, command=command)
        else:
            yield SheetLine(f"[{extra}]", f"{purpose}{_versions(mine)}")


def _versions(packages: Sequence[Package]) -> str:
    return ", ".join(f"{package.name} {package.version or '(not installed)'}" for package in packages)
