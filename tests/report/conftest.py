import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from runs import write_programs


@pytest.fixture(autouse=True)
def programs(tmp_path, monkeypatch):
    write_programs(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
