"""One of several processes: refused once, by rank 0, before anything is written."""

import pytest
import torch

from truestep.errors import SeveralProcesses
from truestep.loop.process import strategy
from truestep.loop.run.run import Run


@pytest.fixture
def ranks(monkeypatch):
    def set_ranks(rank, size):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", size)
        monkeypatch.setattr(strategy, "_RANK_0_FIRST_S", 0.01)

    return set_ranks


def test_rank_0_says_what_several_processes_would_do(ranks, tmp_path):
    ranks("0", "4")
    with pytest.raises(SeveralProcesses, match=r"each of 4 processes.*\n.*one process.*\n.*python instead of torchrun"):
        Run(out=tmp_path / "run", device="cpu", watch=False)
    assert not (tmp_path / "run").exists()


def test_other_ranks_end_without_a_word(ranks, capsys):
    ranks("3", "4")
    with pytest.raises(SystemExit) as ended:
        Run(device="cpu", watch=False)
    assert ended.value.code == 1
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("rank", "size"), [("0", "1"), ("", "many")])
def test_one_process_of_a_launcher_is_one_process(ranks, rank, size):
    ranks(rank, size)
    with Run(device="cpu", watch=False, max_steps=1) as run:
        assert list(run.steps()) == [0]


def test_a_process_group_that_is_made_after_the_run_is_seen_at_its_first_loop(tmp_path, monkeypatch):
    run = Run(device="cpu", watch=False, max_steps=1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
    try:
        with Run(device="cpu", watch=False):
            pass  # a group of one is one process
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
        with pytest.raises(SeveralProcesses, match="each of 2 processes"):
            next(run.steps())
    finally:
        torch.distributed.destroy_process_group()
