"""How variants run: kept, in several processes, one after another in one copy, within limits."""

import os
import sys
from dataclasses import replace

import pytest

from truestep.errors import UsageError
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import LOSSES, RunOutcome, Step, Variant
from truestep.experiments.running.outcome_cache import OutcomeCache
from truestep.supervision.launching.launch import Target

SCRIPT = """
import pathlib, sys
import torch
torch.manual_seed(0)
note = pathlib.Path("note.txt")
before = note.read_text() if note.exists() else ""
note.write_text(before + "x")
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).square().mean().backward()
    optimizer.step()
print("began with", repr(before))
"""
RANKED = """
import os, sys
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
if sys.argv[1:] == ["die"] and rank == 1:
    sys.exit(3)
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    model(torch.full((2, 4), float(rank))).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
"""
PLAIN = Variant("as it is", instruments=(LOSSES,))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    (work / "train.py").write_text(SCRIPT)
    (work / "ranked.py").write_text(RANKED)
    monkeypatch.chdir(work)
    return work


def bench(folder, *arguments, script="train.py", **options):
    return Bench(Target(script, arguments), options.pop("steps", None), folder=folder, **options)


@pytest.mark.program
def test_an_outcome_that_is_kept_is_not_run_again(folder, tmp_path):
    begun = []
    one = bench(folder, "3", cache=OutcomeCache(tmp_path / "kept"), begins=begun.append)
    first = one.run(PLAIN)
    assert one.run(PLAIN) == first
    assert len(begun) == 1
    assert one.cache.used == 0, "the values in this object are not an earlier outcome"
    later = replace(one, cache=OutcomeCache(tmp_path / "kept"))
    assert later.run(PLAIN) == first
    assert (len(begun), later.cache.used) == (1, 1)


def test_what_an_outcome_depends_on_is_in_its_name(folder, tmp_path, monkeypatch):
    kept = OutcomeCache(tmp_path / "kept")

    def key(arguments=("3",), steps=None, processes=1, variant=PLAIN):
        return kept.key(folder, Target("train.py", arguments), steps, processes, variant)

    keys = [key(), key(("4",)), key(steps=2), key(processes=2), key(variant=Variant("other", (("no-dropout", {}),)))]
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    keys.append(key())
    monkeypatch.setenv("LEARNING_RATE_OF_MINE", "0.1")
    keys.append(key())
    monkeypatch.setattr("truestep.experiments.running.outcome_cache.packages", lambda: [str(folder.parent)])
    keys.append(key())
    (folder.parent / "timm-1.0.dist-info").mkdir()
    keys.append(key())
    (folder / "data.txt").write_text("new")
    keys.append(key())
    os.utime(folder / "train.py", (1, 1))
    keys.append(key())
    assert len(set(keys)) == len(keys)
    monkeypatch.setenv("SHLVL", "7")
    assert key() == keys[-1]


def test_a_folder_with_more_files_than_are_looked_at_keeps_nothing(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("truestep.experiments.running.outcome_cache._MOST_FILES", 1)
    kept = OutcomeCache(tmp_path / "kept")
    assert kept.key(folder, Target("train.py"), None, 1, PLAIN) == ""
    kept.add("", RunOutcome(PLAIN, "finished"), ())
    assert kept.find("", PLAIN) is None


def test_what_is_kept_is_found_by_others_unless_they_begin_afresh(tmp_path):
    outcome = RunOutcome(PLAIN, "finished", (Step(0, 1.0, None, 0.5), Step(0, 0.5, 2.0, 0.7)), 3.0, 10)
    kept = OutcomeCache(tmp_path)
    kept.add("a", outcome, ())
    for how in ("killed", "crashed", "interrupted", "exited"):
        kept.add(how, replace(outcome, how=how), ())
        assert kept.find(how, PLAIN) is None
    assert OutcomeCache(tmp_path).find("a", PLAIN) == outcome
    afresh = OutcomeCache(tmp_path, fresh=True)
    assert afresh.find("a", PLAIN) is None
    afresh.add("a", outcome, ())
    assert afresh.find("a", PLAIN) == outcome
    (tmp_path / "a.json").write_text("{broken")
    assert OutcomeCache(tmp_path).find("a", PLAIN) is None


def test_not_more_is_kept_than_there_is_room_for(tmp_path, monkeypatch):
    monkeypatch.setattr("truestep.experiments.running.outcome_cache._MOST_OUTCOMES", 2)
    kept = OutcomeCache(tmp_path)
    for number in range(4):
        kept.add(str(number), RunOutcome(PLAIN, "finished"), ())
        os.utime(tmp_path / f"{number}.json", (number, number))
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == ["2", "3"]


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    kept = OutcomeCache(tmp_path / "file" / "below")
    kept.add("a", RunOutcome(PLAIN, "finished"), ())
    assert OutcomeCache(tmp_path / "file" / "below").find("a", PLAIN) is None


def test_an_outcome_is_found_while_what_it_read_elsewhere_is_the_same(tmp_path):
    read, absent = tmp_path / "data.txt", tmp_path / "absent.txt"
    read.write_text("1")
    os.utime(read, (1, 1))
    outcome = RunOutcome(PLAIN, "finished")
    kept = OutcomeCache(tmp_path / "kept")
    kept.add("a", outcome, [str(read), str(absent)])
    assert OutcomeCache(kept.folder).find("a", PLAIN) == outcome
    absent.write_text("")
    assert OutcomeCache(kept.folder).find("a", PLAIN) is None
    absent.unlink()
    os.utime(read, (2, 2))
    assert OutcomeCache(kept.folder).find("a", PLAIN) is None
    kept.add("unknown", outcome, None)
    kept.add("changed under way", outcome, [str(read)], begun_ns=1)
    assert OutcomeCache(kept.folder).find("unknown", PLAIN) is None
    assert OutcomeCache(kept.folder).find("changed under way", PLAIN) is None
    assert kept.find("unknown", PLAIN) == outcome, "within one command it is the same run"


ELSEWHERE = """
import sys
sys.path.insert(0, "../src")
import torch
import mypkg
from torch.utils.data import DataLoader, Dataset

class Lines(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return torch.tensor([float(open(f"../data/{index}.txt").read())])

model = mypkg.net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in DataLoader(Lines(), num_workers=1):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
"""


@pytest.mark.program
def test_what_is_imported_and_opened_outside_of_the_folder_is_part_of_the_name(folder, tmp_path):
    (tmp_path / "src" / "mypkg").mkdir(parents=True)
    package = tmp_path / "src" / "mypkg" / "__init__.py"
    package.write_text("import torch\ndef net():\n    return torch.nn.Linear(1, 1)\n")
    (tmp_path / "data").mkdir()
    for number in range(4):
        (tmp_path / "data" / f"{number}.txt").write_text(str(number))
    (folder / "train.py").write_text(ELSEWHERE)
    begun = []

    def again():
        one = bench(folder, cache=OutcomeCache(tmp_path / "kept"), begins=begun.append)
        assert one.run(PLAIN).how == "finished"
        return len(begun)

    assert (again(), again()) == (1, 1)
    package.write_text(package.read_text() + "# edited\n")
    os.utime(package, (2, 2))
    assert (again(), again()) == (2, 2)
    os.utime(tmp_path / "data" / "3.txt", (2, 2))
    assert (again(), again()) == (3, 3), "read by a worker of the loader"


@pytest.mark.program
def test_a_crash_is_not_kept(folder, tmp_path):
    (folder / "train.py").write_text("import torch\ntorch.load('../x.pt')\n")
    one = bench(folder, cache=OutcomeCache(tmp_path / "kept"))
    assert one.run(PLAIN).how == "crashed"
    (folder.parent / "x.pt").write_bytes(b"")
    assert "FileNotFoundError" not in one.run(PLAIN).said


@pytest.mark.program
def test_runs_in_one_place_find_what_earlier_ones_wrote(folder):
    with bench(folder, "2").place() as place:
        assert "began with ''" in place.run(PLAIN).said
        assert "began with 'x'" in place.run(replace(PLAIN, arguments=("1",))).said
        assert (place.copy / "note.txt").read_text() == "xx"
    assert not (folder / "note.txt").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="memory of a group of processes is read from /proc")
def test_a_run_over_its_memory_is_ended(folder):
    outcome = bench(folder, "3000000", limit_bytes=50 * 2**20).run(PLAIN)
    assert outcome.how == "killed"


@pytest.mark.program
def test_several_processes_run_one_variant_together(folder):
    outcome = bench(folder, script="ranked.py", processes=2, steps=3).run(PLAIN)
    assert (outcome.how, outcome.steps) == ("stopped", 3), outcome.said


@pytest.mark.slow
def test_a_process_that_dies_ends_the_others(folder):
    outcome = bench(folder, "die", script="ranked.py", processes=2).run(PLAIN)
    assert outcome.how != "finished"
    assert outcome.seconds < 100


def test_the_figures_of_an_outcome_are_those_of_the_first_optimizer():
    steps = [Step(number % 2, float(number), 1.0, number * 0.5) for number in range(20)]
    outcome = RunOutcome(PLAIN, "finished", tuple(steps))
    assert outcome.losses == tuple(float(number) for number in range(0, 20, 2))


@pytest.mark.parametrize(
    ("name", "happened"), [("curve.txt", "must end in .svg or .png"), ("curve", "must end in .svg or .png")]
)
def test_a_picture_is_an_svg_or_a_png(tmp_path, name, happened):
    from truestep.cli.experimenting.experiment import write_picture

    with pytest.raises(UsageError, match=happened):
        write_picture(tmp_path / name, "<svg/>")


def test_pictures_are_written_as_what_they_are_named(tmp_path):
    from truestep.cli.experimenting.experiment import write_picture
    from truestep.experiments.reports.picture import svg

    picture = svg({"as it is": [[1.0, 2.0], [2.0, 3.0]], "mended": [[1.0, 0.5]]}, "a < b")
    assert picture.count("<polygon") == 1
    write_picture(tmp_path / "c.svg", picture)
    write_picture(tmp_path / "c.PNG", picture)
    assert (tmp_path / "c.svg").read_text() == picture
    assert (tmp_path / "c.PNG").read_bytes().startswith(b"\x89PNG")


def test_an_experiment_is_not_one_of_several_processes(folder, monkeypatch):
    from truestep.cli.experimenting.experiment import bench_of

    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="one of 2 processes"):
        bench_of("train.py", [], False, steps=2, limit=10)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("Traceback\n  File\nValueError: why\n\n", "ValueError: why"),
        ("torch.OutOfMemoryError: full\n  a note of the error\n", "torch.OutOfMemoryError: full"),
        ("step 1\nstep 2\n", "step 2"),
        ("\n", ""),
    ],
)
def test_the_last_line_of_an_output_is_its_error_where_it_has_one(said, line):
    assert RunOutcome(PLAIN, "crashed", said=said).last_line == line


def test_outcomes_are_kept_in_the_cache_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert OutcomeCache().folder == tmp_path / "truestep" / "experiments"
