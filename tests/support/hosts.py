"""Two hosts on one machine: each has an address, a host name, process numbers and a folder for temporary files.

A host is a network namespace of Linux, joined to the other by a bridge in a third one. Each program that is started on
a host is the first process of a process namespace, which ends all of its processes. Names of namespaces have the number
of the process that made them: the next test removes those of a process that was killed.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PREFIX = "truestep-test"
PORT = 29400
_RELAY = Path(__file__).with_name("relay.py")
_ENTER = """
set -e
echo "$1" > /proc/sys/kernel/hostname
mount --bind "$2" /etc/hosts
if [ -n "$3" ]; then
    mount -t tmpfs tmpfs "$(dirname "$4")"
    mkdir "$4"
    mount --bind "$3" "$4"
fi
shift 4
exec "$@"
"""


_IN_SPACE = ["setpriv", "--pdeathsig", "KILL", "ip", "netns", "exec"]
_OWN_SPACES = ["unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


def ip(*arguments: str) -> str:
    """Return the output of `ip`; an error has its message."""
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


@functools.cache
def reason_without() -> str:
    """Return the reason that this machine cannot have hosts; empty if it can."""
    if not sys.platform.startswith("linux"):
        return "network namespaces need Linux"
    if os.geteuid():
        return "network namespaces need root"
    for program in ("ip", "unshare", "setpriv", "mount"):
        if shutil.which(program) is None:
            return f"network namespaces need the program {program}"
    name = f"{PREFIX}-{os.getpid()}-try"
    try:
        ip("netns", "add", name)
        try:
            ip("-n", name, "link", "add", "one", "type", "veth", "peer", "name", "other")
            ip("-n", name, "link", "add", "bridge", "type", "bridge")
            enter = [*_IN_SPACE, name, *_OWN_SPACES, "sh", "-c", 'echo "$0" > /proc/sys/kernel/hostname', "name"]
            done = subprocess.run(enter, capture_output=True, text=True, check=False)
            if done.returncode:
                return f"namespaces of processes cannot be made: {done.stderr.strip()}"
        finally:
            ip("netns", "delete", name)
    except OSError as error:
        return f"network namespaces cannot be made: {error}"
    return ""


class Program:
    """A program that was started on a host.

    Args:
        command: its command, of which the output goes into files.
        folder: its working folder.
        environment: of the program.
        output: folder of the two files.
    """

    def __init__(self, command: list[str], folder: Path, environment: Mapping[str, str], output: Path) -> None:
        self._files = [output / f"{time.monotonic_ns()}.{stream}" for stream in ("out", "err")]
        with self._files[0].open("wb") as out, self._files[1].open("wb") as err:
            self._process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )

    @property
    def out(self) -> str:
        return self._files[0].read_text(errors="replace")

    @property
    def err(self) -> str:
        return self._files[1].read_text(errors="replace")

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def wait(self, limit_s: float = 600) -> int:
        """Return the exit code; an error shows the output if the program does not end."""
        try:
            return self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the program did not end within {limit_s} s\n{self.out}\n{self.err}") from None

    def kill(self) -> None:
        """Kill all processes of the program at once."""
        self._process.kill()
        self._process.wait()


class Host:
    """One host: `start` a program there, `kill` all of them, take it off the network by `link`."""

    def __init__(self, name: str, number: int, network: Path) -> None:
        self.name, self.address = name, f"10.199.77.{number}"
        self.temporary = network / self.name
        self.temporary.mkdir()
        self.port = f"port-{number}"
        self.names = network / f"{self.name}.names"
        self._space = _space(str(number))
        self._programs: list[Program] = []
        ip("netns", "add", self._space)

    def connect(self, switch: str) -> None:
        """Give the host an address, and a cable to the switch."""
        ip("-n", switch, "link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", self._space)
        ip("-n", self._space, "address", "add", f"{self.address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            ip("-n", self._space, "link", "set", device, "up")
        ip("-n", switch, "link", "set", self.port, "up")

    def start(self, command: list[str], folder: Path, **environment: str) -> Program:
        """Start a command on this host.

        Args:
            command: program and arguments.
            folder: the working folder, which all hosts see.
            environment: variables besides those of the tests.
        """
        program = Program([*self.entered(), *command], folder, {**os.environ, **environment}, self.temporary)
        self._programs.append(program)
        return program

    def entered(self, volume: Path | None = None, place: str = "") -> list[str]:
        """Return the command that starts another one on this host.

        Args:
            volume: a folder that the command sees at another place.
            place: a path in a folder at the root, such as /mnt/runs: that folder holds nothing else.
        """
        enter = [*_IN_SPACE, self._space, *_OWN_SPACES]
        enter += ["sh", "-c", _ENTER, "sh", self.name, str(self.names), str(volume or ""), place]
        variables = {"OMP_NUM_THREADS": "1", "TMPDIR": str(self.temporary), "TORCHELASTIC_ERROR_FILE": ""}
        return [*enter, "env", *(f"{name}={value}" for name, value in variables.items())]

    def kill(self) -> None:
        """Kill all processes of the host, as by a loss of power."""
        for program in self._programs:
            program.kill()

    def kill_ranks(self) -> None:
        """Kill the processes that the launchers of the host have started."""
        for process in self.ranks():
            os.kill(process, signal.SIGKILL)

    def ranks(self) -> list[int]:
        """Return the numbers of the processes that the launchers of the host have started and that have not ended."""
        found = []
        for process in ip("netns", "pids", self._space).split():
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                if b"LOCAL_RANK=" in Path(f"/proc/{process}/environ").read_bytes():
                    found.append(int(process))
        return found

    def link(self, state: str) -> None:
        """Set the link of the host "up" or "down"."""
        ip("-n", self._space, "link", "set", "eth0", state)


class Hosts(list[Host]):
    """Two hosts, and the switch between them.

    Args:
        folder: for their files.
        own_name: address to which a host resolves its own name, if not that of the network.
        names: of the hosts.
        domain: of their full names, which are known too.
    """

    def __init__(
        self,
        folder: Path,
        own_name: str | None = None,
        names: tuple[str, str] = ("host-a", "host-b"),
        domain: str = "domain",
    ) -> None:
        super().__init__()
        self._switch = _space("switch")
        self._relay: subprocess.Popen[bytes] | None = None
        ip("netns", "add", self._switch)
        ip("-n", self._switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", self._switch, "link", "set", "bridge", "up")
        for number, name in enumerate(names, 1):
            host = Host(name, number, folder)
            self.append(host)
            host.connect(self._switch)
            ip("-n", self._switch, "link", "set", host.port, "master", "bridge")
        for host in self:
            known = [(own_name if own_name and one is host else one.address, one.name) for one in self]
            lines = [f"{address} {name} {name}.{domain}" for address, name in known]
            host.names.write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))

    def slow(self, delay_s: float) -> None:
        """Let each frame between the hosts arrive later, by a program in place of the bridge.

        Args:
            delay_s: in each direction.
        """
        for host in self:
            ip("-n", self._switch, "link", "set", host.port, "nomaster")
        command = [*_IN_SPACE, self._switch, sys.executable, str(_RELAY), str(delay_s), *(host.port for host in self)]
        self._relay = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._relay.stdout is not None
        assert self._relay.stdout.readline() == b"ready\n"

    def torchrun(
        self, command: list[str], folder: Path, *options: str, nodes: str = "2", **environment: str
    ) -> list[Program]:
        """Start a command under torchrun on each host, one process on each unless options say otherwise."""
        self._again = launcher(self[0], *options, nodes=nodes) + command, folder, environment
        return [self.torchrun_again(host) for host in self]

    def torchrun_again(self, host: Host) -> Program:
        """Start the last command under torchrun on one host."""
        command, folder, environment = self._again
        return host.start(command, folder, **environment)

    def remove(self) -> None:
        """Kill all programs on the hosts, and remove these."""
        for host in self:
            host.kill()
        if self._relay is not None:
            self._relay.kill()
            self._relay.communicate()
        _remove_spaces(lambda process: process == os.getpid())


def launcher(first: Host, *options: str, nodes: str = "2") -> list[str]:
    """Return the command of torchrun on each host of a rendezvous at the first one."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", nodes, "--nproc-per-node", "1"]
    return [*command, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"{first.name}:{PORT}", *options]


@contextlib.contextmanager
def two_hosts(folder: Path, **options: Any) -> Iterator[Hosts]:
    """Make two hosts as `Hosts` does, and remove them also after an error."""
    _remove_spaces(lambda process: not _lives(process))
    made: Any = None
    try:
        made = Hosts(folder, **options)
        yield made
    finally:
        if made is None:
            _remove_spaces(lambda process: process == os.getpid())
        else:
            made.remove()


def inside(process: int) -> int:
    """Return the number of the program that a process started by `Host.entered` runs, of which it is the parent."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.01)
    raise AssertionError(f"process {process} has started no program")


def _space(name: str) -> str:
    return f"{PREFIX}-{os.getpid()}-{name}"


def _remove_spaces(of: Any) -> None:
    """Remove the namespaces of some processes, given by their number, and end the processes in them."""
    for line in ip("netns", "list").splitlines():
        name = line.split()[0]
        number = name.removeprefix(f"{PREFIX}-").partition("-")[0]
        if name.startswith(f"{PREFIX}-") and number.isdigit() and of(int(number)):
            for process in ip("netns", "pids", name).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
            ip("netns", "delete", name)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
