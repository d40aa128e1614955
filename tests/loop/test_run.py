"""The parts of a run, and the folder that it writes."""

import json
import subprocess
import sys

import pytest
import torch
from torch import nn

import truestep
from truestep import Run, Settings
from truestep.errors import BadCheckpoint, BadPart, BadSettings, FolderHoldsRun, FolderInUse, UnknownPrecision


def trained(out=None, steps=3, **settings):
    run = Run(out=out, device="cpu", max_steps=steps, **settings)
    model = run.model(nn.Linear(2, 1))
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    for _ in run.steps(steps, model):
        run.step(model(torch.ones(1, 2)).sum())
    return run, model


def test_the_model_and_the_optimizer_stay_what_they_are():
    run = Run(device="cpu")
    model, optimizer = nn.Linear(2, 1), None
    assert run.model(model) is model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert run.optimizer(optimizer) is optimizer
    assert type(model) is nn.Linear
    assert list(model.state_dict()) == ["weight", "bias"]


def test_parts_have_names_of_their_own():
    run = Run(device="cpu")
    first, second = run.model(nn.Linear(1, 1)), run.model(nn.Linear(1, 1))
    assert run._parts.models == {"model": first, "model_2": second}
    with pytest.raises(BadPart, match="already"):
        run.model(nn.Linear(1, 1), name="model")
    with pytest.raises(BadPart, match="cannot name"):
        run.model(nn.Linear(1, 1), name="../model")


def test_what_has_no_state_cannot_be_registered():
    with pytest.raises(BadPart, match=r"(?s)list cannot be saved in a checkpoint.*run\.state"):
        Run(device="cpu").register("buffer", [])


def test_the_user_state_is_a_mapping_with_attributes():
    run = Run(device="cpu")
    run.state.best = 3
    assert run.state["best"] == run.state.best == 3
    del run.state.best
    with pytest.raises(AttributeError, match="best"):
        _ = run.state.best


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"accumulate": 0}, "accumulate must be a positive integer, got 0"),
        ({"max_epochs": 1.5}, "max_epochs must be a positive integer, got 1.5"),
        ({"max_steps": True}, "max_steps must be a positive integer, got True"),
        ({"clip_norm": 0}, "clip_norm must be a positive number or None, got 0"),
        ({"rank_timeout": 0}, "rank_timeout must be a positive number of seconds, got 0"),
        ({"resume": "auto"}, "no folder"),
        ({"save_every_n_steps": 5}, "no folder"),
        ({"max_epoch": 5}, "write max_epochs="),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, match):
    with pytest.raises(BadSettings, match=match):
        Run(**settings)


def test_an_unknown_precision_is_refused():
    with pytest.raises(UnknownPrecision):
        Run(precision="fp8")


def test_settings_can_be_given_whole():
    run = Run(Settings(max_steps=3, device="cpu"), accumulate=2)
    assert (run.settings.max_steps, run.settings.accumulate) == (3, 2)


def test_saving_without_a_folder_is_an_error():
    with pytest.raises(BadSettings, match="no folder"):
        Run(device="cpu").save()


def test_the_folder_says_what_the_run_was_made_with(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "__version__", f"{torch.__version__}.build")
    run, _ = trained(tmp_path / "run", clip_norm=2.0)
    run.close()
    settings = json.loads((tmp_path / "run" / "settings.json").read_text())
    environment = json.loads((tmp_path / "run" / "environment.json").read_text())
    assert settings["clip_norm"] == 2.0
    assert environment["packages"]["torch"] == torch.__version__
    assert environment["command"][0] == sys.executable


def test_uncommitted_changes_are_kept(tmp_path, monkeypatch):
    code = tmp_path / "code"
    code.mkdir()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(code)]
    (code / "train.py").write_text("lr = 1\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    (code / "train.py").write_text("lr = 2\n")
    monkeypatch.chdir(code)
    run, _ = trained(tmp_path / "run")
    run.close()
    state = json.loads((tmp_path / "run" / "environment.json").read_text())["git"]
    assert len(state["commit"]) == 40
    assert state["changed"] is True
    assert "+lr = 2" in (tmp_path / "run" / "changes.patch").read_text()


def test_two_runs_do_not_share_a_folder(tmp_path):
    run, _ = trained(tmp_path / "run")
    with pytest.raises(FolderInUse):
        trained(tmp_path / "run", resume="auto")
    run.close()
    trained(tmp_path / "run", resume="auto")[0].close()


def test_a_new_run_does_not_begin_in_the_folder_of_another(tmp_path):
    run, _ = trained(tmp_path / "run")
    run.save()
    run.close()
    with pytest.raises(FolderHoldsRun, match='resume="auto"'):
        trained(tmp_path / "run")
    again, _ = trained(tmp_path / "run", resume="auto")  # the folder was let go
    assert again.global_step == 3
    again.close()


def test_a_checkpoint_of_a_path_is_taken(tmp_path):
    run, model = trained(tmp_path / "first")
    run.save(metric=1.0)
    run.close()
    other, loaded = trained(tmp_path / "second", resume=tmp_path / "first" / "checkpoints" / "best")
    assert other.global_step == 3
    assert torch.equal(model.weight, loaded.weight)
    other.close()
    with pytest.raises(BadCheckpoint):
        trained(tmp_path / "third", resume=tmp_path / "nothing")


def test_other_parts_than_the_saved_ones_are_refused(tmp_path):
    run, _ = trained(tmp_path / "run")
    run.save()
    run.close()
    run = Run(out=tmp_path / "run", device="cpu", max_steps=5, resume="auto")
    model = run.model(nn.Linear(2, 1))
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1), name="renamed")
    run.register("average", torch.optim.swa_utils.AveragedModel(model))
    assert list(run.steps(3)) == [], "these were taken"
    with pytest.raises(BadCheckpoint, match=r"optimizers \['optimizer'\], got \['renamed'\]"):
        run.save()  # where the program was when the checkpoint was made
    run.close()


def test_saving_outside_of_loops_is_at_once(tmp_path):
    run, _ = trained(tmp_path / "run")
    run.save(metric=torch.tensor(0.5))
    manifest = tmp_path / "run" / "checkpoints" / "last" / "manifest.json"
    assert json.loads(manifest.read_text())["metric"] == 0.5
    run.close()


def test_a_save_before_a_break_is_written_when_the_run_ends(tmp_path):
    with Run(out=tmp_path / "run", device="cpu", max_epochs=9) as run:
        model = run.model(nn.Linear(2, 1))
        run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        for _ in run.epochs():
            for _ in run.steps(2):
                run.step(model(torch.ones(1, 2)).sum())
            run.save(metric=1.0)
            break
        assert not any((tmp_path / "run" / "checkpoints").glob("step-*"))
    assert [path.name for path in (tmp_path / "run" / "checkpoints").glob("step-*")] == ["step-000002"]


def test_after_an_exception_nothing_new_is_saved(tmp_path):
    with pytest.raises(ZeroDivisionError), Run(out=tmp_path / "run", device="cpu", max_steps=5) as run:
        model = run.model(nn.Linear(2, 1))
        run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        for _ in run.steps(3):
            run.step(model(torch.ones(1, 2)).sum())
            run.save()
            _ = 1 / 0
    assert not any((tmp_path / "run" / "checkpoints").glob("step-*"))


def test_deterministic_is_put_back():
    run = Run(device="cpu", deterministic=True)
    assert torch.are_deterministic_algorithms_enabled()
    run.close()
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_compiled_model_is_saved_under_plain_keys(tmp_path):
    run = Run(out=tmp_path / "run", device="cpu")
    run.model(torch.compile(nn.Linear(2, 1), backend="eager"))
    run.save()
    run.close()
    from safetensors import safe_open

    with safe_open(tmp_path / "run" / "checkpoints" / "last" / "model.safetensors", "pt") as file:
        assert sorted(file.keys()) == ["bias", "weight"]


def test_bf16_parameters_keep_float32_moments(tmp_path):
    def made():
        run = Run(out=tmp_path / "run", device="cpu", max_steps=9, resume="auto")
        model = run.model(nn.Linear(2, 1).to(torch.bfloat16))
        optimizer = run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
        return run, model, optimizer

    run, model, optimizer = made()
    for p in model.parameters():
        optimizer.state[p]["momentum_buffer"] = torch.full_like(p, 1 / 3, dtype=torch.float32)
    run.save()
    run.close()
    run, model, optimizer = made()
    run.save()
    for p in model.parameters():
        moment = optimizer.state[p]["momentum_buffer"]
        assert moment.dtype == torch.float32
        assert torch.equal(moment, torch.full_like(moment, 1 / 3))
    run.close()


PROGRAM = """
import sys, torch
from torch import nn
import truestep as ts

run = ts.Run(out=sys.argv[1], max_epochs=2, device="cpu")
model = run.model(nn.Linear(2, 1))
run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
for epoch in run.epochs():
    for _ in run.steps(3):
        run.step(model(torch.ones(1, 2)).sum())
    run.log({"epoch_ended": epoch})
    run.save()
    if len(sys.argv) > 2:
        raise KeyError("gone")
    break
"""


@pytest.mark.parametrize("fails", [False, True])
def test_a_program_that_ends_closes_its_run(tmp_path, fails):
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    out = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, program, out, *["fail"] * fails], capture_output=True, text=True, check=False
    )
    assert done.returncode == int(fails), done.stderr
    assert bool(list((out / "checkpoints").glob("step-*"))) is not fails
    assert "epoch_ended" in (out / "metrics.jsonl").read_text()


def test_watch_reports_when_the_run_ends(capsys):
    run, _ = trained(steps=5, watch=True)
    run.close()
    assert "no failure found" in capsys.readouterr().err


def test_a_run_is_watched_unless_the_environment_says_otherwise(monkeypatch):
    monkeypatch.delenv("TRUESTEP_WATCH")
    assert Settings().watch
    monkeypatch.setenv("TRUESTEP_WATCH", "0")
    assert not Settings().watch


def test_a_run_in_a_watched_program_is_watched_once(capsys):
    with truestep.watch() as session:
        run, _ = trained(steps=5, watch=True, progress=False)
        run.close()
    assert capsys.readouterr().err == ""
    assert session.steps == 5


def test_a_run_after_a_watched_one_is_watched_again(capsys):
    for _ in range(2):
        run, _ = trained(steps=5, watch=True)
        run.close()
        assert "no failure found" in capsys.readouterr().err


CRASH = """
import torch
from truestep import Run

run = Run(max_steps=2, device="cpu", watch=True)
model = run.model(torch.nn.Linear(3, 2))
run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
for _ in run.steps():
    loss = (model(torch.ones(4, 3)) ** 2).mean()
    loss.backward()
    loss.backward()
"""


def test_a_run_that_crashes_says_of_what(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(CRASH)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    traceback, _, report = done.stderr.partition("post-mortem[graph-freed]")
    assert "RuntimeError: Trying to backward through the graph a second time" in traceback
    assert "train.py:11" in report


def test_importing_the_package_imports_no_torch():
    code = "import sys, truestep; truestep.data; truestep.schedules; print(*({'torch', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
