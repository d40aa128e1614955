"""The form of messages: `severity[rule-id]: fact`; for errors the event, the expectation, a remedy."""

import ast
import functools
import re
from pathlib import Path

import pytest
from every import every

from truestep import errors, events
from truestep.rules import all_rules

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "truestep").rglob("*.py"))
SNAPSHOTS = sorted((ROOT / "tests").rglob("snapshots/*.txt"))
REPORTS = {"message": 1, "label": None, "help": None, "cost": None}
HEDGES = re.compile(r"\b(might|may|perhaps|maybe|possibly|probably|seems?|please|should)\b", re.IGNORECASE)
PROPER = re.compile(r"[A-Z][A-Za-z0-9]*[A-Z(.]|[A-Z][a-z]+Norm|[A-Z]{2,}|`|Adam|Linear|\{")
"""How a message may begin other than in lower case: a class, an acronym, a name of the user's."""


def text_of(node):
    """The text of a string or f-string; `{}` stands for values. None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.IfExp):
        return text_of(node.body)
    return None


def literals(node):
    """Every text an expression can come to, where it is written down."""
    if isinstance(node, ast.IfExp):
        return literals(node.body) + literals(node.orelse)
    if isinstance(node, ast.BoolOp):
        return [text for value in node.values for text in literals(value)]
    text = text_of(node)
    return [] if not text else [text]


@functools.cache
def messages():
    """(rule, what, text) of every message, label, cost and help that a rule writes."""
    return sorted({*reported(), *suspected()})


def reported():
    """Yield them in the order of the sources."""
    for id, rule in all_rules().items():
        path = ROOT / "src" / "truestep" / "rules" / f"{rule.__module__.rpartition('.')[2]}.py"
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call):
                continue
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            if name == "report":
                parts = {keyword.arg: keyword.value for keyword in call.keywords}
                if len(call.args) > 1:
                    parts["message"] = call.args[1]
                for what in ("message", "label", "cost", "help"):
                    for text in literals(parts[what]) if what in parts else []:
                        yield id, what, text
            elif name == "Mark" and len(call.args) > 1:
                for text in literals(call.args[1]):
                    yield id, "label", text


def suspected():
    """(module, what, text) of every text of a suspicion, for which rules read the syntax."""
    for path in sorted((ROOT / "src" / "truestep" / "rules").glob("_syntax/**/*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Suspicion":
                for what, node in zip(("message", "label", "help"), call.args[1:4], strict=False):
                    for text in literals(node):
                        yield path.stem, what, text
                if len(call.args) > 4 and isinstance(call.args[4], ast.Tuple):
                    for mark in call.args[4].elts:
                        for text in literals(mark.elts[1]) if isinstance(mark, ast.Tuple) else []:
                            yield path.stem, "label", text


def test_messages_were_found():
    assert {rule for rule, what, _ in messages() if what == "message"} >= {"missing-zero-grad", "order"}


@every("rule, what, text", messages)
def test_rule_speaks_in_facts(rule, what, text):
    assert not text.rstrip().endswith((".", "!", "?")), f"{rule}: no full stop, no question"
    assert "?" not in text, f"{rule}: never a question"
    if what != "help":
        assert not HEDGES.search(text), f"{rule}: a fact, not a guess"
    assert text == text.strip(), f"{rule}: no spaces around"
    assert "\t" not in text
    first = text[:1]
    assert first.islower() or first.isdigit() or PROPER.match(text), f"{rule}: lower case"


@every("rule, text", lambda: [(rule, text) for rule, what, text in messages() if what == "message"])
def test_message_fits_a_line(rule, text):
    assert len(text) <= 110


def test_snapshots_were_found():
    assert SNAPSHOTS


@every("path", SNAPSHOTS, ids=lambda path: path.stem)
def test_snapshot_keeps_the_form_of_findings(path):
    blocks = path.read_text(encoding="utf-8").split("\n\n")
    for block in blocks:
        lines = block.splitlines()
        head = re.match(r"(error|warning|speed)\[([a-z0-9-]+)\]: (\S.*)$", lines[0])
        if head is None:
            died = re.match(r"post-mortem\[[a-z0-9-]+\]: (\S.*)$", lines[0])
            assert died or re.match(r"((no|1|\d+) (other )?failures? found, |nothing was checked: )", lines[0])
            assert died is None or not lines[0].endswith((".", "?", "!"))
            continue
        assert not lines[0].endswith((".", "?", "!"))
        keys = re.findall(r"^ +(?:-->|:::|=) ?(\w+)?", block, re.MULTILINE)
        named = [key for key in keys if key in {"seen", "cost", "help", "more"}]
        assert named == [key for key in ("seen", "cost", "help", "more") if key in named]
        assert named[0] == "seen"
        assert f"= more: truestep explain {head[2]}" in block


@functools.cache
def raised_errors():
    """(place, arguments) of every error of the tree that the package makes."""
    return list(_raised_errors())


def _raised_errors():
    """Yield them; only the sources that have the name of an error before a parenthesis are parsed."""
    kinds = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.TrueStepError)
    }
    made = re.compile(rf"\b(?:{'|'.join(kinds)})\s*\(")
    for path in SOURCES:
        source = path.read_text(encoding="utf-8")
        for call in ast.walk(ast.parse(source)) if made.search(source) else ():
            if isinstance(call, ast.Call) and getattr(call.func, "id", getattr(call.func, "attr", "")) in kinds:
                place = f"{path.relative_to(ROOT / 'src')}:{call.lineno}"
                parts = {keyword.arg: keyword.value for keyword in call.keywords}
                if call.args:
                    parts["happened"] = call.args[0]
                yield pytest.param(parts, id=place)


@every("parts", raised_errors)
def test_error_says_what_happened_and_what_to_do(parts):
    assert "happened" in parts
    assert "remedy" in parts, "one imperative remedy"
    for what in ("happened", "expected", "remedy"):
        for text in literals(parts[what]) if what in parts else []:
            assert not text.rstrip().endswith((".", "!", "?")), what
            assert text == text.strip(), what
            assert not HEDGES.search(text), what


def test_an_expectation_begins_with_expected_or_names_its_fact():
    """It is printed alone, below the event: "expected shape (6,), got (5,)", or "nearest: train.py"."""
    otherwise = [
        f"{error.id}: {text}"
        for error in raised_errors()
        for text in (literals(error.values[0]["expected"]) if "expected" in error.values[0] else [])
        if not re.match(r"expected |[\w' ]+: |needed |\{\}", text)
    ]
    assert otherwise == []


def test_every_error_has_a_slug_and_a_place_in_the_tree():
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.TrueStepError)
    ]
    slugs = [kind.slug for kind in kinds]
    assert len(set(slugs)) == len(slugs)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", slug) for slug in slugs)
    assert not [kind.__name__ for kind in kinds if kind.__name__ not in (errors.__doc__ or "")]


def event_kinds(kind=events.Event):
    return [kind, *(sub for child in kind.__subclasses__() for sub in event_kinds(child))]


@every("kind", event_kinds(), ids=lambda kind: kind.__name__)
def test_reason_for_not_observed_reads_well_in_a_list(kind):
    assert kind.absent[0].islower()
    assert not kind.absent.endswith(".")
    assert "," not in kind.absent


DOUBLED = re.compile(r"[\w`)\]'\"]\.\.(?![./\w])")
MAY_DOUBLE = re.compile(
    r"""
    (?: [\w`)\]'"] | \\\n ) \.\. (?![./\w])  # within one string
    | \. (?:\\\n)+ \.  # in two lines of it
    | \. ["'] (?: \s | \#.* | \\ | [rRbBfFuU]*["'] )* \. (?![./\w])  # in two strings side by side
    | \\ (?: x2[eE] | 0?56 | [uU]0*2[eE] | N\{ )  # written as an escape
    """,
    re.VERBOSE,
)
"""Without one of these in a source, its texts have at most one."""


def prose():
    """(place, text) of every text in the sources that may have two full stops, and of every page of documentation."""
    for path in SOURCES:
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if MAY_DOUBLE.search(source) else ():
            text = text_of(node)
            if text and " " in text:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", text
    for path in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md", *SNAPSHOTS]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield f"{path.relative_to(ROOT)}:{number}", line


def test_no_sentence_ends_with_two_full_stops():
    assert not [(place, text[:80]) for place, text in prose() if DOUBLED.search(text)]


@every(
    "source",
    [
        '"It ended.."', '"It ended." "."', 'f"It ended in {x}s." f". "', '"It ended." # so\n  \'.\'',
        '"It ended.\\\n."', '"It ended." "" r"."', '"It ended\\\n.. "', "'It ended.\\x2e'", '"""It ended."""".\\n"',
        '"It ended" ".."', '"It ended" "." "."',
    ],
)  # fmt: skip
def test_a_source_with_two_full_stops_is_read(source):
    assert DOUBLED.search(text_of(ast.parse(f"({source})", mode="eval").body))
    assert MAY_DOUBLE.search(source)
