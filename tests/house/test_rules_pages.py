"""Every rule is a document: a manual page, a test file and a proof."""

import ast
import re
import textwrap
from pathlib import Path

from every import every

from truestep.rules import all_rules, catalogue
from truestep.rules._page import parse
from truestep.rules._rule import HEADINGS

ROOT = Path(__file__).parents[2]
RULES = list(catalogue().values())
each_rule = every("rule", RULES, ids=lambda rule: rule.id)
each_rule_of_runs = every("rule", list(all_rules().values()), ids=lambda rule: rule.id)


@each_rule
def test_page_has_its_sections_in_order(rule):
    assert [section.heading for section in parse(rule.__doc__).sections] == list(HEADINGS)


@each_rule
def test_page_opens_with_one_sentence(rule):
    title = parse(rule.__doc__).title
    assert title.endswith(".")
    assert title[0].isupper() or title[0] == "`"
    assert len(title) <= 120
    assert not re.search(r"\w\. [A-Z]", title)


@each_rule
def test_every_section_says_something(rule):
    assert not [section.heading for section in parse(rule.__doc__).sections if not section.blocks]


@each_rule
def test_example_and_fix_show_code_that_parses(rule):
    page = parse(rule.__doc__)
    for heading in ("Example", "Fix"):
        code = [block.text for block in page.section(heading).blocks if block.kind == "code"]
        assert code, f"{heading} shows no code"
        for text in code:
            try:
                ast.parse(text)
            except SyntaxError:
                ast.parse("async def page():\n" + textwrap.indent(text, "    "))


@each_rule
def test_references_are_links(rule):
    items = parse(rule.__doc__).section("References").blocks
    assert items
    assert all(re.search(r"https://\S+", block.text) for block in items)


@each_rule
def test_markup_is_closed(rule):
    page = parse(rule.__doc__)
    for section in page.sections:
        for block in section.blocks:
            if block.kind != "code":
                assert block.text.count("`") % 2 == 0, block.text
                assert "::" not in block.text, block.text


@each_rule_of_runs
def test_rule_has_a_test_file(rule):
    assert (ROOT / "tests" / "rules" / f"test_{rule.id.replace('-', '_')}.py").is_file()


@each_rule_of_runs
def test_rule_has_a_proof_or_is_preview(rule):
    folder = ROOT / "proofs" / rule.id
    present = [name for name in ("bad.py", "good.py", "proof.toml") if (folder / name).is_file()]
    assert len(present) == 3 or rule.preview


@each_rule_of_runs
def test_proof_marks_its_guilty_line(rule):
    path = ROOT / "proofs" / rule.id / "bad.py"
    if rule.preview and not path.is_file():
        return
    marked = re.findall(r"# error: ([\w, -]+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert any(rule.id in re.split(r",\s*", ids) for ids in marked)
    assert "# error:" not in path.with_name("good.py").read_text(encoding="utf-8")


def test_notices_name_the_documentation_of_torch():
    for rule in catalogue().values():
        if not rule.in_runs:
            assert "https://docs.pytorch.org/" in rule.__doc__, rule.id


def test_every_proof_belongs_to_a_rule():
    folders = {path.parent.name for path in (ROOT / "proofs").glob("*/bad.py")}
    assert folders <= set(all_rules())
