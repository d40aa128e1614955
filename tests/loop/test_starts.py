"""Starting a run again: its checkpoint, its messages, and that nothing in its folder is lost by it."""

import json
import os

import pytest
import torch
from torch import nn

from truestep import Run
from truestep.errors import BadCheckpoint, BadSettings, FolderHoldsRun, KeysDoNotMatch
from truestep.loop.checkpoint.listing import find


def data(size=8):
    generator = torch.Generator().manual_seed(0)
    return torch.utils.data.TensorDataset(
        torch.randn(size, 2, generator=generator), torch.randn(size, 1, generator=generator)
    )


def train(out, *, steps=1000, width=1, before=None, **settings):
    """Train, cut off after so many steps; return the first step, the weights and the log."""
    settings = {"max_epochs": 3, "resume": "auto", "save_every_n_steps": 1, "keep_last": 50} | settings
    run = Run(out=out, seed=2, device="cpu", watch=False, progress=False, log_every_n_steps=1, **settings)
    first = run.global_step
    with run:
        model = run.model(nn.Linear(2, width))
        if before is not None:
            before(run, model)
        run.optimizer(torch.optim.Adam(model.parameters(), lr=0.1))
        loader = run.loader(data(), batch_size=2, shuffle=True, name="train")
        for _ in run.epochs():
            for x, y in run.train(loader, model):
                if run.global_step == steps:
                    run.close()
                    break
                loss = (model(x) - y).square().mean()
                run.step(loss)
                run.log({"loss": loss})
            if run.global_step == steps:
                break
    log = out / "metrics.jsonl"
    return first, [value.tolist() for value in model.parameters()], log.read_text() if log.exists() else ""


def everything(folder):
    """Return the contents of each file of a folder, but for the lock."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and path.name != ".lock"
    }


def flip(path):
    held = bytearray(path.read_bytes())
    held[len(held) // 2] ^= 1
    path.write_bytes(held)


class TestEveryCheckpointDamaged:
    @pytest.mark.parametrize("resume", ["auto", "own folder", "other run"])
    def test_a_run_is_refused_and_nothing_is_touched(self, tmp_path, resume):
        train(tmp_path / "run", steps=4)
        train(tmp_path / "other", steps=2)
        for step in (1, 2, 3, 4):
            flip(tmp_path / "run" / "checkpoints" / f"step-{step:06d}" / "state.pt")
        before = everything(tmp_path / "run")
        where = {"auto": "auto", "own folder": tmp_path / "run", "other run": tmp_path / "other"}[resume]
        with pytest.raises(BadCheckpoint) as caught:
            train(tmp_path / "run", resume=where)
        said = str(caught.value)
        assert "all 4 checkpoints in" in said
        assert "step-000004 is invalid: state.pt is damaged" in said
        assert "backup" in said
        assert "out= for a new run" in said
        assert everything(tmp_path / "run") == before

    def test_one_that_lacks_its_manifest_counts(self, tmp_path):
        train(tmp_path, steps=1)
        (tmp_path / "checkpoints" / "step-000001" / "manifest.json").unlink()
        with pytest.raises(BadCheckpoint, match="the only checkpoint in"):
            train(tmp_path)

    def test_a_folder_of_the_users_is_none_of_them(self, tmp_path):
        (tmp_path / "checkpoints" / "step-mine").mkdir(parents=True)
        (tmp_path / "checkpoints" / ".tmp-mine").mkdir()
        (tmp_path / "checkpoints" / ".tmp-mine" / "notes").write_text("kept")
        assert train(tmp_path, steps=1)[0] == 0
        assert train(tmp_path, steps=2)[0] == 1
        assert (tmp_path / "checkpoints" / ".tmp-mine" / "notes").read_text() == "kept"


class TestLogsOfEarlierStarts:
    @pytest.mark.parametrize("resume", ["auto", None])
    def test_the_log_of_a_run_that_never_saved_is_moved_aside(self, tmp_path, resume, capsys):
        settings = {"save_every_n_steps": None, "resume": resume}
        _, _, lines = train(tmp_path, steps=3, **settings)
        assert len(lines.splitlines()) == 3
        capsys.readouterr()
        assert train(tmp_path, steps=2, **settings)[2] == "".join(lines.splitlines(keepends=True)[:2])
        assert (tmp_path / "earlier" / "001" / "metrics.jsonl").read_text() == lines
        assert (tmp_path / "earlier" / "001" / "settings.json").exists()
        assert "earlier" in capsys.readouterr().err
        train(tmp_path, steps=1, **settings)
        assert len((tmp_path / "earlier" / "002" / "metrics.jsonl").read_text().splitlines()) == 2

    def test_going_back_to_an_older_checkpoint_keeps_a_copy_of_the_log(self, tmp_path, capsys):
        lines = train(tmp_path, steps=4)[2]
        train(tmp_path, steps=3, resume=tmp_path / "checkpoints" / "step-000002")
        assert (tmp_path / "earlier" / "001" / "metrics.jsonl").read_text() == lines
        assert "goes back from step-000004 to step-000002" in capsys.readouterr().err

    def test_a_log_that_lost_lines_is_a_warning(self, tmp_path):
        train(tmp_path, steps=4)
        log = tmp_path / "metrics.jsonl"
        log.write_text(log.read_text()[:30])
        with pytest.warns(UserWarning, match=r"metrics\.jsonl has 30 bytes.*lines of it are lost"):
            train(tmp_path, steps=5)
        lines = log.read_text().splitlines()
        assert json.loads(lines[-1])["step"] == 5, "on a separate line"


class TestStartedAgain:
    def test_a_run_from_another_run_goes_on_with_its_own_checkpoints(self, tmp_path, capsys):
        whole = train(tmp_path / "whole")
        train(tmp_path / "old", steps=4)
        branch = {"resume": tmp_path / "old"}
        assert train(tmp_path / "new", steps=7, **branch)[0] == 4
        lines = (tmp_path / "new" / "metrics.jsonl").read_text()
        capsys.readouterr()
        first, weights, log = train(tmp_path / "new", **branch)
        assert first == 7
        assert weights == whole[1]
        assert log.startswith(lines)
        assert whole[2].endswith(log)
        assert "resumes from its own step-000007" in capsys.readouterr().err

    def test_also_where_the_other_run_is_gone(self, tmp_path):
        train(tmp_path / "old", steps=4)
        train(tmp_path / "new", steps=6, resume=tmp_path / "old")
        os.rename(tmp_path / "old", tmp_path / "moved")
        assert train(tmp_path / "new", resume=tmp_path / "old")[0] == 6

    def test_one_that_was_killed_before_its_first_checkpoint_starts_there_again(self, tmp_path):
        train(tmp_path / "old", steps=4)
        branch = {"resume": tmp_path / "old", "save_every_n_steps": None}
        train(tmp_path / "new", steps=6, **branch)
        assert train(tmp_path / "new", steps=6, **branch)[0] == 4

    def test_a_folder_with_a_run_of_its_own_is_refused(self, tmp_path):
        train(tmp_path / "old", steps=4)
        train(tmp_path / "new", steps=2)
        before = everything(tmp_path / "new")
        with pytest.raises(FolderHoldsRun, match=r"holds another run(.|\n)*started from"):
            train(tmp_path / "new", resume=tmp_path / "old")
        assert everything(tmp_path / "new") == before

    def test_going_back_is_done_once(self, tmp_path, capsys):
        older = tmp_path / "checkpoints" / "step-000002"
        train(tmp_path, steps=5)
        assert train(tmp_path, steps=4, resume=older)[0] == 2
        assert train(tmp_path, steps=6, resume=older)[0] == 4
        assert "already started from" in capsys.readouterr().err
        assert train(tmp_path, steps=7)[0] == 6
        assert train(tmp_path, resume=tmp_path / "checkpoints" / "step-000003")[0] == 3

    def test_the_own_folder_means_its_newest(self, tmp_path, capsys):
        train(tmp_path, steps=2)
        capsys.readouterr()
        assert train(tmp_path, steps=3, resume=tmp_path)[0] == 2
        assert train(tmp_path, resume=tmp_path)[0] == 3
        assert capsys.readouterr().err == ""


class TestWeightsOfAnotherRun:
    def test_a_new_run_begins_with_the_weights_alone(self, tmp_path):
        _, weights, _ = train(tmp_path / "old", steps=5)
        began = []
        settings = {"init_from": tmp_path / "old", "before": lambda run, model: began.append(model.weight.tolist())}
        assert train(tmp_path / "new", steps=2, **settings)[0] == 0
        assert began == [weights[0]]

    def test_a_job_that_is_started_again_goes_on_with_its_own(self, tmp_path):
        train(tmp_path / "old", steps=5)
        whole = train(tmp_path / "whole", init_from=tmp_path / "old")
        train(tmp_path / "new", steps=4, init_from=tmp_path / "old")
        assert train(tmp_path / "new", init_from=tmp_path / "old") == (4, *whole[1:])

    def test_an_average_begins_with_them(self, tmp_path):
        _, weights, _ = train(tmp_path / "old", steps=5)
        seen = []
        train(tmp_path / "new", steps=0, init_from=tmp_path / "old",
              before=lambda run, model: seen.append(run.ema(model).model.weight.tolist()))  # fmt: skip
        assert seen == [weights[0]]

    def test_a_file_will_do(self, tmp_path):
        net = nn.Linear(2, 1)
        torch.save(net.state_dict(), tmp_path / "net.pt")
        run = Run(device="cpu", watch=False, max_steps=1, init_from=tmp_path / "net.pt")
        assert torch.equal(run.model(nn.Linear(2, 1)).weight, net.weight)

    def test_what_does_not_fit_is_refused(self, tmp_path):
        train(tmp_path / "old", steps=1)
        with pytest.raises(KeysDoNotMatch, match=r"weight \[1, 2\] in the file, \[3, 2\] in the model"):
            train(tmp_path / "new", init_from=tmp_path / "old", width=3)
        with pytest.raises(BadCheckpoint, match="no checkpoint at"):
            train(tmp_path / "third", init_from=tmp_path / "nothing")
        with pytest.raises(BadSettings, match="resume and init_from both set the start of the run"):
            train(tmp_path / "fourth", init_from=tmp_path / "old", resume=tmp_path / "old")


class TestWhatTheFolderSays:
    def test_the_settings_of_the_first_start_stay(self, tmp_path):
        train(tmp_path, steps=2)
        first = everything(tmp_path)
        train(tmp_path, steps=3)
        train(tmp_path, steps=4, max_epochs=9)
        now = everything(tmp_path)
        for name in ("settings.json", "environment.json"):
            assert now[name] == first[name]
        starts = [json.loads(line) for line in (tmp_path / "starts.jsonl").read_text().splitlines()]
        assert [start["step"] for start in starts] == [2, 3]
        assert [start["settings"] for start in starts] == [{}, {"max_epochs": 9}]
        assert starts[0]["checkpoint"] == "step-000002"

    def test_settings_that_cannot_be_read_are_left_alone(self, tmp_path):
        train(tmp_path, steps=2)
        (tmp_path / "settings.json").write_text("{")
        train(tmp_path, steps=3)
        assert (tmp_path / "settings.json").read_text() == "{"
        assert json.loads((tmp_path / "starts.jsonl").read_text())["settings"]["seed"] == 2

    def test_a_file_of_the_users_with_that_name_is_moved_aside(self, tmp_path):
        (tmp_path / "settings.json").write_text('{"seed": 2}')
        train(tmp_path, steps=1)
        assert (tmp_path / "earlier" / "001" / "settings.json").read_text() == '{"seed": 2}'


def test_a_checkpoint_of_another_program_is_refused_without_running_it(tmp_path):
    import pickle
    import zlib

    train(tmp_path, steps=1)
    path = tmp_path / "checkpoints" / "step-000001"

    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "ran"),))

    for write in (
        lambda: (path / "state.pt").write_bytes(pickle.dumps(Evil(), protocol=2)),
        lambda: torch.save(Evil(), path / "state.pt"),
    ):
        write()
        held = (path / "state.pt").read_bytes()
        rewrite(path, lambda manifest, held=held: manifest["files"].update(
            {"state.pt": {"bytes": len(held), "crc32": f"{zlib.crc32(held):08x}"}}))  # fmt: skip
        with pytest.raises(BadCheckpoint, match=r"state\.pt contains more than tensors"):
            train(tmp_path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["../../../secret", "/etc/hostname", "a\\b", ".."])
def test_a_manifest_that_names_files_elsewhere_is_refused(tmp_path, name):
    train(tmp_path, steps=1)
    path = tmp_path / "checkpoints" / "step-000001"
    rewrite(path, lambda manifest: manifest["files"].update({name: {"bytes": 1, "crc32": "00000000"}}))
    with pytest.raises(BadCheckpoint, match="names a file that is not in the checkpoint"):
        find(tmp_path)


def test_a_manifest_that_is_nested_too_deep_is_refused(tmp_path):
    train(tmp_path, steps=1)
    (tmp_path / "checkpoints" / "step-000001" / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(BadCheckpoint, match="it is not a manifest"):
        find(tmp_path)


def rewrite(path, change):
    """Change a manifest, and sign it."""
    import zlib

    manifest = json.loads((path / "manifest.json").read_text())
    manifest.pop("checksum")
    change(manifest)
    manifest["checksum"] = f"{zlib.crc32(json.dumps(manifest, sort_keys=True).encode()):08x}"
    (path / "manifest.json").write_text(json.dumps(manifest))
