"""`truestep exercise`: the list, the files that it writes and keeps, hints, solutions, and the answers of a check."""

import re

import pytest
from commands import called

from truestep.exercises.catalogue import PlantedFailure, exercises


@pytest.fixture
def exercise(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return lambda *arguments: called(capfd, monkeypatch, "exercise", *arguments)


def test_all_exercises_are_listed_within_80_columns(exercise):
    done = exercise()
    assert done.code == 0
    assert re.findall(r"^  ([a-z-]+)  ", done.out, re.MULTILINE) == list(exercises())
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.parametrize("name", exercises())
def test_a_file_is_written_with_its_task_and_without_the_answer(name, exercise, tmp_path):
    chosen = exercises()[name]
    done = exercise(name)
    assert done.code == 0
    assert (tmp_path / chosen.file).read_text(encoding="utf-8") == chosen.text()
    assert f"wrote {chosen.file}: {chosen.title}" in done.out
    assert f"truestep exercise {name} --check" in done.out
    assert "goal" in done.out
    if isinstance(chosen, PlantedFailure):
        assert chosen.symptom.split()[0] in done.out
        assert chosen.rule not in done.out + exercise(name, "--hint").out
        assert chosen.rule in exercise(name, "--solution").out


def test_a_file_that_is_there_is_never_overwritten(exercise, tmp_path):
    (tmp_path / "tape.py").write_text("mine")
    done = exercise("tape")
    assert done.code == 2
    assert (tmp_path / "tape.py").read_text() == "mine"
    assert "truestep exercise tape --check" in done.err


def test_another_place_can_be_given(exercise, tmp_path):
    (tmp_path / "lab").mkdir()
    assert exercise("tape", "lab").code == exercise("shapes", "lab/mine.py").code == 0
    assert {path.name for path in (tmp_path / "lab").iterdir()} == {"tape.py", "mine.py"}


def test_the_name_of_the_file_is_a_name_too(exercise):
    assert "diff" not in exercise("minimal_loop.py", "--hint").err
    assert exercise("minimal_loop.py", "--hint").code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("long-memori",), "write truestep exercise long-memory"),
        (("long-memory", "--check"), "write it with `truestep exercise long-memory`"),
        (("long-memory", "--check", "--hint"), "were given together"),
    ],
)
def test_wrong_use_has_a_remedy(arguments, said, exercise):
    done = exercise(*arguments)
    assert done.code == 2
    assert said in done.err


def test_a_solution_is_shown_as_a_difference(exercise):
    out = exercise("early-sunset", "--solution").out
    assert "  -        scheduler.step()" in out
    assert "  +    scheduler.step()" in out
    assert "truestep explain scheduler-wrong-cadence" in out


def test_a_check_of_functions_lists_each_of_them(exercise, tmp_path):
    exercise("tape")
    done = exercise("tape", "--check")
    assert done.code == 1
    assert done.out.count("  no  ") == 3
    assert "0 of 3 checks passed" in done.out
    (tmp_path / "tape.py").write_text(exercises()["tape"].solution())
    done = exercise("tape", "--check")
    assert done.code == 0
    assert "3 of 3 checks passed" in done.out


@pytest.mark.program
def test_a_check_of_a_script_says_what_is_missing_without_the_answer(exercise, tmp_path):
    exercise("sorted-desk")
    done = exercise("sorted-desk", "--check")
    assert done.code == 1
    assert done.out.startswith("not yet: TrueStep still finds the failure that was planted\n")
    assert "the goal is at least 0.93" in done.out
    assert "training-data-not-shuffled" not in done.out + done.err
    (tmp_path / "sorted_desk.py").write_text(exercises()["sorted-desk"].solution())
    done = exercise("sorted-desk", "--check")
    assert (done.code, done.out.partition(":")[0]) == (0, "mended")
    (tmp_path / "sorted_desk.py").write_text("import torch\n1 / 0\n")
    done = exercise("sorted-desk", "--check")
    assert done.code == 1
    assert "not yet: sorted_desk.py ended with an error" in done.out
    assert "ZeroDivisionError: division by zero" in done.out
    (tmp_path / "sorted_desk.py").write_text("while True:\n    pass\n")
    done = exercise("sorted-desk", "--check", "--seconds", "2")
    assert "still ran after 2 s, and was stopped" in done.out
