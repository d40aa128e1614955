"""`llms.txt` has every page of the navigation, and is up to date."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_list_of_pages_is_up_to_date():
    made = runpy.run_path(str(DOCS / "llms.py"))["text"]()
    assert (DOCS / "llms.txt").read_text(encoding="utf-8") == made, "run `python docs/llms.py`"
    assert made.count("\n- [") > 40
    assert all(len(line) < 400 for line in made.splitlines())


def test_the_site_has_the_pages_as_markdown(tmp_path):
    for folder in ("tutorial", "lab", "how-to", "reference", "explanation", "decisions"):
        (tmp_path / folder).mkdir()
    runpy.run_path(str(DOCS / "llms.py"))["on_post_build"]({"site_dir": str(tmp_path)})
    assert (tmp_path / "how-to" / "pytest.md").read_text() == (DOCS / "how-to" / "pytest.md").read_text()
    assert len(list(tmp_path.rglob("*.md"))) > 40
