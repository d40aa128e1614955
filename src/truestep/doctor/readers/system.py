"""Processors, memory, shared memory and file handles, as reported by the operating system."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import sys
from pathlib import Path

from truestep.doctor.facts import Handles, Interpreter, Memory, Processors, Shared
from truestep.doctor.readers import cgroups

_BF16 = ("avx512_bf16", "amx_bf16", "bf16")
_ROOT = Path("/")


def interpreter() -> Interpreter:
    """Return the facts about the running Python."""
    conda = os.path.isdir(os.path.join(sys.prefix, "conda-meta"))
    environment = "conda" if conda else "venv" if sys.prefix != sys.base_prefix else "system"
    return Interpreter(
        version=platform.python_version(),
        executable=sys.executable,
        environment=environment,
        system=f"{platform.system()} {platform.machine()}",
        debian=sys.platform == "linux" and shutil.which("apt") is not None,
        installer=_installer(),
        container=in_container(),
    )


def _installer() -> str:
    """Return the command that installs into this environment; without pip in it, the pip on PATH belongs to another."""
    if importlib.util.find_spec("pip") is None and shutil.which("uv"):
        return "uv pip install"
    return "pip install"


def in_container(root: Path = _ROOT) -> bool:
    """Return True if this process runs in Docker, Podman or Kubernetes."""
    if (root / ".dockerenv").exists() or (root / "run/.containerenv").exists():
        return True
    return "KUBERNETES_SERVICE_HOST" in os.environ


def processors(root: Path = _ROOT) -> Processors:
    """Return the processors, and the number that this process may use."""
    present = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        ours = sorted(os.sched_getaffinity(0))
        allowed = len(ours)
    else:
        ours, allowed = [], present
    text = _read(root / "proc/cpuinfo")
    return Processors(
        name=_value(text, "model name") or platform.processor() or platform.machine(),
        present=present,
        allowed=allowed,
        cores=_cores(ours, root),
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        quota=cgroups.quota(root),
        bf16=_bf16(text),
    )


def memory(root: Path = _ROOT) -> Memory:
    """Return main memory, and the limit of a cgroup."""
    sizes = {
        name: int(size) * 1024 for name, size in re.findall(r"^(\w+): +(\d+) kB", _read(root / "proc/meminfo"), re.M)
    }
    total = sizes.get("MemTotal")
    if total is None and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit, free = cgroups.memory(root)
    if limit is not None and total is not None and limit >= total:
        limit = free = None
    return Memory(total=total, available=sizes.get("MemAvailable"), limit=limit, limit_free=free)


def shared(path: str = "/dev/shm") -> Shared | None:
    """Return the size of shared memory; None if the system has no such folder."""
    if sys.platform != "linux" or not os.path.isdir(path):
        return None
    size = shutil.disk_usage(path)
    return Shared(path=path, total=size.total, free=size.free, writable=os.access(path, os.W_OK))


def handles() -> Handles | None:
    """Return the limits on open files of a process; None if the platform has no such limit."""
    try:
        import resource
    except ModuleNotFoundError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    known = [None if value == resource.RLIM_INFINITY else value for value in (soft, hard)]
    return Handles(soft=known[0], hard=known[1])


def _cores(numbers: list[int], root: Path) -> int | None:
    """Return the number of physical cores of a set of processors."""
    siblings = {
        _read(root / f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list").strip() for number in numbers
    }
    return len(siblings) if siblings and "" not in siblings else None


def _bf16(text: str) -> tuple[str, ...] | None:
    flags = _value(text, "flags") or _value(text, "Features")
    return tuple(name for name in _BF16 if name in flags.split()) if flags else None


def _value(text: str, key: str) -> str:
    found = re.search(rf"^{key}\s*: *(.*)$", text, re.M)
    return found[1].strip() if found else ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
