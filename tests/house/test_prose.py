"""Plain English: wordings that a reader must decode become fewer, and never more.

`python tools/prose.py --list src` shows every place.
"""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from prose import WORDINGS, count, files

LIMITS = {
    "src": 0.9,
    "docs": 1.5,
    "README.md": 0.5,
    "ARCHITECTURE.md": 0.5,
    "CONTRIBUTING.md": 0.5,
    "CHANGELOG.md": 0.5,
    "bench": 2.0,
    "examples": 0.5,
    "tests": 5.0,
    "tests/wild": 4.0,
}
"""Per 10,000 words, as measured when it was last lowered; rich has 4.0, torch.optim 4.8, pytest 7.8."""


@pytest.mark.parametrize(
    "place", [pytest.param(place, marks=[pytest.mark.program] * (place == "tests")) for place in LIMITS]
)
def test_wordings_to_avoid_become_fewer(place):
    words, found = count(files([ROOT / place]))
    measured = 10_000 * len(found) / words
    assert measured <= LIMITS[place], f"{measured:.1f} per 10,000 words: python tools/prose.py --list {place}"


def test_wordings_are_found_in_prose_and_not_in_code(tmp_path):
    (tmp_path / "page.md").write_text("Say what is told.\n```python\nwhat = 1  # what is told\n```\nWhat is it?\n")
    (tmp_path / "module.py").write_text(
        '"""Begin anew.\n\n>>> what_is = 1\n"""\nwhat_is = "whose turn"  # nobody knows\n'
    )
    kinds = [kind for _, _, kind, _ in count(files([tmp_path]))[1]]
    assert sorted(kinds) == sorted(["what-clause", "told", "anew", "whom", "nobody"])
    assert set(kinds) <= set(WORDINGS)
