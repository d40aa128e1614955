"""Schedulers of clusters, simulated on two hosts: the signals, times and restarts of Slurm and Kubernetes.

A limit or an eviction comes when a condition holds, not at a time, so that it comes in the middle of a training.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hosts import Host, Hosts, inside

_SUPPORT = Path(__file__).parent
_BIN = str(Path(sys.executable).parent)
_LIMIT_S = 120.0
_SCONTROL = """#!/bin/sh
case "$1" in
show) [ "$2" = hostnames ] && [ "$3" = "$SLURM_JOB_NODELIST" ] && printf '%s\\n' "$3" | tr , '\\n' ;;
requeue) touch "{folder}/requeue-$2" ;;
*) exit 1 ;;
esac
"""


@dataclass
class Start:
    """One start of a job or of a pod: its exit code, None if it was killed, and its output."""

    code: int | None
    log: str


class Slurm:
    """Runs a batch script as sbatch, srun and scontrol do.

    Args:
        script: with lines of #SBATCH.
        folder: from which it is submitted.
        hosts: the nodes.
        environment: variables besides those of the tests.
    """

    def __init__(self, script: Path, folder: Path, hosts: Hosts, **environment: str) -> None:
        self._script, self._folder, self._hosts = script, folder, hosts
        self.options = dict(re.findall(r"^#SBATCH --([a-z-]+)(?:=(\S+))?", script.read_text(), re.MULTILINE))
        self._bin = folder / "slurm"
        self._bin.mkdir()
        _program(self._bin / "scontrol", _SCONTROL.format(folder=self._bin))
        srun = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(_SUPPORT / "srun.py"))} "$@"\n'
        _program(self._bin / "srun", srun)
        assert int(self.options["nodes"]) == len(hosts)
        self._environment = {
            **os.environ,
            "PATH": f"{self._bin}:{_BIN}:{os.environ['PATH']}",
            "SIMULATED_NODES": json.dumps([host.entered() for host in hosts]),
            "SIMULATED_FOLDER": str(self._bin),
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NAME": self.options["job-name"],
            "SLURM_NNODES": self.options["nodes"],
            "SLURM_JOB_NODELIST": ",".join(host.name for host in hosts),
            "SLURM_GPUS_ON_NODE": "1",
            **environment,
        }

    def run(self, *limits: tuple[str, Callable[[], bool], float]) -> list[Start]:
        """Run the job until it has ended and was not queued again; return its starts.

        Args:
            limits: for each start a kind, a condition and the seconds until SIGKILL. "limit" sends the signal of
                --signal, "preempted" sends SIGTERM to the programs on the nodes, and queues the job again.
        """
        starts: list[Start] = []
        while len(starts) <= len(limits):
            start, again = self._start(len(starts), *limits[len(starts) : len(starts) + 1])
            starts.append(start)
            if not again:
                break
        return starts

    def _start(self, number: int, *limit: tuple[str, Callable[[], bool], float]) -> tuple[Start, bool]:
        log = self._folder / f"start-{number}.log"
        environment = {**self._environment, "SLURM_RESTART_COUNT": str(number)}
        asked = self._bin / "requeue-7"
        asked.unlink(missing_ok=True)
        with log.open("wb") as stream:
            job = subprocess.Popen(
                ["bash", str(self._script)],
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            code = _ended(job, _LIMIT_S, *(condition for _, condition, _ in limit))
            for kind, _, grace_s in limit if code is None else ():
                if kind == "limit":
                    to_script, name, _ = re.fullmatch(r"(B:)?(\w+)@(\d+)", self.options["signal"]).groups()  # type: ignore[union-attr]
                    assert to_script, "torchrun dies of a signal that it does not know"
                    job.send_signal(signal.Signals[f"SIG{name}"])
                else:
                    asked.touch()
                    os.kill(int((self._bin / "srun.process").read_text()), signal.SIGTERM)
                code = _ended(job, grace_s)
        finally:
            for process in (job.pid, *self._tasks()):
                _kill_group(process)
            job.wait()
        return Start(code, log.read_text(errors="replace")), asked.exists() and "requeue" in self.options

    def _tasks(self) -> list[int]:
        file = self._bin / "tasks"
        return [int(number) for number in file.read_text().split()] if file.exists() else []


class IndexedJob:
    """Runs the Job of a manifest as Kubernetes does: one pod on each host, started again where it failed.

    Args:
        manifest: the parts of the file, as parsed.
        folder: the working folder in the image.
        volume: the folder behind the volume that is mounted.
        hosts: the nodes.
        values: of variables in `env`, in place of those of the manifest.
    """

    def __init__(self, manifest: list[dict[str, Any]], folder: Path, volume: Path, hosts: Hosts, **values: str) -> None:
        (service,) = (part for part in manifest if part["kind"] == "Service")
        (job,) = (part for part in manifest if part["kind"] == "Job")
        self._job, self._pod = job, job["spec"]["template"]["spec"]
        self.name, self._domain = job["metadata"]["name"], self._pod["subdomain"]
        assert service["metadata"]["name"] == self._domain
        assert service["spec"]["clusterIP"] == "None"
        assert service["spec"]["selector"] == {"job-name": self.name}
        assert job["spec"]["completionMode"] == "Indexed"
        assert job["spec"]["completions"] == job["spec"]["parallelism"] == len(hosts)
        assert [host.name for host in hosts] == [f"{self.name}-{index}" for index in range(len(hosts))]
        self._folder, self._volume, self._hosts, self._values = folder, volume, hosts, values
        self._files: list[Path] = []

    def run(self, *evictions: tuple[int, Callable[[], bool], float | None]) -> list[list[Start]]:
        """Run the job until all indices are complete; return the starts of each index.

        Args:
            evictions: the index, a condition, and the seconds until SIGKILL; None for those of the manifest.
        """
        starts: list[list[Start]] = [[] for _ in self._hosts]
        pods = [self._start(index) for index in range(len(self._hosts))]
        waiting, until = list(evictions), time.monotonic() + _LIMIT_S + 60 * len(evictions)
        failures = 0
        try:
            while any(pod is not None for pod in pods):
                assert time.monotonic() < until, "\n".join(file.read_text() for file in self._files)
                if waiting and waiting[0][1]():
                    index, _, grace_s = waiting.pop(0)
                    pod = pods[index]
                    assert pod is not None, "the pod has ended before it was evicted"
                    os.kill(inside(pod.pid), signal.SIGTERM)
                    code = _ended(pod, self._pod["terminationGracePeriodSeconds"] if grace_s is None else grace_s)
                    pods[index] = self._again(starts, index, code)
                for index, pod in enumerate(pods):
                    if pod is not None and pod.poll() is not None:
                        failures += pod.returncode != 0
                        assert failures <= self._job["spec"]["backoffLimit"]
                        pods[index] = self._again(starts, index, pod.returncode)
                time.sleep(0.05)
        finally:
            for pod in pods:
                if pod is not None:
                    pod.kill()
                    pod.wait()
        return starts

    def _again(self, starts: list[list[Start]], index: int, code: int | None) -> subprocess.Popen[bytes] | None:
        """Note the end of a pod, and start the next one of its index unless it has succeeded."""
        starts[index].append(Start(code, self._files_of(index)[-1].read_text(errors="replace")))
        return None if code == 0 else self._start(index)

    def _files_of(self, index: int) -> list[Path]:
        return [file for file in self._files if file.name.startswith(f"pod-{index}-")]

    def _start(self, index: int) -> subprocess.Popen[bytes]:
        (container,) = self._pod["containers"]
        names = {mount["name"] for mount in container["volumeMounts"]}
        assert names == {volume["name"] for volume in self._pod["volumes"]}
        (place,) = (mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "runs")
        own = {entry["name"]: entry["value"] for entry in container["env"]} | self._values
        own["JOB_COMPLETION_INDEX"] = str(index)
        command = [*container["command"], *container["args"]]
        command = [re.sub(r"\$\((\w+)\)", lambda found: own[found.group(1)], word) for word in command]
        file = self._folder / f"pod-{index}-{len(self._files)}.log"
        self._files.append(file)
        with file.open("wb") as stream:
            return subprocess.Popen(
                [*self._hosts[index].entered(self._volume, place), *command],
                cwd=self._folder,
                env={**os.environ, "PATH": f"{_BIN}:{os.environ['PATH']}", **own},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _ended(process: subprocess.Popen[bytes], limit_s: float, *conditions: Callable[[], bool]) -> int | None:
    """Return the exit code of a process; None if a condition holds before it ends, or after it was killed."""
    until = time.monotonic() + limit_s
    while process.poll() is None and time.monotonic() < until:
        if any(condition() for condition in conditions):
            return None
        time.sleep(0.05)
    if process.poll() is None:
        process.kill()
        process.wait()
        return None
    return process.returncode


def _kill_group(process: int) -> None:
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


__all__ = ["Host", "IndexedJob", "Slurm", "Start"]
