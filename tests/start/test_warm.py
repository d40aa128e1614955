"""A process that is started warm is the process that a cold start makes: of the server in tests/support/warm.

Two things differ: the seed of hashes is 0 in a process that asks for none, and `sys.flags` are those of the tests.
"""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest
import warm

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or importlib.util.find_spec("triton") is not None,
    reason="processes are started warm on Linux, and without triton",
)

SCRIPTS = {
    "names": """
        \"\"\"Doc.\"\"\"
        import sys
        print(list(globals()), __doc__, __name__, __file__, __spec__, __package__, __cached__, __annotations__)
        print(type(__loader__), __loader__.name, __loader__.path, __builtins__)
        print(sys.modules["__main__"].__dict__ is globals())
        """,
    "arguments and paths": """
        import os, sys
        print(sys.argv, sys.orig_argv, sys.path, sys.executable, sys.flags, sys.warnoptions, os.getcwd())
        """,
    "modules": "import sys; print(sorted(sys.modules))",
    "modules of python": """
        import sys
        import json, logging, tempfile, concurrent.futures, multiprocessing
        print(sorted(name for name in sys.modules if name.partition(".")[0] in ("json", "logging", "tempfile")))
        print([name for name in ("torch", "numpy", "truestep", "sklearn", "warm", "hidden") if name in sys.modules])
        """,
    "modules with torch": """
        import sys, torch
        print(sorted(name for name in sys.modules if name.startswith(("torch", "numpy"))))
        print(torch.__spec__, torch.__loader__ is torch.__spec__.loader, torch.__spec__._initializing)
        print(torch.get_num_threads(), torch.get_default_dtype())
        """,
    "modules with an optimizer": """
        import sys, torch
        torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)
        print(sorted(name for name in sys.modules if name.startswith("torch")))
        """,
    "modules with truestep": """
        import sys, truestep
        print(sorted(name for name in sys.modules if name.startswith(("truestep", "torch"))))
        """,
    "modules with a run": """
        import sys, truestep
        truestep.Run
        print(sorted(name for name in sys.modules if name.startswith("truestep")), "torch" in sys.modules)
        """,
    "modules with a session": """
        import sys
        from truestep.config import Options
        from truestep.supervision import Session
        session = Session(Options(), script="train.py")
        session.start()
        import torch
        session.stop("finished")
        print(sorted(name for name in sys.modules if name.startswith("truestep")))
    """,
    "a hook that waits for torch": """
        import sys
        class Finder:
            def find_spec(self, name, path, target=None):
                print("asked for", name) if name in ("torch", "numpy", "truestep") else None
        sys.meta_path.insert(0, Finder())
        import torch
        """,
    "a module of the folder": """
        import random, numpy
        print(random.mine, numpy.mine)
        """,
    "environment": """
        import os, sys
        print(sorted(os.environ.items()))
        sys.stdout.flush()
        os.system("env | sort | grep -v '^_='")
        """,
    "descriptors": """
        import os, sys
        print(sorted(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")))
        print([(stream.name, stream.mode, stream.encoding, stream.errors, stream.newlines, stream.line_buffering,
                stream.isatty(), stream.fileno(), stream is original)
               for stream, original in ((sys.stdin, sys.__stdin__), (sys.stdout, sys.__stdout__),
                                        (sys.stderr, sys.__stderr__))])
        """,
    "input": "import sys; print(input(), sys.stdin.read(), sys.stdin.buffer.read())",
    "signals": """
        import signal
        print([(number, signal.getsignal(number)) for number in sorted(signal.valid_signals())])
        print(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        """,
    "parents and groups": """
        import os
        pid, parent = os.getpid(), os.getppid()
        print(parent, os.getpgid(parent) == os.getpgid(0), os.getsid(parent) == os.getsid(0), os.getpgid(0) == pid)
        print(os.umask(0), os.nice(0), sorted(os.sched_getaffinity(0)))
        """,
    "warnings": """
        import warnings, sys
        print(warnings.filters)
        warnings.warn("deprecated", DeprecationWarning)
        """,
    "warnings with torch": "import torch, warnings; print(sorted(map(repr, set(warnings.filters))))",
    "exit code": "import sys; sys.exit(3)",
    "exit code none": "import sys; sys.exit()",
    "exit message": "import sys; print('out'); sys.exit('what a pity')",
    "exit at once": "import os; print('lost'); os._exit(5)",
    "exit with torch": "import torch, sys; print(torch.ones(1)); sys.exit(4)",
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
    "end of a script": """
        import atexit
        class Held:
            def __del__(self): print("freed")
        held = Held()
        atexit.register(lambda: print("atexit", "__file__" in globals()))
        """,
    "handlers of modules": """
        import atexit, logging, torch
        class Handler(logging.Handler):
            def flush(self): print("flushed")
            def emit(self, record): pass
        logging.getLogger().addHandler(Handler())
        atexit.register(print, "first")
        """,
    "a thread outlives the script": """
        import threading, time, atexit
        atexit.register(print, "atexit")
        def work():
            time.sleep(0.2); print("thread done")
        threading.Thread(target=work).start()
        print("script done")
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
            raise ValueError("outer") from error
        """,
    "exception in a thread": """
        import threading
        thread = threading.Thread(target=lambda: 1 / 0, name="worker"); thread.start(); thread.join()
        """,
    "excepthook": """
        import sys, traceback
        def hook(kind, error, trace):
            print("mine", kind, error, traceback.format_tb(trace), traceback.format_exception(error))
        sys.excepthook = hook
        1 / 0
        """,
    "last exception": """
        import atexit, sys, traceback
        atexit.register(lambda: print(sys.excepthook is sys.__excepthook__, traceback.format_tb(sys.last_traceback)))
        1 / 0
        """,
    "interrupted": "print('a'); raise KeyboardInterrupt",
    "interrupted with torch": "import torch._dynamo; print('a'); raise KeyboardInterrupt",
    "killed": "import os; print('lost'); os.kill(os.getpid(), 9)",
    "terminated": "import os; print('lost'); os.kill(os.getpid(), 15)",
    "syntax error": "x = = 1",
    "closed output": "import os, sys; print('x'); os.close(1)",
    "a process of the program": """
        import subprocess, sys
        print(subprocess.run([sys.executable, "-c", "import sys; print(sorted(sys.modules), sys.argv)", "x"],
                             capture_output=True, text=True))
        """,
    "a worker of a loader": """
        import torch
        from torch.utils.data import DataLoader
        print(list(DataLoader(torch.arange(4.0), batch_size=2, num_workers=1)))
        """,
    "an object in place of a module": """
        import sys, types
        class Library:
            __slots__ = ()
            __class__ = property(lambda self: types.ModuleType)
        sys.modules["library"] = Library()
        print(isinstance(sys.modules["library"], types.ModuleType))
        """,
    "a fork": """
        import os, sys
        child = os.fork()
        if not child:
            print("child"); sys.exit(6)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
}


def run(folder, command, cold=False, **options):
    """Return the exit code, the output and the complaints of a process."""
    options = {"cwd": folder, "capture_output": True, "text": True, "timeout": 100, "input": "one\ntwo"} | options
    if cold:
        with warm.cold_starts():
            done = subprocess.run(command, check=False, **options)
    else:
        done = subprocess.run(command, check=False, **options)
    texts = [re.sub(r"\b0x[0-9a-f]+|hash_randomization=\d", "", text or "") for text in (done.stdout, done.stderr)]
    return done.returncode, *texts


def both(folder, command, **options):
    return run(folder, command, **options), run(folder, command, cold=True, **options)


@pytest.fixture
def folder(tmp_path):
    for name in ("random", "numpy"):
        (tmp_path / "shadow").mkdir(exist_ok=True)
        (tmp_path / "shadow" / f"{name}.py").write_text("mine = True")
    return tmp_path


SLOW = {
    "a hook that waits for torch", "handlers of modules", "interrupted with torch", "modules with an optimizer",
    "modules with torch", "modules with truestep", "warnings with torch",
}  # fmt: skip
"""Scripts that import torch in a cold start, besides those of each kind that stay."""


LONG = {"a worker of a loader", "exit with torch", "modules with a run", "modules with a session"}
"""Those for `make programs`."""
MARKS = {**dict.fromkeys(SLOW, pytest.mark.slow), **dict.fromkeys(LONG, pytest.mark.program)}


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in SCRIPTS])
def test_script_is_what_a_cold_start_makes_of_it(folder, name):
    path = folder / ("shadow" if name == "a module of the folder" else ".") / "train.py"
    path.write_text(textwrap.dedent(SCRIPTS[name]))
    started, expected = both(folder, [sys.executable, str(path.relative_to(folder)), "--lr", "0.1"])
    assert started == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ["-c", "import sys; print(sys.argv, sys.path, list(globals()), __loader__, __name__)", "x"],
        ["-c", "1 / 0"],
        ["-c", "x = = 1"],
        ["-m", "package.train", "--x"],
        ["-m", "package.broken"],
        ["-m", "no.such.module"],
        ["-W", "error", "-c", "import warnings, sys; print(sys.warnoptions); warnings.warn('x')"],
    ],
    ids=lambda arguments: " ".join(arguments)[:30],
)
def test_command_or_module_is_what_a_cold_start_makes_of_it(folder, arguments):
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "train.py").write_text("import sys; print(sys.argv, sys.path, __name__, __spec__, __package__)")
    (package / "broken.py").write_text("def f(): raise ValueError('x')\nf()")
    started, expected = both(folder, [sys.executable, *arguments])
    assert started == expected


@pytest.mark.parametrize(
    "options",
    [
        {"env": {"A": "ä", "PYTHONPATH": "/one:/two"}},
        {"env": {"PYTHONWARNINGS": "error,ignore::UserWarning"}},
        {"env": {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONFAULTHANDLER": "0"}},
        {"start_new_session": True},
        {"process_group": 0},
        {"stderr": subprocess.STDOUT, "stdout": subprocess.PIPE, "capture_output": False},
        {"input": None, "stdin": subprocess.DEVNULL},
        {"umask": 0o027},
    ],
    ids=lambda options: " ".join(options),
)
def test_options_of_a_process_hold(folder, options):
    (folder / "train.py").write_text(
        "import os, sys, warnings\n"
        "print(sorted(os.environ.items()), sys.path, sys.warnoptions, warnings.filters)\n"
        "print(os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid(), os.umask(0), sys.stdin.read())\n"
        "print(sys.dont_write_bytecode, 'faulthandler' in sys.modules)\n"
        "import faulthandler; print(faulthandler.is_enabled())\n"
        "print('end', file=sys.stderr)\n"
    )
    started, expected = both(folder, [sys.executable, "train.py"], **options)
    assert started == expected
    assert "end" in started[1] + started[2]


def is_warm(command, **options):
    """Return whether a process is forked from the server: it has torch's library in its memory."""
    script = "print('libtorch' in open('/proc/self/maps').read())"
    return subprocess.run([*command, script], capture_output=True, text=True, check=True, **options).stdout == "True\n"


def test_processes_are_started_warm():
    assert is_warm([sys.executable, "-c"])


@pytest.mark.cold
def test_processes_of_a_test_that_is_marked_are_started_cold():
    assert not is_warm([sys.executable, "-c"])


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "PYTHONHASHSEED", "TORCH_LOGS", "LC_ALL", "LD_LIBRARY_PATH"])
def test_variables_that_are_read_once_need_a_cold_start(name):
    assert not is_warm([sys.executable, "-c"], env={**os.environ, name: "3"})


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"},
        {"PYTHONUNBUFFERED": "", "PYTHONIOENCODING": "ascii:replace"},
        {"PYTHONIOENCODING": ":xmlcharrefreplace"},
    ],
    ids=lambda variables: " ".join(variables.values()),
)
def test_variables_of_the_streams_hold_in_a_warm_start(folder, variables):
    (folder / "train.py").write_text(
        "import sys\n"
        "for stream in (sys.stdin, sys.stdout, sys.stderr):\n"
        "    print(stream.encoding, stream.errors, stream.line_buffering, stream.write_through)\n"
        "print('\u00e4\u20ac')\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | variables
    assert is_warm([sys.executable, "-c"], env=environment)
    started, expected = both(folder, [sys.executable, "train.py"], env=environment)
    assert started == expected


def test_options_of_python_need_a_cold_start():
    assert not is_warm([sys.executable, "-O", "-c"])


def test_descriptors_that_are_passed_need_a_cold_start():
    assert not is_warm([sys.executable, "-c"], pass_fds=[2])


def test_random_numbers_of_two_processes_differ():
    code = "import random, numpy, torch; print(random.random(), numpy.random.rand(), torch.initial_seed())"
    said = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout for _ in range(2)]
    assert not set(said[0].split()) & set(said[1].split())


def test_process_can_be_ended_by_its_number():
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert int(process.stdout.readline()) == process.pid
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM


def test_two_processes_run_at_the_same_time():
    code = "import sys; print('ready', flush=True); sys.stdin.read()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen([sys.executable, "-c", code], **pipes) as one,
        subprocess.Popen([sys.executable, "-c", code], **pipes) as two,
    ):
        for process in (one, two):
            assert process.stdout.readline() == "ready\n"
        for process in (one, two):
            process.communicate("", timeout=600)
            assert process.returncode == 0


def test_processes_can_be_started_by_threads():
    def said(number):
        command = [sys.executable, "-c", "import sys; print(sys.argv[1])", str(number)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(said, range(8))) == [f"{number}\n" for number in range(8)]


def test_large_environment_reaches_the_process():
    code = "import json, os; print(json.dumps(os.environ['LARGE'] == 'x' * 300_000))"
    options = {"env": {**os.environ, "LARGE": "x" * 300_000}}
    with pytest.raises(OSError):  # as the kernel refuses it
        with warm.cold_starts():
            subprocess.run([sys.executable, "-c", code], check=True, **options)
    options["env"]["LARGE"] = "x" * 100_000
    done = subprocess.run([sys.executable, "-c", code.replace("300_000", "100_000")], capture_output=True, **options)
    assert json.loads(done.stdout) is True
