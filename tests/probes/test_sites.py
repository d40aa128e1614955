"""Code of the user, and code of packages that are installed in any environment."""

import pytest
import torch

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
