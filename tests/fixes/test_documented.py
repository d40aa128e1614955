"""The reference page lists the rules with a fix; ``python tests/fixes/test_documented.py`` writes its table."""

from pathlib import Path

from truestep.fixes.catalogue import all_fixes
from truestep.rules import catalogue

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "fixes.md"
BEGIN, END = "<!-- rules with a fix -->\n", "<!-- end -->"


def table():
    rows = [
        f"| `{id}` | {fix.does} | {f'yes; to be reviewed if {fix.unsafe_if}' if fix.unsafe_if else 'yes'} |"
        if fix.unsafe_if != "always"
        else f"| `{id}` | {fix.does} | to be reviewed |"
        for id, fix in all_fixes().items()
    ]
    return "".join(f"{row}\n" for row in ("| rule | the fix | safe |", "| --- | --- | --- |", *rows))


def written():
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


def test_the_page_lists_the_rules_with_a_fix():
    assert PAGE.read_text(encoding="utf-8") == written()


def test_each_fix_is_of_a_rule():
    assert not all_fixes().keys() - catalogue().keys()


def test_each_fix_says_what_it_does():
    for id, fix in all_fixes().items():
        assert fix.does, id
        assert fix.does[0].islower(), id
        assert not fix.does.endswith("."), id


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
