"""A file that ends early, or in which a bit has flipped, is never taken for a checkpoint."""

import random

import pytest
import torch

from truestep.errors import BadCheckpoint, BrokenCheckpoint
from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.loop.checkpoint.checkpoints import Checkpoints
from truestep.loop.checkpoint.listing import find

FILES = ["model.safetensors", "models.pt", "state.pt", "rng-rank0.pt", "manifest.json"]


@pytest.fixture
def run(tmp_path):
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    net = torch.nn.Linear(20, 20)
    for step in (1, 2):
        checkpoints.save(
            step,
            epoch=0,
            models={"model": net.state_dict()},
            state={"moments": torch.randn(100), "user": {"seen": step}},
            rng={"torch": torch.get_rng_state()},
            metric=1.0 / step,
        )
    return tmp_path


def assert_taken_for_broken(run, name):
    with pytest.warns(BrokenCheckpoint, match="step-000002 is invalid") as caught:
        assert find(run).step == 1
    assert any(name in str(warning.message) for warning in caught)
    with pytest.warns(BrokenCheckpoint, match="step-000002 is invalid"):
        assert Checkpoints(run / "checkpoints").newest().step == 1
    with pytest.raises(BadCheckpoint, match=name):
        find(run / "checkpoints" / "step-000002")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 1.0])
def test_a_truncated_file_is_named(run, name, share):
    path = run / "checkpoints" / "step-000002" / name
    content = path.read_bytes()
    path.write_bytes(content[: min(int(len(content) * share), len(content) - 2)])
    assert_taken_for_broken(run, name)


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_seen_wherever_it_is(run, name):
    path = run / "checkpoints" / "step-000002" / name
    content = path.read_bytes()
    chance = random.Random(name)
    for place in [0, len(content) - 2, *(chance.randrange(len(content)) for _ in range(40))]:
        flipped = bytearray(content)
        flipped[place] ^= 1 << chance.randrange(8)
        path.write_bytes(flipped)
        with pytest.raises(BadCheckpoint, match=name):
            Checkpoint(path.parent).verify()
    assert_taken_for_broken(run, name)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(run, name):
    (run / "checkpoints" / "step-000002" / name).unlink()
    assert_taken_for_broken(run, name)


def test_a_file_that_is_a_folder_is_named(run):
    path = run / "checkpoints" / "step-000002" / "state.pt"
    path.unlink()
    path.mkdir()
    assert_taken_for_broken(run, "state.pt")


def test_where_every_checkpoint_is_damaged_each_is_named_and_none_is_taken(run):
    for step in (1, 2):
        (run / "checkpoints" / f"step-00000{step}" / "state.pt").write_bytes(b"")
    for ask in (Checkpoints(run / "checkpoints").newest, lambda: find(run)):
        with pytest.raises(BadCheckpoint, match="all 2 checkpoints") as caught:
            ask()
        for step in (1, 2):
            assert f"step-00000{step} is invalid: state.pt has 0 bytes" in str(caught.value)
