"""Two hosts in network namespaces: the same weights as one process, lost hosts, restarts, slow and cut networks."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import hosts as hosts_of_tests
import pytest
from hosts import PREFIX, Hosts, ip, reason_without, two_hosts
from several_ranks import warm_ranks

pytestmark = pytest.mark.skipif(bool(reason_without()), reason=reason_without())
PROGRAMS = Path(__file__).parent / "programs"
ON_ONE_HOST = Path(__file__).parents[1] / "distributed" / "programs"
SOON = "last_call_timeout=2,keep_alive_interval=1,join_timeout=60"
"""Times of a rendezvous, which are made for large clusters."""
NEW_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    (tmp_path / "network").mkdir()
    with two_hosts(tmp_path / "network") as made:
        yield made


def wait_for(happened: Callable[[], object], limit_s: float = 150) -> None:
    until = time.monotonic() + limit_s
    while not happened():
        assert time.monotonic() < until, f"it did not happen within {limit_s} s"
        time.sleep(0.05)


def numbers(out: str) -> list[float]:
    return [float(number) for number in out.split()]


def alone(program: str, folder: Path, *arguments: str) -> str:
    """Return the output of a program in one process."""
    folder.mkdir()
    code, out, err = warm_ranks([str(ON_ONE_HOST / program), *arguments], folder, ranks=1)
    assert code == 0, err
    return out


def resume(folder: Path, strategy: str) -> list[str]:
    return [str(ON_ONE_HOST / "toolkit_resume.py"), str(folder / "run"), strategy]


# --- the hosts themselves ---

KILLED = """
import os, signal, sys
from pathlib import Path
from hosts import two_hosts
with two_hosts(Path(sys.argv[1])) as made:
    made.slow(0.001)
    for host in made:
        host.start(["sleep", "600"], Path(sys.argv[1]))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.cold
def test_hosts_of_a_test_that_was_killed_are_removed_by_the_next(tmp_path: Path) -> None:
    (tmp_path / "killed").mkdir()
    support = {"PYTHONPATH": str(Path(hosts_of_tests.__file__).parent)}
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "killed")], env={**os.environ, **support})
    assert process.wait(60) == -signal.SIGKILL
    left = [line for line in ip("netns", "list").splitlines() if line.startswith(f"{PREFIX}-{process.pid}-")]
    assert len(left) == 3
    (tmp_path / "next").mkdir()
    with two_hosts(tmp_path / "next"):
        spaces = ip("netns", "list")
        assert f"{PREFIX}-{process.pid}-" not in spaces
        assert spaces.count(f"{PREFIX}-{os.getpid()}-") == 3
    assert f"{PREFIX}-{os.getpid()}-" not in ip("netns", "list")


def test_hosts_see_each_other_and_have_their_own_names_and_processes(hosts: Hosts, tmp_path: Path) -> None:
    program = (
        "import os, socket, sys; print(socket.gethostname(), os.getpid(), socket.gethostbyname(sys.argv[1])); "
        "server = socket.create_server(('', 5000)) if len(sys.argv) == 3 else None; "
        "open('listens', 'w').close() if server else None; "
        "print((server.accept()[0] if server else socket.create_connection((sys.argv[1], 5000), 20)) is not None)"
    )
    listening = hosts[0].start([sys.executable, "-c", program, "host-b", "listen"], tmp_path)
    wait_for((tmp_path / "listens").exists)
    calling = hosts[1].start([sys.executable, "-c", program, "host-a"], tmp_path)
    assert (listening.wait(30), calling.wait(30)) == (0, 0), listening.err + calling.err
    assert listening.out == f"host-a 1 {hosts[1].address}\nTrue\n"
    assert calling.out == f"host-b 1 {hosts[0].address}\nTrue\n"


# --- the same results ---


@pytest.mark.program
def test_two_hosts_train_the_weights_of_one_process(hosts: Hosts, tmp_path: Path) -> None:
    first, second = hosts.torchrun(resume(tmp_path, "ddp"), tmp_path)
    assert (first.wait(), second.wait()) == (0, 0), first.err + second.err
    expected = alone("toolkit_resume.py", tmp_path / "alone", "run", "ddp")
    assert numbers(first.out) == pytest.approx(numbers(expected), abs=1e-5)
    assert second.out == ""
    saved = tmp_path / "run" / "checkpoints" / "last"
    assert {path.name for path in saved.glob("rng-*")} == {"rng-rank0.pt", "rng-rank1.pt"}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_all_loops_train_the_weights_of_one_process(hosts: Hosts, tmp_path: Path, strategy: str) -> None:
    first, second = hosts.torchrun([str(ON_ONE_HOST / "toolkit_loops.py"), strategy], tmp_path)
    assert (first.wait(240), second.wait()) == (0, 0), first.err + second.err
    expected = json.loads(alone("toolkit_loops.py", tmp_path / "alone", strategy))
    found = json.loads(first.out)
    assert len(found) > 10
    assert found.keys() == expected.keys()
    for loop, own in found.items():
        for name in own.keys() - {"refused", "lr", "samples"}:
            assert own[name] == pytest.approx(expected[loop][name], abs=1e-5), (loop, name)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_a_slow_network_changes_no_result(hosts: Hosts, tmp_path: Path, strategy: str) -> None:
    outs = []
    for delay_s in (0.0, 0.02):
        (tmp_path / str(delay_s)).mkdir()
        if delay_s:
            hosts.slow(delay_s)
        first, second = hosts.torchrun(resume(tmp_path / str(delay_s), strategy), tmp_path)
        assert (first.wait(), second.wait()) == (0, 0), first.err + second.err
        outs.append(first.out)
    assert outs[0] == outs[1]


@pytest.mark.slow
def test_a_cut_that_ends_before_the_timeout_loses_nothing(hosts: Hosts, tmp_path: Path) -> None:
    expected = alone("toolkit_resume.py", tmp_path / "alone", "run", "ddp")
    first, second = hosts.torchrun([str(PROGRAMS / "lost_once.py"), *resume(tmp_path, "ddp")[1:]], tmp_path)
    wait_for(lambda: all((tmp_path / f"waits-{rank}-2").exists() for rank in (0, 1)))
    hosts[1].link("down")
    (tmp_path / "go-on").touch()
    time.sleep(4)
    assert not first.ended
    assert first.out == ""
    hosts[1].link("up")
    assert (first.wait(), second.wait()) == (0, 0), first.err + second.err
    assert numbers(first.out) == pytest.approx(numbers(expected), abs=1e-5)


# --- a host that is lost ---

SILENT = "did not answer: killed, stopped, or on a host that is out of reach; this rank waited at"


def losing(
    hosts: Hosts,
    folder: Path,
    strategy: str,
    timeout_s: float,
    lose: Callable[[], None],
    ranks: int = 1,
    **variables: str,
) -> list[str]:
    """Return the errors of the programs on the two hosts, after one host was lost."""
    program = [str(PROGRAMS / "steps.py"), str(timeout_s), strategy]
    started = hosts.torchrun(program, folder, "--nproc-per-node", str(ranks), **variables)
    wait_for(lambda: all((folder / f"reached-{rank}").exists() for rank in range(2 * ranks)))
    lose()
    wait_for(lambda: any(one.err.count("errors.RankDoesNotAnswer") for one in started), timeout_s + 30)
    for one in started:
        wait_for(lambda one=one: one.ended or one.err.count("errors.RankDoesNotAnswer") == ranks, 30)
    return [one.err for one in started]


@pytest.mark.program
@pytest.mark.parametrize(
    ("lost", "strategy"),
    [(0, "ddp"), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((0, "fsdp"), (1, "ddp"), (1, "fsdp")))],
)
def test_a_host_that_is_killed_is_named_by_the_other(hosts: Hosts, tmp_path: Path, lost: int, strategy: str) -> None:
    errs = losing(hosts, tmp_path, strategy, 600, hosts[lost].kill)
    assert re.search(rf"errors.RankDoesNotAnswer: rank {lost} {SILENT} \S*steps.py:2[34]", errs[1 - lost]), errs


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 1])
def test_a_host_is_named_where_rank_0_holds_the_store(hosts: Hosts, tmp_path: Path, lost: int) -> None:
    errs = losing(hosts, tmp_path, "ddp", 600, hosts[lost].kill, **NEW_STORE)
    assert re.search(rf"errors.RankDoesNotAnswer: rank {lost} {SILENT} \S*steps.py:2[34]", errs[1 - lost]), errs


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 1])
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_a_host_off_the_network_is_named_after_the_timeout(
    hosts: Hosts, tmp_path: Path, lost: int, strategy: str
) -> None:
    errs = losing(hosts, tmp_path, strategy, 5, lambda: hosts[lost].link("down"))
    for rank, err in enumerate(errs):
        assert re.search(rf"errors.RankDoesNotAnswer: rank {1 - rank} {SILENT} \S*steps.py:2[34]", err), errs
    for host in hosts:
        wait_for(lambda host=host: not host.ranks())  # its torchrun can stay


@pytest.mark.slow
def test_ranks_of_the_own_host_are_not_named(hosts: Hosts, tmp_path: Path) -> None:
    errs = losing(hosts, tmp_path, "ddp", 5, lambda: hosts[1].link("down"), ranks=2)
    assert set(re.findall(rf"(ranks? [0-9, ]+) {SILENT}", errs[0])) == {"ranks 2, 3"}, errs
    assert set(re.findall(rf"(ranks? [0-9, ]+) {SILENT}", errs[1])) == {"ranks 0, 1"}, errs


# --- restarts ---


def restarted(hosts: Hosts, folder: Path, strategy: str, lose: Callable[[], None], nodes: str, **variables: str) -> str:
    """Return the output of a run on two hosts that loses ranks in its second epoch."""
    program = [str(PROGRAMS / "lost_once.py"), *resume(folder, strategy)[1:]]
    options = ("--max-restarts", "3", "--rdzv-conf", SOON)
    first, _ = hosts.torchrun(program, folder, *options, nodes=nodes, **variables)
    wait_for(lambda: all((folder / f"waits-{rank}-2").exists() for rank in (0, 1)))
    lose()
    (folder / "go-on").touch()
    assert first.wait() == 0, first.err
    return first.out


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
@pytest.mark.parametrize(("how", "nodes"), [("fewer", "1:2"), ("back", "2"), ("ranks", "2")])
def test_a_run_goes_on_after_a_host_was_lost(hosts: Hosts, tmp_path: Path, strategy: str, how: str, nodes: str) -> None:
    def lose() -> None:
        if how == "ranks":
            hosts[1].kill_ranks()
        else:
            hosts[1].kill()
        if how == "back":
            hosts.torchrun_again(hosts[1])

    out = restarted(hosts, tmp_path, strategy, lose, nodes, **(NEW_STORE if how != "fewer" else {}))
    expected = alone("toolkit_resume.py", tmp_path / "alone", "run", strategy)
    assert numbers(out) == pytest.approx(numbers(expected), abs=1e-5)
    log = [json.loads(line)["step"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert log == [5, 10, 15]
    starts = (tmp_path / "run" / "starts.jsonl").read_text().splitlines()
    assert len(starts) == 1, "one restart"


@pytest.mark.slow
def test_a_restart_that_torch_cannot_make_names_the_remedy(hosts: Hosts, tmp_path: Path) -> None:
    program = [str(PROGRAMS / "lost_once.py"), *resume(tmp_path, "ddp")[1:]]
    options = ("--max-restarts", "1", "--rdzv-conf", SOON)
    started = hosts.torchrun(program, tmp_path, *options, RANK_0_IS_LATE="1")
    wait_for(lambda: all((tmp_path / f"waits-{rank}-2").exists() for rank in (0, 1)))
    hosts[1].kill_ranks()
    (tmp_path / "go-on").touch()
    assert started[1].wait() == 1
    assert "errors.SeveralProcesses: the ranks on several hosts do not reach each other" in started[1].err
    assert "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1" in started[1].err


# --- supervision ---


@pytest.mark.slow
@pytest.mark.parametrize("record", [False, True])
def test_one_report_covers_the_ranks_that_it_counts(hosts: Hosts, tmp_path: Path, record: bool) -> None:
    options = ["--format", "json", "--output", str(tmp_path / "report.json"), *(["--record", "rec"] if record else [])]
    program = str(ON_ONE_HOST / "ddp_missing_zero_grad.py")
    first, second = hosts.torchrun(["-m", "truestep", "run", *options, program], tmp_path)
    assert (first.wait(), second.wait()) == (0, 0), first.err + second.err
    report = json.loads((tmp_path / "report.json").read_text())
    (finding,) = report["findings"]
    assert report["ranks"] == 2
    assert "error[" not in second.err
    notes = " ".join(report["notes"])
    if record:
        assert (report["missing_ranks"], finding["rank"]) == ([], None)
        assert finding["seen"]["total"] == 2 * report["steps"]
        assert {path.name for path in (tmp_path / "rec").iterdir()} == {"rank-0.jsonl", "rank-1.jsonl"}
        assert "2 ranks were watched" in notes
    else:
        assert (report["missing_ranks"], finding["rank"]) == ([1], 0)
        assert finding["seen"]["total"] == report["steps"]
        assert "those of other hosts need --record DIR" in notes


# --- the interface ---


@pytest.mark.slow
@pytest.mark.parametrize("interface", ["eth0", ""])
def test_hosts_that_resolve_their_names_to_themselves_need_an_interface(tmp_path: Path, interface: str) -> None:
    (tmp_path / "network").mkdir()
    with two_hosts(tmp_path / "network", own_name="127.0.1.1") as hosts:
        variables = {"GLOO_SOCKET_IFNAME": interface} if interface else {}
        first, second = hosts.torchrun(resume(tmp_path, "ddp"), tmp_path, **variables)
        if interface:
            assert (first.wait(), second.wait()) == (0, 0), first.err + second.err
            assert numbers(first.out)[0] == 15
        else:
            wait_for(lambda: "GLOO_SOCKET_IFNAME" in first.err + second.err)
