"""`tools/plant_faults.py`: faults are planted in functions, and a map leads to the tests that reach them."""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from faults.planting import MARKS, faults, mark
from faults.selection import Map

SOURCE = '''"""A module."""

LIMIT = 3


def above(value: int, least: int = 0) -> bool:
    """Return True if a value is above both."""
    if value > LIMIT and value > least:
        return True
    return False
'''


def planted(tmp_path, count=9, seed=0):
    (tmp_path / "module.py").write_text(SOURCE)
    return faults(tmp_path, [tmp_path / "module.py"], count, seed)


def test_each_fault_is_one_change_of_one_line_in_a_function(tmp_path):
    found = planted(tmp_path)
    assert {fault.line for fault in found} == {6, 8, 9, 10}
    assert [fault.name for fault in found if fault.line == 10] == ["False becomes True"], "its deletion changes nothing"
    for fault in found:
        ast.parse(fault.changed)
        pairs = zip(SOURCE.splitlines(), fault.changed.splitlines(), strict=True)
        assert [number for number, (one, two) in enumerate(pairs, 1) if one != two] == [fault.line]


def test_a_variable_keeps_its_first_value_and_values_are_swapped(tmp_path):
    source = "def least(values):\n    found = list(values)\n    found = found or [True]\n    return not min(found)\n"
    (tmp_path / "module.py").write_text(source)
    made = [fault for seed in range(40) for fault in faults(tmp_path, [tmp_path / "module.py"], 9, seed)]
    assert {(fault.line, fault.name) for fault in made} == {
        (3, "statement deleted"),
        (3, "Or becomes And"),
        (3, "True becomes False"),
        (4, "statement deleted"),
        (4, "not removed"),
        (4, "min becomes max"),
    }


def test_the_same_seed_draws_the_same_faults(tmp_path):
    assert planted(tmp_path) == planted(tmp_path)
    assert len({tuple(fault.name for fault in planted(tmp_path, 1, seed)) for seed in range(9)}) > 1


def test_a_marked_module_works_as_before_and_records_what_it_reaches(tmp_path, monkeypatch):
    found = planted(tmp_path)
    mark(tmp_path, found)
    hits = []
    monkeypatch.setitem(sys.modules, MARKS, type("Marks", (), {"hit": staticmethod(hits.append)}))
    names = {}
    exec((tmp_path / "module.py").read_text(), names)
    at = {fault.line: fault.number for fault in found}
    hits.clear()
    assert names["above"](9) is True
    assert hits == [at[8], at[9]]
    hits.clear()
    assert names["above"](1) is False
    assert hits == [at[8], at[10]]


def test_tests_of_the_room_and_of_the_name_come_first_then_the_fastest(tmp_path):
    rows = [
        '{"id": "tests/b/test_b.py::slow", "cpu": 2.0, "failed": false, "shared": ["@programs tests/b"]}',
        '{"id": "tests/b/test_b.py::fast", "cpu": 0.1, "failed": false, "shared": []}',
        '{"id": "tests/a/test_a.py::near", "cpu": 1.0, "failed": false, "shared": []}',
        '{"id": "tests/a/test_of_part.py::nearest", "cpu": 9.0, "failed": false, "shared": []}',
        '{"id": "tests/b/test_b.py::fails", "cpu": 0.1, "failed": true, "shared": []}',
        '{"id": "tests/b/test_b.py::not written to the e',
    ]
    (tmp_path / "tests").write_text("\n".join(rows))
    hits = [row.partition('"id": "')[2].partition('"')[0] for row in rows[1:-1]] + ["@programs tests/b"]
    (tmp_path / "hits").write_text("".join(f"4\t{hit}\n" for hit in hits) + "5\t\n")
    found = Map.read(tmp_path / "tests", tmp_path / "hits")
    names = [
        [test.partition("::")[2] for test in found.tests(number, "src/truestep/a/part.py")] for number in (4, 5, 6)
    ]
    assert names[0] == ["nearest", "near", "fast", "slow"]
    assert names[1] == ["nearest", "near"], "what is reached by an import, any test of the room"
    assert names[2] == []
