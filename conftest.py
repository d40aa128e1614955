"""For all tests: a `Run` is watched only where a test asks for it, as the environment of any test suite can decide."""

import os
import tempfile

os.environ.setdefault("TRUESTEP_WATCH", "0")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the tests run beside each other, one in each processor
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="truestep-tests-")  # nothing of a test stays in the home
