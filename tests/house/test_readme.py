"""README and documentation agree with the project: table of rules, counts, links, commands and code."""

import ast
import re
import runpy
from pathlib import Path

import pytest
from every import every

import truestep
import truestep.testing
from truestep.cli import COMMANDS
from truestep.experiments.changes import REMEDIES
from truestep.experiments.changes.speedups import SPEEDUPS
from truestep.rules import all_rules

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md")]
PAGES += [path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent.name != "rules"]

each_page = every("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


def test_the_readme_is_short_and_begins_with_two_commands():
    assert len(README.splitlines()) <= 150
    assert re.findall(r"^    \$ (.+?)(?:  +#.*)?$", README, re.MULTILINE)[:2] == ["make demo", "make test"]


def test_the_table_of_rules_is_up_to_date():
    page = runpy.run_path(str(ROOT / "docs" / "rules.py"))["table"]()
    assert (ROOT / "docs" / "reference" / "rules.md").read_text(encoding="utf-8") == page, "run `python docs/rules.py`"
    assert len(re.findall(r"^\| `[a-z-]+` \| (?:error|warning|speed) \|", page, re.MULTILINE)) == len(all_rules())


def test_the_page_of_symptoms_is_up_to_date():
    page = runpy.run_path(str(ROOT / "docs" / "rules.py"))["by_symptom"]()
    assert (ROOT / "docs" / "how-to" / "symptoms.md").read_text(encoding="utf-8") == page, "run `python docs/rules.py`"


def test_the_kinds_of_post_mortems_are_those_of_the_package():
    page = (ROOT / "docs" / "reference" / "post-mortems.md").read_text(encoding="utf-8")
    slugs = re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)
    package = (ROOT / "src" / "truestep" / "postmortem").rglob("*.py")
    source = "\n".join(path.read_text(encoding="utf-8") for path in package)
    assert not [slug for slug in slugs if f'"{slug}"' not in source]
    assert len(slugs) == 13
    assert "Thirteen\n  kinds" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_claims_name_rules_that_exist():
    page = (ROOT / "docs" / "explanation" / "what-breaks.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\|.+\|.+\|.+\| (.+) \|$", page.replace("truestep verify-resume", ""), re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"\b[a-z]+(?:-[a-z]+)+\b", re.sub(r"\(\S+?\)", "", cell))}
    assert named
    assert named <= set(all_rules())


def test_the_index_of_decisions_has_their_titles():
    folder = ROOT / "docs" / "decisions"
    rows = re.findall(
        r"^\| \[(\d{4})\]\((\S+)\) \| (.+) \|$", (folder / "index.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    heads = {path.name: path.read_text(encoding="utf-8").split("\n", 1)[0] for path in folder.glob("[0-9]*.md")}
    assert {name: f"# {number}: {title}" for number, name, title in rows} == heads


@pytest.mark.parametrize(
    ("name", "begin", "end", "expected"),
    [
        ("prove.md", "## Remedies", "A remedy does not reach", set(REMEDIES)),
        ("tune.md", "## Speed-ups", "Explicit choices", set(SPEEDUPS) - {"nothing"}),
    ],
)
def test_tables_of_the_reference_are_complete(name, begin, end, expected):
    page = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
    rows = page[page.index(begin) : page.index(end)].splitlines()
    named = {
        name for row in rows for name in re.findall(r"`([a-z0-9-]+)`", row.split(" | ")[0]) if row.startswith("| `")
    }
    assert named == expected


def test_every_rule_has_a_remedy_or_the_reason_that_it_has_none():
    page = (ROOT / "docs" / "reference" / "prove.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`.+?) \| .+ \|$", page[page.index("## Remedies") :], re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`([a-z-]+)`", cell)}
    assert named == set(all_rules()), "docs/reference/prove.md: add the rule to a remedy, or the reason for none"


def test_every_command_is_in_the_table_of_commands():
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| \[?`truestep ([a-z-]+)", page, re.MULTILINE)) == set(COMMANDS)


@each_page
def test_links_lead_somewhere(path):
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)", path.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target and "rules/" not in target]
    assert not [target for target in local if not (path.parent / target).exists()]


@each_page
def test_named_files_exist(path):
    package = ROOT / "src" / "truestep"
    folders = [folder.name for base in (ROOT, package) for folder in base.iterdir() if folder.is_dir()]
    named = re.findall(r"`((?:\w+/)+[\w.-]*)`", path.read_text(encoding="utf-8"))
    ours = [name for name in named if name.partition("/")[0] in folders and not name.startswith("runs/")]
    assert not [name for name in ours if not ((ROOT / name).exists() or (package / name).exists())]


@each_page
def test_commands_exist(path):
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"(?:^ *\$ |`|^    )truestep ([a-z][a-z-]+)", text, re.MULTILINE)
    assert set(named) <= set(COMMANDS)


def test_what_the_architecture_names_is_there():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    layout = text[text.index("    src/truestep/") : text.index("**Directions.**")]
    written = set(re.findall(r"`((?:\w+/)+[\w.-]*)`", text)) - {"raw/", "from_scratch/"}
    written |= set(re.findall(r"^ {4,6}(\w+(?:/|\.py))", layout, re.MULTILINE))
    assert len(written) > 30
    package = ROOT / "src" / "truestep"
    places = (ROOT, package, package / "probes", package / "loop", ROOT / "tests", ROOT / "examples", ROOT / "docs")
    assert not [name for name in written if not any((base / name).exists() for base in places)]
    rooms = {path.parent.name for room in ("probes", "loop") for path in (package / room).glob("*/__init__.py")}
    assert not [room for room in rooms if f"`{room}/`" not in text and f"`probes/{room}/`" not in text]
    assert len(text.splitlines()) <= 150


def test_the_architecture_has_every_event():
    from truestep import events

    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text[text.index("| room of `probes/` |") : text.index("**An event**")]
    cells = [row.rpartition("|")[0].rpartition("|")[2] for row in table.splitlines()]
    named = {name for cell in cells for name in re.findall(r"`([A-Z]\w+)`", cell)}
    kinds = {kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, events.Event)}
    of_checks = ("truestep.events._active", "truestep.events._rows")
    expected = {kind.__name__ for kind in kinds - {events.Event} if kind.__module__ not in of_checks}
    assert named == expected, "ARCHITECTURE.md: correct the events of the rooms of probes"


def test_links_of_docstrings_lead_from_the_pages_of_the_api():
    broken = [
        (path.name, link)
        for path in (ROOT / "src" / "truestep" / "loop").rglob("*.py")
        for link in re.findall(r"\]\(([^():]+\.md)\)", path.read_text(encoding="utf-8"))
        if not (ROOT / "docs" / "reference" / "api" / link).exists()
    ]
    assert broken == []


def test_the_page_of_run_lists_all_of_its_members():
    page = (ROOT / "docs" / "reference" / "api" / "run.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"members: \[\n(.+?)\]\n", page, re.DOTALL)
    names = re.findall(r"\w+", listed)
    assert sorted(names) == sorted(name for name in dir(truestep.Run) if not name.startswith("_"))


@each_page
def test_make_targets_exist(path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = re.findall(r"(?:`|^    \$ |^    )make ([a-z][a-z-]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(named) <= targets


@each_page
def test_code_uses_what_is_exported(path):
    blocks = re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for block in blocks:
        ast.parse(block)
        assert set(re.findall(r"(?<!import )\b(?:ts|truestep)\.(\w+)", block)) - {"testing"} <= set(dir(truestep))
        assert set(re.findall(r"\brun\.(\w+)", block)) <= {*dir(truestep.Run), *truestep.Run.__init__.__code__.co_names}
        for names in re.findall(r"from truestep\.testing import (.+)", block):
            assert set(names.split(", ")) <= set(truestep.testing.__all__)


@pytest.mark.parametrize(
    ("name", "quoted", "count"),
    [
        ("README.md", r"all (\d+) rules", len(all_rules())),
        ("CHANGELOG.md", r"^- (\d+) rules", len(all_rules())),
        ("CHANGELOG.md", r"Remedies for\s+(\d+)\s+rules", len(REMEDIES)),
        ("docs/reference/commands.md", r"remedies for (\d+) rules", len(REMEDIES)),
    ],
)
def test_quoted_counts_are_true(name, quoted, count):
    found = re.findall(quoted, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    assert found == [str(count)], f"{name}: correct the count of `{quoted}`"


def test_the_picture_is_there():
    picture, animation = re.findall(r"!\[.+?\]\((\S+?)\)", README)
    assert (ROOT / animation).stat().st_size < 300_000
    text = (ROOT / picture).read_text(encoding="utf-8")
    assert "missing-zero-grad" in text.replace("&#45;", "-")
