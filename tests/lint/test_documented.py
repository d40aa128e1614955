"""The page of `truestep lint` lists the rules that read the syntax."""

import re

from programs import REPOSITORY

from truestep.lint.engine import inspecting

PAGE = REPOSITORY / "docs" / "reference" / "lint.md"


def test_page_lists_the_rules_that_read_the_syntax():
    table = PAGE.read_text(encoding="utf-8").split("<!-- rules that read the syntax -->")[1].split("<!-- end -->")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == sorted(inspecting())


def test_most_of_the_rules_that_can_read_it_do():
    assert len(inspecting()) >= 50
