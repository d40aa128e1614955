"""Runs with `mirror=`, and URLs where a path of a checkpoint is expected."""

import os
import subprocess
import sys
import threading
import uuid
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from truestep import Run, load_weights
from truestep.errors import (
    BadCheckpoint,
    BadSettings,
    BrokenCheckpoint,
    FolderHoldsRun,
    InexactResume,
    StorageUnavailable,
)
from truestep.experiments.running.bench import _SILENT
from truestep.loop.checkpoint.remote.storage import Storage

PROGRAM = Path(__file__).parent / "programs" / "mirrored.py"


@pytest.fixture
def url():
    return f"memory://{uuid.uuid4().hex}/run"


def net():
    return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.2), nn.Linear(8, 1))


def train(out, epochs=3, **settings):
    """Train and save after each epoch, the first of which is the best; return the weights."""
    x = torch.randn(24, 6, generator=torch.Generator().manual_seed(5))
    settings = {"seed": 3, "max_epochs": epochs, "device": "cpu", "progress": False, **settings}
    with Run(out=out, **settings) as run:
        loader = run.loader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4, shuffle=True)
        model = run.model(net())
        run.optimizer(torch.optim.AdamW(model.parameters(), lr=1e-2))
        for epoch in run.epochs():
            for inputs, targets in run.train(loader, model):
                loss = (model(inputs) - targets).square().mean()
                run.step(loss)
                run.log({"loss": loss})
            run.save(epoch)
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(weights, others):
    return weights.keys() == others.keys() and all(torch.equal(weights[name], others[name]) for name in weights)


def loaded(source):
    model = net()
    load_weights(model, source)
    return model.state_dict()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_run_on_another_machine_goes_on_to_the_same_weights_and_log(tmp_path, url, asynchronous):
    whole = train(tmp_path / "whole")
    train(tmp_path / "a", 1, mirror=url, asynchronous=asynchronous)
    goes_on = train(tmp_path / "b", mirror=url, asynchronous=asynchronous, resume="auto")
    assert same(goes_on, whole)
    assert (tmp_path / "b" / "metrics.jsonl").read_bytes() == (tmp_path / "whole" / "metrics.jsonl").read_bytes()


def test_a_log_without_a_checkpoint_is_kept_aside_when_a_run_comes_from_the_mirror(tmp_path, url):
    train(tmp_path / "a", 1, mirror=url)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "metrics.jsonl").write_text('{"loss": 1}\n')
    train(tmp_path / "b", mirror=url, resume="auto")
    assert (tmp_path / "b" / "earlier" / "001" / "metrics.jsonl").read_text() == '{"loss": 1}\n'


def test_a_run_without_close_is_in_the_mirror_when_the_process_ends(tmp_path):
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "out", f"file://{tmp_path}/mirror"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "mirror" / "checkpoints").iterdir()} == {
        "step-000001-1-1",
        "step-000002-1-2",
    }


def test_an_upload_that_failed_is_tried_again_at_the_end_of_a_run(tmp_path, url, monkeypatch):
    upload, failed = Storage.upload, []

    def fails_once(self, path, name):
        if "step-" in name and not failed:
            failed.append(name)
            raise OSError("no connection")
        upload(self, path, name)

    monkeypatch.setattr(Storage, "upload", fails_once)
    weights = train(tmp_path, 1, mirror=url)
    assert failed
    assert same(loaded(url), weights)


def test_an_exception_in_the_loop_still_uploads_what_was_saved(tmp_path, url):
    with pytest.raises(ZeroDivisionError), Run(out=tmp_path / "a", mirror=url, device="cpu", progress=False) as run:
        model = run.model(net())
        run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        run.step(model(torch.ones(1, 6)).sum())
        run.save()
        raise ZeroDivisionError
    assert "step-000001-1-1/manifest.json" in Storage(url).files("checkpoints")


def test_a_new_run_is_refused_by_a_mirror_that_holds_one(tmp_path, url):
    train(tmp_path / "a", 1, mirror=url)
    with pytest.raises(FolderHoldsRun, match=f"the mirror {url} already holds a run: step-000006"):
        Run(out=tmp_path / "b", mirror=url, device="cpu")


def test_a_branch_of_another_run_goes_on_from_its_own_mirror(tmp_path, url):
    train(tmp_path / "old", 1)
    whole = train(tmp_path / "whole", resume=tmp_path / "old")
    train(tmp_path / "a", 2, mirror=url, resume=tmp_path / "old")
    assert same(train(tmp_path / "b", mirror=url, resume=tmp_path / "old"), whole)
    with pytest.raises(FolderHoldsRun, match="already holds another run"):
        train(tmp_path / "c", mirror=url, resume=tmp_path / "whole")


# --- URLs in place of paths ---


@pytest.mark.parametrize(
    "place", ["", "/", "/checkpoints", "/last", "/checkpoints/last", "/checkpoints/step-000018-1-3"]
)
def test_the_newest_weights_are_loaded_from_a_url(tmp_path, url, place):
    weights = train(tmp_path, mirror=url)
    assert same(loaded(url + place), weights)


def test_the_best_weights_are_loaded_from_a_url(tmp_path, url):
    train(tmp_path, mirror=url)
    best = loaded(tmp_path / "checkpoints" / "best")
    assert same(loaded(f"{url}/best"), best)
    assert same(loaded(f"{url}/checkpoints/best"), best)
    assert same(loaded(f"{url}/checkpoints/step-000006-1-1"), best)


def test_a_folder_that_was_copied_by_other_means_is_read(tmp_path, url):
    weights = train(tmp_path)
    for path in (tmp_path / "checkpoints" / "step-000018").iterdir():
        Storage(url).upload(path, f"checkpoints/step-000018/{path.name}")
    assert same(loaded(url), weights)
    with pytest.warns(InexactResume, match=r"metrics\.jsonl has 0 bytes"):  # the log was not copied
        assert same(train(tmp_path / "b", mirror=url, resume="auto"), weights)


def test_a_file_of_weights_is_loaded_from_a_url(tmp_path, url):
    model = net()
    torch.save(model.state_dict(), tmp_path / "model.pt")
    Storage(url).upload(tmp_path / "model.pt", "model.pt")
    assert same(loaded(f"{url}/model.pt"), model.state_dict())


def test_a_file_of_weights_is_loaded_from_a_web_server(tmp_path):
    model = net()
    torch.save(model.state_dict(), tmp_path / "model.pt")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        weights = loaded(f"http://127.0.0.1:{server.server_port}/model.pt")
        server.shutdown()
    assert same(weights, model.state_dict())


def test_a_run_begins_with_the_weights_at_a_url(tmp_path, url):
    train(tmp_path / "old", mirror=url)
    first = train(tmp_path / "a", 1, init_from=f"{url}/best")
    assert same(first, train(tmp_path / "b", 1, init_from=tmp_path / "old" / "checkpoints" / "best"))


def test_a_run_starts_from_the_state_at_a_url(tmp_path, url):
    train(tmp_path / "old", 1, mirror=url)
    whole = train(tmp_path / "whole")
    assert same(train(tmp_path / "a", 2, resume=url), train(tmp_path / "b", 2, resume=tmp_path / "old"))
    assert same(train(tmp_path / "a", resume=url), whole), "restarted, it resumes from its own checkpoints"
    assert not [path for path in (tmp_path / "a").iterdir() if "fetched" in path.name]


def test_nothing_at_a_url_is_named(url):
    with pytest.raises(BadCheckpoint, match=f"no checkpoint at {url}/step-000009") as caught:
        loaded(f"{url}/step-000009")
    assert "the mirror of a run" in caught.value.expected


def test_a_damaged_checkpoint_at_a_url_is_named(tmp_path, url):
    weights = train(tmp_path, 1, mirror=url)
    train(tmp_path, 2, mirror=url, resume="auto")
    Storage(url).write("checkpoints/step-000012-2-2/state.pt", b"")
    with pytest.warns(BrokenCheckpoint, match="step-000012-2-2 is invalid: state.pt has 0 bytes"):
        assert same(loaded(url), weights)
    with pytest.raises(BadCheckpoint, match=r"state\.pt has 0 bytes"):
        loaded(f"{url}/checkpoints/step-000012-2-2")


def test_a_storage_that_cannot_be_read_is_named(monkeypatch):
    monkeypatch.setattr(Storage, "files", lambda self, folder: (_ for _ in ()).throw(TimeoutError("no answer")))
    with pytest.raises(StorageUnavailable, match="memory://run cannot be read: TimeoutError: no answer"):
        loaded("memory://run")


def test_a_bucket_without_a_run_is_named():
    with pytest.raises(BadCheckpoint, match="no checkpoint at memory://empty-bucket"):
        loaded("memory://empty-bucket")


# --- settings ---


def test_an_experiment_does_not_claim_the_mirror(tmp_path, url, monkeypatch):
    weights = train(tmp_path / "a", 1, mirror=url)
    before = Storage(url).files("")
    monkeypatch.setenv("TRUESTEP_MIRRORING", "0")
    assert same(train(tmp_path / "b", 1, mirror=url), weights), "a new run, which the mirror would refuse"
    assert Storage(url).files("") == before
    assert _SILENT["TRUESTEP_MIRRORING"] == "0"


@pytest.mark.parametrize("mirror", ["backup/run", 3, ""])
def test_a_mirror_is_a_url(mirror):
    with pytest.raises(BadSettings, match="mirror must be a URL or None, got") as caught:
        Run(out="a", mirror=mirror)
    assert 'write "file:///' in caught.value.remedy


def test_a_mirror_needs_a_folder(url):
    with pytest.raises(BadSettings, match="mirror needs a folder"):
        Run(mirror=url)


@pytest.mark.program
def test_two_ranks_have_one_mirror(tmp_path):
    from several_ranks import warm_ranks

    code, _, err = warm_ranks([str(PROGRAM), "a", f"file://{tmp_path}/mirror"], tmp_path)
    assert code == 0, err
    code, _, err = warm_ranks([str(PROGRAM), "b", f"file://{tmp_path}/mirror", "4"], tmp_path)
    assert code == 0, err
    assert "goes on from step-000002" in err
    names = {path.name for path in (tmp_path / "mirror" / "checkpoints").iterdir()}
    assert names == {"step-000002-1-2", "step-000003-2-3", "step-000004-2-4"}
    assert os.path.exists(tmp_path / "mirror" / "checkpoints" / "step-000004-2-4" / "rng-rank1.pt")
