"""The programs of the lab: each runs, is quiet under supervision, and prints its figure with and without."""

import re
from pathlib import Path

import pytest
from programs import DATA, REPOSITORY, supervise

LAB = REPOSITORY / "examples" / "lab"
SHORT = {
    "class_weights": ["--epochs", "10"],
    "label_smoothing": ["--epochs", "2"],
    "distillation": ["--epochs", "10"],
    "gan": ["--epochs", "15"],
    "fashion": ["--images", "640", "--epochs", "1"],
    "names": ["--names", "2000", "--epochs", "1"],
    "packed": ["--sentences", "640", "--epochs", "1"],
    "truncated": ["--characters", "20000", "--epochs", "1"],
}
NEEDS = {
    "fashion": "fashion-mnist",
    "names": "names/by_language",
    "packed": "rt-polarity",
    "truncated": "tinyshakespeare",
}
FIGURE = {
    "class_weights": r"without weights: +(\S+)% of the eights.*?with weights: +(\S+)% of the eights",
    "label_smoothing": r"without smoothing: .*?accuracy (\S+)%.*?with smoothing 0.1: .*?accuracy (\S+)%",
    "distillation": r"student alone: +(\S+)% of the threes.*?student taught: +(\S+)% of the threes",
    "gan": r"before training: +(\S+)% of the drawings.*?after training: +(\S+)% of the drawings",
    "fashion": r"perceptron .*?: (\S+)%, moved images.*?convolutions .*?: (\S+)%, moved",
    "names": r"order of the alphabet: (\S+)% .*?order of the name: +(\S+)%",
    "packed": r"padding read: .*?, (\S+) from one by one.*?packed: .*?, (\S+) from one by one",
    "truncated": r"state begun at zero: +(\S+) bits.*?state carried: +(\S+) bits",
}
"""The figure without the technique and with it, as printed."""
QUICK = {"label_smoothing"}
"""For `make test`; the others are for `make programs`."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.program] * (name not in QUICK)) for name in SHORT]
)
def test_program_is_quiet_under_supervision_and_prints_its_figure(name: str) -> None:
    if name in NEEDS and not (DATA / NEEDS[name]).is_dir():
        pytest.skip(f"{DATA} has no {NEEDS[name]}")
    run = supervise(LAB / f"{name}.py", *SHORT[name])
    assert run.how == "finished", str(run)
    assert run.findings == [], str(run)
    assert run.errors == [], str(run)
    assert run.steps >= 10, str(run)
    figure = re.search(FIGURE[name], run.output, re.DOTALL)
    assert figure, str(run)
    without, with_it = map(float, figure.groups())
    if name == "packed":
        assert with_it < 1e-5 < without


def test_every_program_is_tried() -> None:
    assert {path.stem for path in LAB.glob("*.py")} == set(SHORT) == set(FIGURE)


@pytest.mark.program
def test_the_drawings_of_the_gan_become_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "gan.png"
    run = supervise(LAB / "gan.py", "--epochs", "1", "--picture", str(picture))
    assert run.how == "finished", str(run)
    assert picture.read_bytes().startswith(b"\x89PNG")
