"""Finished checkpoints are copied to a remote storage in the background; the disk stays the truth."""

import threading
import uuid

import fsspec
import pytest
import torch
from mirrors import LOG, mirrored, names, names_on_disk, objects, opened, put, save
from object_store import ObjectFileSystem, served

from truestep.errors import (
    BadCheckpoint,
    BadSettings,
    BrokenCheckpoint,
    FolderHoldsRun,
    MirrorBehind,
    MirrorTaken,
    PackageMissing,
    StorageUnavailable,
)
from truestep.loop.checkpoint.content import Content, Evaluated
from truestep.loop.checkpoint.listing import find
from truestep.loop.checkpoint.remote.claim import Claim
from truestep.loop.checkpoint.remote.storage import Storage


@pytest.fixture(scope="module")
def server():
    with served() as url:
        yield url


@pytest.fixture(params=["memory", "file", "objects"])
def url(request, server, tmp_path_factory):
    """An empty place in a storage."""
    name = uuid.uuid4().hex
    return {
        "memory": f"memory://{name}/run",
        "file": f"file://{tmp_path_factory.mktemp('mirror')}",
        "objects": f"{server}/bucket/{name}",
    }[request.param]


@pytest.fixture
def store(server):
    """An empty place in the object store."""
    return f"{server}/bucket/{uuid.uuid4().hex}"


@pytest.fixture
def requests(monkeypatch):
    """Function that sets a function to call before each request to the object store."""

    def before(call):
        monkeypatch.setattr(ObjectFileSystem, "before", staticmethod(call))

    return before


# --- contents of the mirror ---


def test_the_copies_are_those_on_the_disk_byte_for_byte(tmp_path, url):
    with mirrored(tmp_path, url) as checkpoints:
        for step in (1, 2):
            path = save(checkpoints, step)
    held = objects(url)
    assert {name.split("/")[1] for name in held if "/" in name} == {"step-000001-1-1", "step-000002-1-2"}
    copied = {name.split("/")[2]: content for name, content in held.items() if "/step-000002-" in name}
    assert copied.pop(LOG) == b"1\n2\n"
    assert copied == {file.name: file.read_bytes() for file in path.iterdir()}


def test_the_last_and_the_best_are_kept_as_on_the_disk(tmp_path, url):
    with mirrored(tmp_path, url, keep_last=2) as checkpoints:
        for step, metric in enumerate([3.0, 1.0, 2.0, 5.0, None, 4.0], start=1):
            save(checkpoints, step, metric=metric)
            checkpoints.copier.wait()
    assert names(url) == ["step-000006-1-6", "step-000005-1-5", "step-000002-1-2"]
    assert names(url) == names_on_disk(checkpoints)


def test_of_one_step_only_the_newest_save_is_kept(tmp_path, url):
    with mirrored(tmp_path, url) as checkpoints:
        for step in (1, 2, 2):
            save(checkpoints, step)
            checkpoints.copier.wait()
    assert names(url) == ["step-000002-1-3", "step-000001-1-1"] == names_on_disk(checkpoints)


def test_evaluated_weights_are_kept_while_they_are_the_best(tmp_path, url):
    content = Content.of({"model": {"weight": torch.zeros(3)}}, {}, (), copies=True)
    with mirrored(tmp_path, url, keep_last=1) as checkpoints:
        save(checkpoints, 2, evaluated=Evaluated(1, 0, 0.5, "min", content, None))
        checkpoints.copier.wait()
        assert set(names(url)) == {"step-000002-1-1", "evaluated-000001-1-1"}
        save(checkpoints, 3, metric=0.4)
    assert names(url) == ["step-000003-1-2"] == names_on_disk(checkpoints)


def test_objects_of_others_are_left_alone(tmp_path, url):
    theirs = {"notes.txt": b"a", "checkpoints/best/a": b"b", "checkpoints/step-12/a": b"c"}
    for name, content in theirs.items():
        put(url, name, content)
    with mirrored(tmp_path, url, keep_last=1) as checkpoints:
        for step in (1, 2):
            save(checkpoints, step)
    assert theirs.items() <= objects(url).items()


def test_remains_of_a_killed_upload_are_removed_at_the_next_start(tmp_path, url):
    with mirrored(tmp_path, url) as checkpoints:
        save(checkpoints, 1)
    put(url, "checkpoints/step-000002-1-2/model.safetensors", b"half")
    put(url, "checkpoints/step-000003-1-3/manifest.json", b'{"format": "truest')
    with mirrored(tmp_path, url, "auto"):
        pass
    assert {name.split("/")[1] for name in objects(url) if "/" in name} == {"step-000001-1-1"}


# --- a slow storage ---


def test_training_does_not_wait_for_a_slow_storage(tmp_path, store, requests):
    opens, begun, events = threading.Event(), threading.Event(), []
    checkpoints, mirror = opened(tmp_path, store, keep_last=2)

    def slow(method, key):
        if method == "PUT" and "manifest" in key:
            begun.set()
            assert opens.wait(60)
            events.append(key.split("/")[-2])

    requests(slow)
    first = save(checkpoints, 1)
    assert begun.wait(60)
    for step in (2, 3, 4):
        save(checkpoints, step)
        events.append(step)
    assert first.exists(), "it is being uploaded"
    opens.set()
    mirror.close()
    assert events == [2, 3, 4, "step-000001-1-1", "step-000004-1-4", "step-000003-1-3"]
    assert names(store) == ["step-000004-1-4", "step-000003-1-3"] == names_on_disk(checkpoints)


def test_a_checkpoint_that_is_replaced_while_it_is_uploaded_is_not_finished_there(tmp_path, store, requests):
    opens, begun, finished = threading.Event(), threading.Event(), []
    checkpoints, mirror = opened(tmp_path, store)

    def slow(method, key):
        if method == "PUT" and "model.safetensors" in key:
            begun.set()
            assert opens.wait(60)
        if method == "PUT" and "manifest.json" in key:
            finished.append(key.split("/")[-2])

    requests(slow)
    save(checkpoints, 1, "old")
    assert begun.wait(60)
    save(checkpoints, 1, "new")
    opens.set()
    mirror.close()
    assert finished == ["step-000001-1-2"], "the files of the other one are of two saves"
    assert names(store) == ["step-000001-1-2"]
    with mirrored(tmp_path / "elsewhere", store, "auto") as again:
        assert again.newest().state() == {"is": "new"}


# --- a storage that fails ---


@pytest.mark.program
def test_a_request_that_fails_at_any_position_ends_no_training_and_is_made_again(tmp_path, store, requests):
    checkpoints, mirror = opened(tmp_path, store, keep_last=2)
    for step in (1, 2):
        save(checkpoints, step)
        mirror.wait()
    failed = 0
    for position in range(100):
        left = position

        def failing(method, key):
            nonlocal left
            left -= 1
            if left == -1:
                raise OSError(f"the network is down at {method}")

        requests(failing)
        step = 3 + 2 * position
        save(checkpoints, step)
        mirror.wait()
        requests(lambda method, key: None)
        if left >= 0:
            break
        failed += 1
        assert step - 1 in [int(name.split("-")[1]) for name in names(store)]
        with pytest.warns(MirrorBehind, match="lacks .*: OSError: the network is down at .*; the next save tries"):
            save(checkpoints, step + 1)
        mirror.wait()
        assert names(store) == names_on_disk(checkpoints)
    assert failed > 15
    mirror.close()


def test_a_storage_that_stays_away_is_reported_at_the_end(tmp_path, store, requests):
    checkpoints, mirror = opened(tmp_path, store)
    save(checkpoints, 1)
    mirror.wait()

    def away(method, key):
        raise ConnectionRefusedError("no route")

    requests(away)
    save(checkpoints, 2)
    mirror.wait()
    with pytest.warns(MirrorBehind, match="lacks step-000002: ConnectionRefusedError: no route") as caught:
        mirror.close()
    assert len(caught) == 1
    assert "resume this run to try again" in str(caught[0].message)
    assert checkpoints.newest().step == 2
    requests(lambda method, key: None)
    with mirrored(tmp_path, store, "auto") as checkpoints:
        pass
    assert names(store) == ["step-000002-1-2", "step-000001-1-1"]


def test_a_failure_that_ended_before_the_end_is_no_warning(tmp_path, store, requests):
    checkpoints, mirror = opened(tmp_path, store)
    requests(lambda method, key: (_ for _ in ()).throw(OSError("away")))
    save(checkpoints, 1)
    mirror.wait()
    requests(lambda method, key: None)
    mirror.close()
    assert names(store) == ["step-000001-1-1"]


def test_a_storage_that_does_not_list_an_upload_is_reported(tmp_path, url, monkeypatch):
    checkpoints, mirror = opened(tmp_path, url)
    monkeypatch.setattr(Storage, "files", lambda self, folder: {})
    save(checkpoints, 1)
    mirror.wait()
    with pytest.warns(MirrorBehind, match="step-000001-1-1 was uploaded, and the storage does not list it"):
        mirror.close()


# --- resuming from the mirror ---


def test_a_run_goes_on_from_the_mirror_alone(tmp_path, url):
    with mirrored(tmp_path / "a", url, keep_last=2) as checkpoints:
        for step, metric in ((1, 0.1), (2, 0.5), (3, 0.4)):
            save(checkpoints, step, f"step {step}", metric=metric)
    with mirrored(tmp_path / "b", url, "auto", keep_last=2) as again:
        assert (again.newest().step, again.best().step) == (3, 1)
        assert again.newest().state() == {"is": "step 3"}
        assert (tmp_path / "b" / LOG).read_text() == "1\n2\n3\n"
        assert find(tmp_path / "b" / "checkpoints" / "best").step == 1
        assert find(tmp_path / "b" / "checkpoints" / "last").step == 3
        save(again, 4)
    assert again.newest().manifest.order == (2, 4)
    assert names(url) == ["step-000004-2-4", "step-000003-1-3", "step-000001-1-1"]


def test_the_newer_of_disk_and_mirror_is_taken(tmp_path, url):
    with mirrored(tmp_path / "a", url) as checkpoints:
        save(checkpoints, 1, "a")
    with mirrored(tmp_path / "b", url, "auto") as checkpoints:
        save(checkpoints, 2, "b")
    with mirrored(tmp_path / "a", url, "auto") as checkpoints:
        assert checkpoints.newest().state() == {"is": "b"}
        checkpoints.copier.wait()
        checkpoints.copier = None  # storage that is away for the rest of this process
        save(checkpoints, 3, "a again")
    with mirrored(tmp_path / "a", url, "auto") as checkpoints:
        assert checkpoints.newest().state() == {"is": "a again"}
    assert names(url)[0] == "step-000003-3-3"


@pytest.mark.parametrize("file", ["model.safetensors", "state.pt"])
@pytest.mark.parametrize("damage", ["flipped", "truncated", "missing"])
def test_a_damaged_copy_is_seen_and_the_one_before_it_is_taken(tmp_path, url, file, damage):
    with mirrored(tmp_path / "a", url) as checkpoints:
        for step in (1, 2):
            save(checkpoints, step)
    name = f"checkpoints/step-000002-1-2/{file}"
    content = Storage(url).read(name)
    if damage == "missing":
        Storage(url).remove(name)
    else:
        put(url, name, content[:-1] if damage == "truncated" else content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.warns(BrokenCheckpoint, match=f"step-000002-1-2 is invalid: {file}"):
        checkpoints, mirror = opened(tmp_path / "b", url, "auto")
    assert checkpoints.newest().step == 1
    mirror.close()
    Storage(url).remove("checkpoints/step-000001-1-1/state.pt")
    with pytest.raises(BadCheckpoint, match=r"all 2 checkpoints in .* are invalid"):
        opened(tmp_path / "c", url, "auto")
    assert not list((tmp_path / "c" / "checkpoints").iterdir())


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_manifest_that_was_not_written_to_its_end_is_none(tmp_path, url, share):
    with mirrored(tmp_path / "a", url) as checkpoints:
        for step in (1, 2):
            save(checkpoints, step)
    name = "checkpoints/step-000002-1-2/manifest.json"
    content = Storage(url).read(name)
    put(url, name, content[: int(len(content) * share)])
    with mirrored(tmp_path / "b", url, "auto") as checkpoints:
        assert checkpoints.newest().step == 1
    assert names(url) == ["step-000001-1-1"]


# --- claims ---


def test_a_new_run_is_refused_and_claims_nothing(tmp_path, url):
    with mirrored(tmp_path / "a", url) as checkpoints:
        save(checkpoints, 1)
        checkpoints.copier.wait()
        before = objects(url)
        with pytest.raises(FolderHoldsRun, match="already holds a run: step-000001") as caught:
            opened(tmp_path / "b", url)
        assert 'resume="auto"' in caught.value.remedy
    assert objects(url) == before


def test_a_mirror_of_another_run_is_refused(tmp_path, url):
    for name in ("a", "b"):
        with mirrored(tmp_path / name, f"{url}/{name}") as checkpoints:
            save(checkpoints, 1)
    with mirrored(tmp_path / "c", f"{url}/c") as checkpoints:
        save(checkpoints, 1)
    for start in ("auto", "/runs/old"):
        with pytest.raises(FolderHoldsRun, match="already holds another run: step-000001"):
            opened(tmp_path / "a", f"{url}/b", start)
    with pytest.raises(FolderHoldsRun, match="already holds another run"):
        opened(tmp_path / "new", f"{url}/b", "/runs/old")


def test_a_run_may_change_its_mirror(tmp_path, url):
    with mirrored(tmp_path, f"{url}/a") as checkpoints:
        save(checkpoints, 1)
    with mirrored(tmp_path, f"{url}/b", "auto") as checkpoints:
        save(checkpoints, 2)
    assert names(f"{url}/b") == ["step-000002-2-2", "step-000001-1-1"]


def test_the_latest_claim_wins_and_the_other_run_goes_on(tmp_path, url):
    first, mirror = opened(tmp_path / "a", url)
    save(first, 1, "a")
    mirror.wait()
    second, successor = opened(tmp_path / "b", url, "auto")
    save(first, 2, "a")
    mirror.wait()
    with pytest.warns(MirrorTaken, match="was claimed by process .* on .*: this run copies no more") as caught:
        save(first, 3, "a")
    assert len(caught) == 1
    save(second, 2, "b")
    successor.close()
    save(first, 4, "a")
    mirror.close()
    assert first.newest().step == 4
    assert names(url) == ["step-000002-2-2", "step-000001-1-1"]
    with mirrored(tmp_path / "c", url, "auto") as third:
        assert third.newest().state() == {"is": "b"}


def test_a_claim_during_an_upload_leaves_it_unfinished(tmp_path, store, requests):
    first, mirror = opened(tmp_path / "a", store)
    save(first, 1, "a")
    mirror.wait()
    successors = []

    def claimed(method, key):
        if method == "PUT" and "000002" in key and not successors:
            successors.append(Claim(Storage(store), 2, mirror._claim.own.run))

    requests(claimed)
    save(first, 2, "a")
    mirror.wait()
    requests(lambda method, key: None)
    assert names(store) == ["step-000001-1-1"]
    with pytest.warns(MirrorTaken):
        mirror.close()


def test_a_late_manifest_of_the_loser_is_older_than_all_of_the_winner(tmp_path, url):
    first, mirror = opened(tmp_path / "a", url)
    save(first, 1, "a")
    mirror.wait()
    second, successor = opened(tmp_path / "b", url, "auto")
    save(second, 2, "b")
    successor.wait()
    save(first, 2, "a")
    mirror.wait()
    with pytest.warns(MirrorTaken):
        save(first, 3, "a")
    save(first, 4, "a")
    mirror._copies.upload(first.newest().path, [], before_last=lambda: None)  # the check came before the claim
    assert names(url) == ["step-000002-2-2", "step-000004-1-4", "step-000001-1-1"]
    with mirrored(tmp_path / "c", url, "auto") as third:
        assert third.newest().state() == {"is": "b"}
    mirror.close()
    successor.close()


def test_a_late_manifest_of_another_run_is_ignored_and_removed(tmp_path, url):
    first, mirror = opened(tmp_path / "a", url)
    second, successor = opened(tmp_path / "b", url)  # both found the mirror empty
    save(first, 9, "a")
    mirror.wait()
    mirror._copies.upload(first.newest().path, [], before_last=lambda: None)
    save(second, 1, "b")
    successor.close()
    assert names(url) == ["step-000001-2-1"]
    with pytest.warns(MirrorTaken):
        mirror.close()


@pytest.mark.parametrize("content", [b"", b'{"claim": 1', b"[]", None])
def test_a_claim_that_is_torn_or_missing_is_made_again(tmp_path, url, content):
    checkpoints, mirror = opened(tmp_path / "a", url)
    save(checkpoints, 1)
    mirror.wait()
    Storage(url).remove("owner.json") if content is None else put(url, "owner.json", content)
    save(checkpoints, 2)
    mirror.close()
    assert names(url) == ["step-000002-1-2", "step-000001-1-1"]
    Storage(url).remove("owner.json") if content is None else put(url, "owner.json", content)
    with mirrored(tmp_path / "b", url, "auto") as again:
        assert again.newest().step == 2
        save(again, 3)
    assert names(url)[0] == "step-000003-2-3"


# --- places that cannot be a mirror ---


def test_a_missing_bucket_is_an_error_at_the_start(tmp_path, server):
    with pytest.raises(StorageUnavailable, match="cannot be used: FileNotFoundError") as caught:
        opened(tmp_path, f"{server}/buckt/run")
    assert "bucket exists" in caught.value.remedy


def test_a_storage_without_writing_is_an_error_at_the_start(tmp_path, monkeypatch):
    from fsspec.implementations.memory import MemoryFileSystem

    def forbidden(self, *arguments, **options):
        raise PermissionError("AccessDenied")

    monkeypatch.setattr(MemoryFileSystem, "put_file", forbidden)
    with pytest.raises(StorageUnavailable, match="PermissionError: AccessDenied"):
        opened(tmp_path, f"memory://{uuid.uuid4().hex}")


def test_an_unknown_kind_of_storage_is_named(tmp_path):
    with pytest.raises(BadSettings, match="Protocol not known: s4"):
        opened(tmp_path, "s4://bucket/run")


def test_the_package_of_a_storage_is_named(tmp_path, monkeypatch):
    def absent(protocol):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "get_filesystem_class", absent)
    with pytest.raises(PackageMissing, match="Install s3fs to access S3"):
        opened(tmp_path, "s3://bucket/run")


def test_without_fsspec_its_command_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fsspec.core", None)
    with pytest.raises(PackageMissing, match="needs fsspec") as caught:
        opened(tmp_path, "memory://run")
    assert "pip install 'truestep[remote]'" in caught.value.remedy


@pytest.mark.parametrize("place", ["", "/checkpoints"])
def test_the_folder_itself_is_no_mirror(tmp_path, place):
    with pytest.raises(BadSettings, match="mirror is in the folder of the run"):
        opened(tmp_path, f"file://{tmp_path}{place}")
