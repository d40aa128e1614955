"""A program under `truestep run` is the process that python would have made of it.

Python is always started cold; `truestep run` is started warm in most scripts, modules and paths, cold in all else.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from pathlib import Path

import pytest
import warm
from tiers import only

PYTHON = [sys.executable]
TRUESTEP = [sys.executable, "-m", "truestep", "run"]
COMMAND = [str(Path(sys.executable).with_name("truestep")), "run"]

Result = tuple[int, str, str]


def start(command: list[str], folder: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], text: str = "") -> Result:
    out, err = process.communicate(text, timeout=600)
    said = [line for line in err.splitlines(keepends=True) if not line.startswith("truestep: ")]
    return process.returncode, addressless(out), addressless("".join(said))


def addressless(text: str) -> str:
    return re.sub(r"\b0x[0-9a-f]+", "0x", text)


def both(folder: Path, *arguments: str, text: str = "", **environment: str) -> tuple[Result, Result]:
    """Results of python and of truestep for a command line, at the same time."""
    with warm.cold_starts():
        plain = start([*PYTHON, *arguments], folder, **environment)
    watched = start([*TRUESTEP, *arguments], folder, **environment)
    return finish(plain, text), finish(watched, text)


def write(folder: Path, source: str, name: str = "train.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return path


SCRIPTS = {
    "names": """
        \"\"\"Doc.\"\"\"
        import sys
        print(list(globals()), __doc__, __name__, __file__, __spec__, __package__, __cached__, __annotations__)
        print(type(__loader__), __loader__.name, __loader__.path, __builtins__)
        print(sys.argv, sys.path, sys.modules["__main__"].__dict__ is globals())
        if __name__ == "__main__":
            print("main")
        """,
    "nothing is imported before": """
        import sys
        print([name for name in ("torch", "numpy") if name in sys.modules], sys.excepthook is sys.__excepthook__)
        """,
    "exit code": "import sys; sys.exit(3)",
    "exit code none": "import sys; sys.exit()",
    "exit code true": "import sys; sys.exit(True)",
    "exit message": "import sys; print('out'); sys.exit('what a pity')",
    "exit in a function": """
        import sys, atexit
        class Held:
            def __del__(self): print("freed")
        def main():
            held = Held()
            sys.exit(4)
        atexit.register(lambda: print("atexit", "__file__" in globals()))
        main()
        """,
    "exception": """
        def f(n):
            return [1][n]
        f(5)
        """,
    "exception with a cause": """
        try:
            {}["x"]
        except KeyError as error:
            try:
                1 / 0
            except ZeroDivisionError:
                raise ValueError("outer") from error
        """,
    "exception group": """
        def one():
            raise ValueError(1)
        try:
            one()
        except ValueError as error:
            raise ExceptionGroup("several", [error, KeyError("k")])
        """,
    "exception without a traceback line": "raise SystemError",
    "syntax error inside": "compile('x = = 1', 'inner.py', 'exec')",
    "exception in a thread": """
        import threading
        def work(): raise RuntimeError("in a thread")
        thread = threading.Thread(target=work, name="worker"); thread.start(); thread.join()
        print("after")
        """,
    "a thread outlives the script": """
        import threading, time, atexit
        atexit.register(print, "atexit")
        def work():
            time.sleep(0.2); print("thread done")
        threading.Thread(target=work).start()
        print("script done")
        """,
    "interrupted": "print('a'); raise KeyboardInterrupt",
    "interrupted by a subclass": "class Mine(KeyboardInterrupt): pass\nraise Mine('x')",
    "interrupt caught": """
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            print("caught")
        """,
    "os._exit": "import os, sys; print('out', flush=True); print('lost'); os._exit(5)",
    "os._exit in a thread": """
        import os, threading, time
        threading.Thread(target=lambda: os._exit(6)).start()
        time.sleep(10)
        """,
    "killed by its own hand": "import os, signal; print('lost'); os.kill(os.getpid(), signal.SIGKILL)",
    "terminated by its own hand": "import os, signal; print('lost'); os.kill(os.getpid(), signal.SIGTERM)",
    "default handler of SIGTERM": """
        import signal
        print(signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
        print(signal.getsignal(signal.SIGTERM) in (None, signal.SIG_DFL), callable(signal.getsignal(signal.SIGINT)))
        print(signal.signal(signal.SIGTERM, lambda *_: print("mine")) is signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
        print(signal.signal(signal.SIGTERM, signal.SIG_DFL) is signal.SIG_DFL)
        """,
    "order of the end": """
        import atexit, sys, threading
        class Held:
            def __del__(self): sys.stdout.write("freed\\n")
        held = Held()
        atexit.register(print, "first registered")
        atexit.register(print, "last registered", file=sys.stderr)
        file = open("left_open.txt", "w"); file.write("all of it")
        threading._register_atexit(print, "threads")
        """,
    "failing atexit": """
        import atexit, sys
        atexit.register(print, "still called")
        @atexit.register
        def bad(): raise ValueError("bad handler")
        @atexit.register
        def leave(): sys.exit(7)
        """,
    "own excepthook": """
        import sys, traceback
        def hook(kind, value, tb):
            print("hook", kind, value, [f.name for f in traceback.extract_tb(tb)])
            print([f.name for f in traceback.extract_tb(value.__traceback__)], sys.exc_info())
        sys.excepthook = hook
        def f(): raise ValueError("x")
        f()
        """,
    "failing excepthook": """
        import sys
        def hook(*_): raise KeyError("in the hook")
        sys.excepthook = hook
        raise ValueError("x")
        """,
    "exiting excepthook": "import sys\nsys.excepthook = lambda *_: sys.exit(9)\nraise ValueError",
    "no excepthook": "import sys\ndel sys.excepthook\nraise ValueError('x')",
    "last exception": """
        import atexit, sys
        atexit.register(lambda: print(sys.last_type, sys.last_value, sys.last_traceback.tb_frame.f_code.co_name))
        raise ValueError("x")
        """,
    "standard streams": """
        import sys
        print(input("prompt "), sys.stdin.read(), sys.stdout.isatty(), file=sys.stdout)
        print("err", file=sys.stderr)
        """,
    "closed streams": "import sys; print('x'); sys.stderr.close(); sys.stdout.close()",
    "warnings": """
        import warnings
        def old():
            warnings.warn("old thing", DeprecationWarning, stacklevel=2)
        old()
        warnings.warn("here")
        print(1 is 1)
        """,
    "dataclasses and type hints": """
        from __future__ import annotations
        import dataclasses, typing
        @dataclasses.dataclass
        class Point:
            x: int
            other: typing.Optional[Point] = None
        print(typing.get_type_hints(Point), Point(1, Point(2)))
        """,
    "no future of ours": "def f(a: int): pass\nprint(f.__annotations__)",
    "pickling a class of main": """
        import pickle
        class Thing:
            def __init__(self): self.x = 1
        data = pickle.dumps(Thing())
        print(b"__main__" in data, type(pickle.loads(data)) is Thing)
        """,
    "children": """
        import subprocess, sys
        print(subprocess.run([sys.executable, "-c", "import sys; print(sys.argv, 'torch' in sys.modules)"],
                             capture_output=True, text=True).stdout)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"]); child.terminate()
        print(child.wait())
        """,
    "fork": """
        import os, signal, sys, time
        for number in range(20):
            child = os.fork()
            if child == 0:
                time.sleep(30)
            os.kill(child, signal.SIGTERM)
            assert os.waitpid(child, 0)[1] == signal.SIGTERM, number
        child = os.fork()
        print("child" if child == 0 else os.waitpid(child, 0)[1], flush=True)
        if child == 0:
            raise ValueError("in the child")
        child = os.fork()
        if child == 0:
            os._exit(3)
        print(os.waitpid(child, 0)[1] >> 8)
        """,
    "asyncio": """
        import asyncio
        async def main():
            await asyncio.sleep(0.01)
            raise ValueError("in a task")
        asyncio.run(main())
        """,
    "generators": """
        def g():
            try:
                yield 1
            finally:
                print("closed")
        it = g(); next(it)
        raise RuntimeError
        """,
    "unflushable output": "import os, sys; print('x'); os.close(1)",
}


COLD = {
    "names", "nothing is imported before", "exit in a function", "exception", "a thread outlives the script",
    "os._exit in a thread", "default handler of SIGTERM", "order of the end", "failing atexit", "own excepthook",
    "warnings", "children", "fork", "unflushable output",
}  # fmt: skip
"""Scripts that notice most of the start of a process, and of its end."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.cold] * (name in COLD) + [pytest.mark.program] * (place % 3 > 0))
        for place, name in enumerate(SCRIPTS)
    ],
)
def test_script_is_as_under_python(name: str, tmp_path: Path) -> None:
    write(tmp_path, SCRIPTS[name])
    plain, watched = both(tmp_path, "train.py", "--steps", "3", "--", "-m", text="line\nrest")
    assert watched == plain
    if name == "order of the end":
        assert (tmp_path / "left_open.txt").read_text() == "all of it"


@pytest.mark.cold
@pytest.mark.parametrize("method", only(["fork"], ["fork", "spawn", "forkserver"]))
def test_workers_find_the_functions_of_main(method: str, tmp_path: Path) -> None:
    write(
        tmp_path,
        f"""
        import multiprocessing as mp, time
        class Thing:
            def __init__(self, x): self.x = x
        def double(thing): return Thing(2 * thing.x)
        def sleep(): time.sleep(30)
        print(__name__)
        if __name__ == "__main__":
            context = mp.get_context("{method}")
            with context.Pool(1) as pool:
                print([thing.x for thing in pool.map(double, [Thing(1), Thing(2)])])
            process = context.Process(target=sleep)
            process.start(); process.terminate(); process.join(20)
            print(process.exitcode)
        """,
    )
    plain, watched = both(tmp_path, "train.py")
    assert watched == plain
    assert "[2, 4]\n-15" in plain[1]


PACKAGE = {
    "pkg/__init__.py": "import sys; print('package', sys.argv[0])",
    "pkg/part.py": "VALUE = 3",
    "pkg/tool.py": "from .part import VALUE; import sys; print(VALUE, __spec__.name, __package__, __file__, sys.argv)",
    "pkg/__main__.py": "from .part import VALUE; import sys; print(VALUE, __spec__, sys.path[0]); 1 / 0",
    "pkg/bad.py": "import pkg.worse",
    "pkg/worse.py": "x = = 1",
    "broken/__init__.py": "raise ValueError('package fails')",
    "broken/tool.py": "",
}


@pytest.mark.parametrize("module", ["pkg.tool", "pkg", "pkg.bad", "broken.tool", "pkg.part"])
def test_module_is_as_under_python(module: str, tmp_path: Path) -> None:
    for name, source in PACKAGE.items():
        write(tmp_path, source, name)
    plain, watched = both(tmp_path, "-m", module, "--quiet", "x", PYTHONDONTWRITEBYTECODE="1")
    assert watched == plain


@pytest.mark.parametrize(
    "path", ["./train.py", "sub/../train.py", "link.py", "far/link.py", "app", "./app/", "app.zip"]
)
def test_path_is_as_under_python(path: str, tmp_path: Path) -> None:
    source = "import sys, other; print(sys.argv, sys.path[0], __file__, __package__, other.X); 1 / 0"
    for folder in (tmp_path, tmp_path / "app", tmp_path / "sub", tmp_path / "far"):
        write(folder, f"X = {folder.name!r}", "other.py")
    write(tmp_path, source)
    write(tmp_path / "app", source, "__main__.py")
    (tmp_path / "link.py").symlink_to("train.py")
    (tmp_path / "far/link.py").symlink_to("../train.py")
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.write(tmp_path / "app/__main__.py", "__main__.py")
        archive.write(tmp_path / "app/other.py", "other.py")
    plain, watched = both(tmp_path, path, "x", PYTHONDONTWRITEBYTECODE="1")
    assert watched == plain


@pytest.mark.program
@pytest.mark.cold
def test_safe_path_is_kept(tmp_path: Path) -> None:
    write(tmp_path, "import sys; print(sys.path)")
    write(tmp_path / "app", "import sys; print(sys.path)", "__main__.py")
    for name in ("train.py", "app"):
        plain, watched = both(tmp_path, name, PYTHONSAFEPATH="1")
        assert watched == plain


@pytest.mark.cold
def test_encoding_cookie(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(
        "# coding: latin-1\nname = 'ä'\nprint(len(name))\nraise ValueError('ä')".encode("latin-1")
    )
    plain, watched = both(tmp_path, "train.py", PYTHONIOENCODING="utf-8")
    assert watched == plain
    assert plain[1] == "1\n"


@pytest.mark.program
@pytest.mark.cold
def test_module_beside_the_script_wins_over_ours(tmp_path: Path) -> None:
    write(tmp_path, "import click, typer.inner; print(click.__file__, typer.inner.X)")
    write(tmp_path, "", "click.py")
    write(tmp_path, "", "typer/__init__.py")
    write(tmp_path, "X = 1", "typer/inner.py")
    results = [finish(start([*command, "train.py"], tmp_path)) for command in (PYTHON, TRUESTEP, COMMAND)]
    assert results[1] == results[2] == results[0]
    assert results[0][0] == 0


WAITS = """
    import atexit, sys, time
    atexit.register(print, "atexit")
    try:
        print("ready", flush=True)
        time.sleep(30)
    finally:
        print("finally")
    """


@pytest.mark.cold
@pytest.mark.parametrize("number", only([signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]))
@pytest.mark.parametrize("how", only([[]], [[], ["-m"]]))
def test_signal_ends_the_process_as_under_python(number: signal.Signals, how: list[str], tmp_path: Path) -> None:
    write(tmp_path, WAITS)
    name = "train" if how else "train.py"
    commands = [[*python, *how, name] for python in (PYTHON, TRUESTEP, COMMAND)]
    processes = [start(command, tmp_path) for command in commands]
    results = []
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(number)
        results.append(finish(process))
    assert results[0][0] == -number
    assert results[1] == results[2] == results[0]


@pytest.mark.program
@pytest.mark.cold
def test_interrupt_while_threads_are_awaited(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        import atexit, threading, time
        atexit.register(print, "atexit")
        threading.Thread(target=lambda: (print("ready", flush=True), time.sleep(1.5))).start()
        """,
    )
    results = []
    for command in (PYTHON, TRUESTEP):
        process = start([*command, "train.py"], tmp_path)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        results.append(finish(process))
    assert results[1] == results[0]


@pytest.mark.program
@pytest.mark.cold
def test_unread_pipe(tmp_path: Path) -> None:
    write(tmp_path, "print('x' * 200_000)")
    codes = [
        subprocess.run(f"{' '.join(command)} train.py 2>err | head -c 1; echo ${{PIPESTATUS[0]}}", shell=True,
                       executable="/bin/bash", cwd=tmp_path, capture_output=True, text=True, check=False).stdout
        for command in (PYTHON, TRUESTEP)
    ]  # fmt: skip
    assert codes[1] == codes[0]


@pytest.mark.program
@pytest.mark.cold
def test_environment_set_before_torch_is_imported_counts(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        import os, sys
        os.environ["OMP_NUM_THREADS"] = "1" if os.cpu_count() != 1 else "3"
        import torch
        print(torch.get_num_threads(), type(torch.__spec__), torch.__spec__, torch.__loader__ is torch.__spec__.loader)
        print(torch.__spec__.loader_state, torch.__spec__._initializing, vars(torch.__spec__.loader))
        print([type(finder).__module__ for finder in sys.meta_path])
        """,
    )
    plain, watched = both(tmp_path, "train.py")
    assert plain[0] == 0
    assert watched[:2] == plain[:2]


@pytest.mark.cold
def test_failing_import_of_torch_shows_no_frame_of_ours(tmp_path: Path) -> None:
    write(tmp_path, "raise OSError('no libtorch')", "torch/__init__.py")
    write(
        tmp_path,
        """
        import importlib.util, traceback
        print(importlib.util.find_spec("torch").origin)
        for _ in range(2):
            try:
                import torch
            except OSError:
                print(traceback.format_exc())
        import torch
        """,
    )
    plain, watched = both(tmp_path, "train.py")
    assert watched == plain
