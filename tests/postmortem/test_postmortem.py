"""Programs that die, as people write them: the diagnosis of each, its lines, and programs without a diagnosis."""

from __future__ import annotations

import re
import runpy
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from truestep.findings import PostMortem, Summary
from truestep.postmortem.evidence import crash
from truestep.report import render
from truestep.supervision import Session

pytest.importorskip("torch")

PROGRAMS = Path(__file__).with_name("programs")
DIED = sorted((PROGRAMS / "died").glob("*.py"))
LONG = {"everything_frozen"}
"""Part of `make programs`."""
SILENT = sorted((PROGRAMS / "silent").glob("*.py"))
_MARK = re.compile(r"# (died: [\w-]+|related)$")


def examined(path: Path, words: Callable[[str], str] | None = None) -> Summary:
    """Run a program as it would be run under supervision, and return the summary of its run.

    Args:
        path: the program.
        words: those of the error that ends it instead.
    """
    session = Session(script=str(path))
    session.start()
    how = "finished"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runpy.run_path(str(path), run_name="__main__")
    except Exception as error:
        how = "crashed"
        if words is not None:
            error.args = (words(error.args[0]), *error.args[1:])
        session.examine(error)
    except (SystemExit, KeyboardInterrupt):
        how = "exited"
    return session.stop(how)


@pytest.fixture(autouse=True)
def _slow_machines_have_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crash, "LIMIT_S", 60.0)


def marks(path: Path) -> dict[int, str]:
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    return {number: match[1] for number, line in lines if (match := _MARK.search(line))}


def told(died: PostMortem, path: Path) -> dict[int, str]:
    """Return the lines that a post-mortem speaks of, in the form of `marks`."""
    sites = [mark.site for mark in died.related if mark.site is not None and mark.site.path == str(path)]
    found = {site.line: "related" for site in sites}
    assert died.primary.site is not None
    return found | {died.primary.site.line: f"died: {died.slug}"}


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.program] * (path.stem in LONG)) for path in DIED],
    ids=lambda path: path.stem,
)
def test_a_death_is_explained(path: Path) -> None:
    is_explained(examined(path), path)


def is_explained(summary: Summary, path: Path) -> None:
    assert summary.internal_errors == ()
    assert summary.post_mortem is not None
    assert told(summary.post_mortem, path) == marks(path)
    text = " ".join(render(summary, "text", width=120).split())
    for said in re.findall(r"^# says: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
        assert said in text


PRODUCT = r"^(\w+: )?mat1 and mat2 shapes"
OUTPUT = r"which is output 0 of Sigmoid(Backward0)?,"
TARGET = r"^expected (target dtype to be Long or Byte, but got|scalar type Long but found) Float"
RNN = r"^RNN input dtype .*|^input must have the type .*"
WORDINGS = [
    ("convolutions_then_linear", PRODUCT, "mat1 and mat2 shapes"),
    ("convolutions_then_linear", PRODUCT, "addmm: mat1 and mat2 shapes"),
    ("weights_not_transposed", PRODUCT, "mat1 and mat2 shapes"),
    ("weights_not_transposed", PRODUCT, "mm: mat1 and mat2 shapes"),
    ("product_added_to_a_bias", PRODUCT, "addmm: mat1 and mat2 shapes"),
    ("relu_in_place_after_sigmoid", OUTPUT, "which is output 0 of SigmoidBackward0,"),
    ("relu_in_place_after_sigmoid", OUTPUT, "which is output 0 of Sigmoid,"),
    ("float_labels", TARGET, "expected scalar type Long but found Float"),
    ("float_labels", TARGET, "expected target dtype to be Long or Byte, but got Float"),
    ("sequence_of_doubles", RNN, "input must have the type torch.float32, got type torch.float64"),
    ("sequence_of_doubles", RNN, "RNN input dtype (torch.float64) does not match weight dtype (torch.float32)."),
]
"""A program, words of its error with any version of torch, and words with one of 2.8, 2.13 and 2.15."""


@pytest.mark.parametrize(("name", "any_version", "one_version"), WORDINGS)
def test_a_death_is_explained_in_the_words_of_every_version(name: str, any_version: str, one_version: str) -> None:
    def words(message: str) -> str:
        assert re.search(any_version, message), message
        return re.sub(any_version, one_version, message)

    path = PROGRAMS / "died" / f"{name}.py"
    is_explained(examined(path, words), path)


@pytest.mark.parametrize("path", SILENT, ids=lambda path: path.stem)
def test_nothing_is_said_where_nothing_is_certain(path: Path) -> None:
    summary = examined(path)
    assert summary.internal_errors == ()
    assert summary.post_mortem is None


ELSEWHERE = {
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB": "memory",
    "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (when checking "
    "argument for argument mat1 in method wrapper_CUDA_addmm)": "places",
    "Expected all tensors to be on the same device, but got mat1 is on cpu, different from other tensors on cuda:0 "
    "(when checking argument in method wrapper_CUDA_addmm)": "places",
    "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input should be a "
    "MKLDNN tensor and weight is a dense tensor": "places",
    "one of the variables needed for gradient computation has been modified by an inplace operation: "
    "[torch.cuda.FloatTensor [64, 1]], which is output 0 of AsStridedBackward0, is at version 2; expected version 1 "
    "instead. Hint: enable anomaly detection": "in_place",
    "expected scalar type Long but found Int": "places",
}
"""Messages of accelerators and of other versions of torch, which no test here can make."""


@pytest.mark.parametrize("text", ELSEWHERE)
def test_messages_of_accelerators_and_older_versions_are_known(text: str) -> None:
    from truestep.postmortem.families import FAMILIES

    family = next(family for family in FAMILIES if family.pattern.search(text))
    assert family.explain.__module__ == f"truestep.postmortem.{ELSEWHERE[text]}"
