"""Results and times of the unchanged examples, next to simple methods and published figures.

Every example runs in a separate process with its default settings. The time of the process counts all its threads.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.utils.data import DataLoader

from truestep import data

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("TRUESTEP_DATA", ROOT / "../shared/data"))


def digits_svc() -> float:
    """Return the accuracy of scikit-learn's example, a support vector classifier, on the example's own split."""
    from sklearn.datasets import load_digits
    from sklearn.svm import SVC

    pixels, labels = load_digits(return_X_y=True)
    train, test = data.tensors(torch.as_tensor(pixels), torch.as_tensor(labels)).split(0.75, seed=0)
    (x, y), (held_x, held_y) = train.tensors, test.tensors
    return float(SVC(gamma=0.001).fit(x.numpy(), y.numpy()).score(held_x.numpy(), held_y.numpy()))


def reviews_regression() -> float:
    """Return the accuracy of a logistic regression over words and pairs of words, on the example's own split."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    lines, labels = [], []
    for label, end in enumerate(("neg", "pos")):
        read = (DATA / f"rt-polarity/rt-polarity.{end}").read_text("latin-1").removesuffix("\n").split("\n")
        lines += read
        labels += [label] * len(read)
    train, test = data.tensors(torch.arange(len(lines))).split(0.9, seed=0)
    rows, held = (part.tensors[0].tolist() for part in (train, test))
    words = TfidfVectorizer(token_pattern=r"\S+", ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    made = make_pipeline(words, LogisticRegression(C=10, max_iter=300))
    made.fit([lines[row] for row in rows], [labels[row] for row in rows])
    return float(made.score([lines[row] for row in held], [labels[row] for row in held]))


def shakespeare_counts(order: int = 5) -> float:
    """Return the bits of a character from counts of characters after the last ones (Witten-Bell), same split."""
    text = (DATA / "tinyshakespeare/input.txt").read_text("utf-8")
    end = round(0.9 * len(text))
    followed: dict[str, Counter[str]] = defaultdict(Counter)
    for place in range(end):
        for length in range(min(order, place) + 1):
            followed[text[place - length : place]][text[place]] += 1
    bits, characters = 0.0, len(set(text))
    for place in range(end, len(text)):
        likely = 1 / characters
        for length in range(order + 1):
            counts = followed.get(text[place - length : place])
            if counts is None:
                break
            kinds, seen = len(counts), counts.total()
            likely = (counts[text[place]] + kinds * likely) / (seen + kinds)
        bits -= math.log2(likely)
    return bits / (len(text) - end)


def houses_boosted() -> float:
    """Return the mean error of gradient boosting in dollars, on the example's own split."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    table = data.csv(
        DATA / "housing/housing.csv",
        target="median_house_value",
        categorical={"ocean_proximity": "onehot"},
        missing={"total_bedrooms": "median"},
        standardize=True,
    )
    (x, y), (held_x, held_y) = (next(iter(DataLoader(part, len(part)))) for part in table.split(0.8, seed=0))
    model = HistGradientBoostingRegressor(random_state=0).fit(x.numpy(), y.squeeze(1).numpy())
    return float(abs(model.predict(held_x.numpy()) - held_y.squeeze(1).numpy()).mean())


@dataclass(frozen=True)
class Example:
    """One example, and its comparison.

    Attributes:
        script: the name of its template.
        figure: its last printed result, as a pattern with one group.
        what: the figure's name and unit.
        simple: measures a simple method on the same split; None where `lab.py` measures one.
        beside: that method's name.
        published: results of others, with the source.
    """

    script: str
    figure: str
    what: str
    simple: Callable[[], float] | None
    beside: str
    published: str


EXAMPLES = (
    Example(
        "digits", r"held-out accuracy (\S+)%", "held-out accuracy, %", digits_svc, "support vectors, gamma 0.001", ""
    ),
    Example(
        "images",
        r"test accuracy (\S+)%",
        "test accuracy, %",
        None,
        "the lab's perceptron, lab.py",
        "87.6 to 92.5 for networks of two convolutions (the list in the README of FashionMNIST)",
    ),
    Example(
        "table",
        r"held-out error (\S+) dollars",
        "held-out error, dollars",
        houses_boosted,
        "gradient boosting (scikit-learn's HistGradientBoostingRegressor)",
        "",
    ),
    Example(
        "text",
        r"held-out accuracy (\S+)%",
        "held-out accuracy, %",
        reviews_regression,
        "tf-idf of words and pairs, logistic regression",
        "76.1 for a convolutional network that begins at random (Kim 2014, CNN-rand, ten folds)",
    ),
    Example("spiral", r"epoch 60: (\S+)% of", "held-out points, %", None, "", ""),
    Example(
        "tokens",
        r"(\S+) bits",
        "held-out bits a character",
        shakespeare_counts,
        "counts after five characters, Witten-Bell",
        "2.71 for nanoGPT's settings for a CPU: four layers, 2000 steps (1.88 nats, its README)",
    ),
)


def measured(example: Example) -> dict[str, object]:
    """Run one example with its default settings, and the simple method."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            str(ROOT / "src/truestep/templates" / f"{example.script}.py"),
            "--out",
            f"{folder}/run",
        ]
        environment = os.environ | {"TRUESTEP_DATA": str(DATA), "TRUESTEP_WATCH": "0"}
        wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        wall, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
    simple = None if example.simple is None else example.simple() * (100 if "%" in example.what else 1)
    return {
        "example": example.script,
        "what": example.what,
        "reached": float(re.findall(example.figure, done.stdout)[-1].replace(",", "")),
        "simple": None if simple is None else round(simple, 3),
        "simple_method": example.beside,
        "published": example.published,
        "wall_s": round(wall, 1),
        "process_s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help="write bench/results/examples.json")
    options = parser.parse_args()
    print(f"{'example':18}{'':28}{'reached':>8}{'simple':>9}{'process s':>11}{'wall s':>8}{'load':>6}")
    rows = []
    for example in EXAMPLES:
        row = measured(example)
        rows.append(row)
        simple = "" if row["simple"] is None else row["simple"]
        print(
            f"{row['example']:18}{row['what']:28}{row['reached']:>8}{simple:>9}"
            f"{row['process_s']:>11}{row['wall_s']:>8}{row['load']:>6}",
            flush=True,
        )
    if options.save:
        machine = {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "threads": int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())),
        }
        path = Path(__file__).parent / "results" / "examples.json"
        path.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
