import ast
import linecache

import pytest

from truestep import source
from truestep.events import Site
from truestep.findings import Confidence, Finding, Mark, Severity
from truestep.source import SourceFile

RULE = "missing-zero-grad"


def covered(text, rule=RULE):
    file = SourceFile.from_text("train.py", text)
    return [line for line in range(1, len(file.lines) + 1) if file.suppression(rule, line)]


def test_comment_covers_its_line():
    assert covered("a()\nstep()  # truestep: ignore[missing-zero-grad] on purpose\nb()\n") == [2]


def test_comment_on_any_line_of_a_statement_covers_all_of_it():
    for line in range(1, 4):
        text = ["step(", "    closure,", ")", "b()"]
        text[line - 1] += "  # truestep: ignore[missing-zero-grad]"
        assert covered("\n".join(text) + "\n") == [1, 2, 3]


def test_comment_alone_on_its_line_covers_the_statement_below():
    text = "if x:\n    # truestep: ignore[missing-zero-grad]\n    # more words\n    step(\n        1)\n    b()\n"
    assert covered(text) == [4, 5]


def test_comment_with_a_gap_below_covers_no_statement():
    assert covered("# truestep: ignore[missing-zero-grad]\n\nstep()\n") == [1]


def test_comment_on_the_head_of_a_block_does_not_cover_the_block():
    assert covered("for x in y:  # truestep: ignore[missing-zero-grad]\n    step()\n") == [1]


def test_several_rules_share_a_comment():
    text = "step()  # truestep: ignore[missing-zero-grad, graph-cut] reason\n"
    assert covered(text) == covered(text, "graph-cut") == [1]
    assert covered(text, "nan-or-inf") == []


def test_file_comment_covers_every_line():
    assert covered("a()\nb()\n# truestep: ignore-file[missing-zero-grad]\n") == [1, 2, 3]


def test_string_that_looks_like_a_comment_covers_nothing():
    assert covered("step('# truestep: ignore[missing-zero-grad]')\n") == []


def test_reason_is_kept():
    file = SourceFile.from_text("train.py", "step()  # truestep: ignore[graph-cut]  the head alone learns\n")
    assert file.suppressions[0].reason == "the head alone learns"


@pytest.mark.parametrize("comment", ["ignore", "ignore[]", "ignroe[graph-cut]", "noqa"])
def test_comment_that_allows_nothing_is_reported(comment):
    (complaint,) = SourceFile.from_text("train.py", f"a()\nstep()  # truestep: {comment}\n").complaints([RULE])
    assert complaint.line == 2
    assert "allows nothing" in complaint.message


def test_unknown_rule_is_reported_with_the_nearest():
    file = SourceFile.from_text("train.py", "step()  # truestep: ignore[missing-zerograd, qqq]\n")
    assert [complaint.message for complaint in file.complaints([RULE, "graph-cut"])] == [
        'no rule is called "missing-zerograd" (nearest: missing-zero-grad)',
        'no rule is called "qqq"',
    ]


def test_code_that_is_not_python_keeps_its_suppressions():
    assert covered("%matplotlib inline\n'''\nstep()  # truestep: ignore[missing-zero-grad]\n") == [3]


def test_missing_file_has_no_lines(tmp_path):
    file = source.read(tmp_path / "gone.py")
    assert file.lines == ()
    assert file.line(1) is None
    assert file.complaints([RULE]) == []


def test_declared_encoding_is_obeyed(tmp_path):
    path = tmp_path / "latin.py"
    path.write_bytes("# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1"))
    assert source.read(path).line(2) == "name = 'é'"


@pytest.mark.parametrize("content", [b"x = '\xff'\n", b"# coding: nonsense\nx = 1\n", b"\x00\x01"])
def test_unreadable_bytes_do_not_raise(tmp_path, content):
    path = tmp_path / "broken.py"
    path.write_bytes(content)
    assert source.read(path).lines


def test_changed_file_is_read_again(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("one\n")
    assert source.read(path).line(1) == "one"
    path.write_text("another\n")
    assert source.read(path).line(1) == "another"


def test_cell_of_a_notebook_is_read_where_tracebacks_read_it():
    linecache.cache["<cell 7>"] = (7, None, ["step()\n"], "<cell 7>")
    try:
        assert source.read("<cell 7>").line(1) == "step()"
    finally:
        del linecache.cache["<cell 7>"]


def test_syntax_of_a_file_is_parsed_once(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("step()\n")
    tree = source.parsed(str(path))
    assert ast.unparse(tree) == "step()"
    assert source.parsed(str(path)) is tree
    path.write_text("second_step()\n")
    linecache.checkcache(str(path))
    assert ast.unparse(source.parsed(str(path))) == "second_step()"


@pytest.mark.parametrize(
    "text",
    ["", "for x in:\n", "x = 1\n" * 20_001, "x = '\0'\n", "x = " + "-" * 100_000 + "1\n"],
    ids=["empty", "no Python", "too long", "null byte", "too deep"],
)
def test_file_without_readable_syntax_has_none(tmp_path, text):
    path = tmp_path / "train.py"
    path.write_text(text)
    assert source.parsed(str(path)) is None


def test_missing_file_has_no_syntax(tmp_path):
    assert source.parsed(str(tmp_path / "none.py")) is None
    assert source.parsed("\0") is None


def test_lines_are_counted_as_python_counts_them():
    file = SourceFile.from_text("train.py", "a = 1\x0c\nb = '\u2028'\r\nc = 3")
    assert [line.strip() for line in file.lines] == ["a = 1", "b = '\u2028'", "c = 3"]


def test_bytes_become_characters():
    file = SourceFile.from_text("train.py", "é = step()\n")
    assert file.character(1, len("é = ".encode())) == 4


def test_finding_is_suppressed_by_its_primary_line_only(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("backward()  # truestep: ignore[missing-zero-grad]\nstep()\n")

    def finding(primary, related):
        marks = [Mark(Site(str(path), line), "") for line in (primary, related)]
        return Finding(RULE, Severity.ERROR, Confidence.HIGH, "it happened", marks[0], (marks[1],))

    assert source.suppressed(finding(1, 2))
    assert not source.suppressed(finding(2, 1))


def test_the_parents_of_a_file_that_was_read_again_are_those_of_its_new_nodes(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("x = 1\n", encoding="utf-8")
    first = source.parsed(str(path))
    assert set(source.parents(first).values()) >= {first, first.body[0]}
    for number in range(20):  # more files than are kept
        other = tmp_path / f"other_{number}.py"
        other.write_text(f"value = {number}\n", encoding="utf-8")
        source.parsed(str(other))
    second = source.parsed(str(path))
    assert second is not first
    assert source.parents(second)[second.body[0]] is second
