"""Code of the user, and code of packages that are installed in any environment."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from truestep.probes.context import sites
from truestep.probes.context.sites import Sites

FOLDER = torch.__path__[0]


@pytest.mark.parametrize(
    ("path", "installed"),
    [
        ("/home/me/project/train.py", False),
        ("/home/me/project/site_packages.py", False),
        ("/home/me/.local/lib/python3.11/site-packages/timm/models.py", True),
        ("/usr/lib/python3/dist-packages/accelerate/tracking.py", True),
        (f"{FOLDER}/nn/modules/linear.py", True),
    ],
)
def test_packages_of_any_environment_are_no_code_of_the_user(path: str, installed: bool) -> None:
    assert Sites(FOLDER).is_installed(path) is installed
    code = compile("1", path, "exec")
    assert (Sites(FOLDER).kind(code) == 0) is not installed


def test_this_package_is_known_behind_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path(sites.__file__)
    (tmp_path / "linked").symlink_to(real.parents[3])
    linked = tmp_path / "linked" / real.relative_to(real.parents[3])
    monkeypatch.setattr(sites, "__file__", str(linked))
    for path in (linked, real):
        assert Sites(FOLDER).kind(compile("1", str(path), "exec")) == 2


def test_the_files_of_the_program_include_modules_that_are_imported_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "_MOST_FILES", 10_000)  # the tests import hundreds
    seen = Sites(FOLDER)
    before = list(seen.own_files())
    later = ModuleType("later")
    later.__file__ = "/home/me/project/later.py"
    monkeypatch.setitem(sys.modules, "later", later)
    assert seen.own_files() == [*before, "/home/me/project/later.py"]
