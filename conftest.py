"""For all tests: a `Run` is watched only where a test asks for it, as the environment of any test suite can decide."""

import atexit
import os
import shutil
import tempfile


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # not in a process that was forked by a test
        shutil.rmtree(folder, ignore_errors=True)


os.environ.setdefault("TRUESTEP_WATCH", "0")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the tests run beside each other, one in each processor
# No test, nor a process that it kills, leaves anything behind: experiments link to all siblings of a working folder.
# Its name is short: sockets of DataLoader workers are below it, and their paths have at most 107 characters.
if "PYTEST_XDIST_WORKER" not in os.environ:  # the workers share the folder of the process that starts them
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="ts-")
    atexit.register(_remove, os.environ["TMPDIR"], os.getpid())
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="cache-")
