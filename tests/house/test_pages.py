"""Pages of the documentation that a program writes are up to date."""

import runpy
import tomllib
from pathlib import Path

from truestep.exercises.catalogue import exercises

ROOT = Path(__file__).parents[2]
LAB = runpy.run_path(str(ROOT / "docs" / "lab.py"))
PAGES = tomllib.loads((ROOT / "docs" / "lab" / "pages.toml").read_text(encoding="utf-8"))


def test_the_page_beside_other_frameworks_has_the_measured_numbers():
    page = runpy.run_path(str(ROOT / "docs" / "peers.py"))["text"]()
    assert (ROOT / "docs" / "explanation" / "peers.md").read_text(encoding="utf-8") == page, (
        "run `python docs/peers.py`"
    )


def test_the_pages_of_the_lab_are_up_to_date():
    for name, one in PAGES.items():
        written = (ROOT / "docs" / "lab" / f"{name}.md").read_text(encoding="utf-8")
        assert written == LAB["page"](name, one), "run `python docs/lab.py`"
        if "measured" in one:
            picture = (ROOT / "docs" / "assets" / f"lab-{name}.svg").read_text(encoding="utf-8")
            assert picture == LAB["bars"](one), "run `python docs/lab.py`"


def test_every_example_has_a_page_with_a_picture_and_an_exercise():
    programs = {one["program"] for one in PAGES.values()}
    lab = {path.relative_to(ROOT).as_posix() for path in (ROOT / "examples" / "lab").glob("*.py")}
    assert lab <= programs
    for one in PAGES.values():
        assert (ROOT / one["program"]).exists()
        assert one["exercise"] in exercises()
        assert "picture" in one or "measured" in one
        if "picture" in one:
            assert (ROOT / "docs" / "assets" / one["picture"]).exists()


def test_the_code_of_a_page_is_in_its_program():
    for name, one in PAGES.items():
        source = (ROOT / one["program"]).read_text(encoding="utf-8")
        for line in one.get("code", "").strip().splitlines():
            code = line.partition("  #")[0].strip()
            assert code in source, f"{name}: {code}"
