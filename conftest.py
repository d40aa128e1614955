"""For all tests: a `Run` is watched only where a test asks for it, as the environment of any test suite can decide."""

import os

os.environ.setdefault("TRUESTEP_WATCH", "0")
