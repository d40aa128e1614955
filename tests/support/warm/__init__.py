"""Warm starts: every Python that a test starts is forked from one that has imported torch.

`install` (tests/conftest.py) makes `subprocess.Popen` do it; `hidden` keeps the imported modules out of `sys.modules`
until a program imports them itself, so that nothing but the time of the imports is missing. docs/decisions/0054.
"""

from warm.client import cold_starts, install

__all__ = ["cold_starts", "install"]
