"""The server of warm starts: python server.py SOCKET.

It imports the modules that programs need, then forks a process for every request. The process becomes a child of the
one that asked: its parent ends at once, and the asking process, marked as the reaper of its descendants, inherits it.
"""

import sys

BARE = set(sys.modules)

import array
import ctypes
import faulthandler
import gc
import io
import json
import linecache
import os
import pkgutil
import runpy
import socket
import warnings
from importlib.machinery import BuiltinImporter, SourceFileLoader
from types import ModuleType
from typing import Any

from hidden import Hidden

STAGES = (
    "numpy",
    "torch",
    "torch._dynamo",  # imported by the first optimizer
    "sklearn.datasets",
    "truestep",
    "truestep.rules",
    "truestep.loop.run",
    "truestep.supervision",
    "truestep.probes",
    "truestep.report",
    "truestep.cli",
    "truestep.cli.run",
    "truestep.experiments.changes",
    "truestep.experiments.instruments",
)
"""Imports, in this order; a program that imports one gets all that came with it."""


_HUGE = 2 << 20
_COLLAPSE = 25
"""MADV_COLLAPSE of Linux 6.1; an older kernel refuses it."""

FOLDERS = ("truestep.rules", "truestep.probes", "truestep.report")
"""Packages with modules that are imported one by one, by a session or a report: more than a hundred."""


def modules(package: str) -> list[str]:
    """Return the names of all modules in a package."""
    paths = sys.modules[package].__path__
    return [found.name for found in pkgutil.walk_packages(paths, f"{package}.") if not found.ispkg]


def main() -> None:
    """Serve; in a forked process, be the Python that was asked for."""
    added = {os.path.dirname(__file__), *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    paths = [place for place in sys.path if place not in added]
    filters = list(warnings.filters)
    hidden = Hidden(BARE)
    for stage in STAGES:
        hidden.stage(stage)
    for package in FOLDERS:
        for stage in modules(package):
            hidden.stage(stage)
    hidden.close()
    sys.modules["truestep.seams.tracing"].leave_uncompiled()  # a session marks the code of modules that are not marked
    generators = [sys.modules["random"], sys.modules["numpy.random"], sys.modules["torch"].default_generator]
    temporary = vars(sys.modules["tempfile"])
    hidden.take_out()  # before the fork: each module that is touched is a page that is copied
    gc.collect()
    gc.freeze()  # a collection in a forked process would copy the pages of all that is imported
    use_huge_pages()
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    take_over(request)
    for generator in generators:
        generator.seed()
    temporary["tempdir"] = None
    hidden.hide()
    leave_libraries(hidden)
    warn(filters, request["warnings"])
    status = run(request, paths)
    if status is not None:
        leave(hidden, status)


def use_huge_pages() -> None:
    """Move the memory of this process to pages of 2 MiB, where the kernel can: a fork copies the table of all pages."""
    madvise = ctypes.CDLL(None).madvise
    with open("/proc/self/maps", encoding="utf-8") as file:
        areas = [line.split() for line in file]
    for span, access, _, _, inode, *_ in areas:
        first, last = (int(address, 16) for address in span.split("-"))
        first, last = -(-first // _HUGE) * _HUGE, last // _HUGE * _HUGE
        if access == "rw-p" and inode == "0" and first < last:
            madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _COLLAPSE)


def serve(connection: socket.socket) -> dict[str, Any]:
    """Fork for each request; return the request in the forked process."""
    while True:
        try:
            request, descriptors = receive(connection)
        except (EOFError, KeyboardInterrupt, ConnectionError):
            os._exit(0)
        born, tell = os.pipe()
        wait, go = os.pipe()
        between = os.fork()
        if between == 0:
            child = os.fork()
            if child:
                os.write(tell, str(child).encode())
                os._exit(0)
            os.close(go)
            os.read(wait, 1)  # until the process between is gone, and the one that asked is the parent
            connection.close()
            for standard, descriptor in enumerate(descriptors):
                os.dup2(descriptor, standard)
            for descriptor in (born, tell, wait, *descriptors):
                os.close(descriptor)
            return request
        os.waitpid(between, 0)
        connection.sendall(os.read(born, 32).ljust(32))
        for descriptor in (born, tell, wait, go, *descriptors):
            os.close(descriptor)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return the next request and the descriptors of its standard streams."""
    head, received, *_ = connection.recvmsg(16, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    descriptors = [one for _, _, sent in received for one in array.array("i", sent)]
    if not head:
        raise EOFError
    size, text = int(head), b""
    while len(text) < size:
        text += connection.recv(size - len(text))
    return json.loads(text), descriptors


def take_over(request: dict[str, Any]) -> None:
    """Give this process the session, folder, environment and streams of a new one."""
    if request["session"]:
        os.setsid()
    elif request["group"] >= 0:
        os.setpgid(0, request["group"])
    os.umask(request["umask"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = standard(number, getattr(sys, name))
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    if os.environ.get("PYTHONFAULTHANDLER"):
        faulthandler.enable()


def standard(number: int, before: io.TextIOWrapper) -> io.TextIOWrapper:
    """Return a standard stream for a descriptor, as Python makes it at its start."""
    through = bool(os.environ.get("PYTHONUNBUFFERED"))
    mode = "w" if number else "r"
    raw = open(number, f"{mode}b", 0 if number and through else -1, closefd=False)  # noqa: SIM115
    vars(getattr(raw, "raw", raw))["name"] = before.name
    lines = not through and (number == 2 or raw.isatty())
    newline = "\n" if number else None
    encoding, errors = before.encoding, before.errors
    if asked := os.environ.get("PYTHONIOENCODING"):
        encoding, _, handler = asked.partition(":")
        errors = errors if number == 2 else handler or "strict"
    stream = io.TextIOWrapper(raw, encoding or before.encoding, errors, newline, lines, through)
    stream.mode = mode
    return stream


def leave(hidden: Hidden, status: int) -> None:
    """End this process as Python does, without the teardown of all that was imported before the fork.

    A teardown touches every object, and so copies its page.
    """
    if "threading" in sys.modules:
        vars(sys.modules["threading"])["_shutdown"]()
    flush = ctypes.CDLL(None).fflush  # now, while the program's audit hooks have their modules
    hidden.leave()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except OSError:
        raise SystemExit(status) from None  # Python names the loss, and has another status
    flush(None)
    os._exit(status & 0xFF)


def leave_libraries(hidden: Hidden) -> None:
    """Leave the process when Python has ended: without the destructors of torch's libraries, which take 0.25 s."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(hidden))
    libc = ctypes.CDLL(None)
    libc.on_exit(libc._exit, None)
    libc.__cxa_atexit(libc.fflush, None, None)  # called before the one above


def warn(filters: list[Any], options: list[str]) -> None:
    """Set the filters of warnings to those of Python, the environment and the options."""
    warnings.filters[:] = filters
    sys.warnoptions[:] = [*filter(None, os.environ.get("PYTHONWARNINGS", "").split(",")), *options]
    vars(warnings)["_processoptions"](sys.warnoptions)
    vars(warnings)["_filters_mutated"]()


def run(request: dict[str, Any], paths: list[str]) -> int | None:
    """Run a command, a module or a script as Python does, in a new ``__main__``; return the status of the process."""
    how, what, arguments = request["how"], request["what"], request["arguments"]
    full = os.path.join(os.getcwd(), what)
    first = {"-c": "", "-m": os.getcwd(), "": os.path.dirname(os.path.realpath(what))}[how]
    sys.path[:] = [first, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *paths]
    sys.orig_argv[:] = request["command"]
    sys.argv[:] = [how or what, *arguments]
    module = sys.modules["__main__"] = ModuleType("__main__")
    names = vars(module)
    if sys.version_info < (3, 14):
        names.update(__annotations__={})
    names.update(__builtins__=sys.modules["builtins"])
    try:
        if how == "-m":
            vars(runpy)["_run_module_as_main"](what)
        elif how == "-c":
            names.update(__loader__=BuiltinImporter)
            code = compile(what, "<string>", "exec", dont_inherit=True)
            if sys.version_info >= (3, 13):  # tracebacks show the lines of a command
                vars(linecache)["_register_code"]("<string>", what, "<string>")
            exec(code, names)
        else:
            names.update(__loader__=SourceFileLoader("__main__", full), __file__=full, __cached__=None)
            with open(full, "rb") as file:
                code = compile(file.read(), full, "exec", dont_inherit=True)
            exec(code, names)
            forget_file(names)
    except SystemExit as error:
        error.__traceback__ = None
        if not isinstance(error.code, int | None):
            raise
        return error.code or 0
    except BaseException:
        forget_file(names)
        sys.excepthook = without_server(sys.excepthook)
        raise
    return 0


def forget_file(names: dict[str, Any]) -> None:
    """Remove the names that Python removes when a script has ended, and leaves after `sys.exit`."""
    names.pop("__file__", None)
    names.pop("__cached__", None)


def without_server(hook: Any) -> Any:
    """Return the hook of a program for the exception that ends it, called without the frames of this file."""

    def shown(kind: Any, error: Any, traceback: Any) -> None:
        while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
            traceback = traceback.tb_next
        error.__traceback__ = sys.last_traceback = traceback
        sys.excepthook = hook
        hook(kind, error, traceback)

    return shown


if __name__ == "__main__":
    main()
