"""Python code in the pages runs as it is, with a small model and small data under the names that the pages use."""

import itertools
import math
import re
import runpy
import shutil
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

import fsspec
import numpy
import pytest
import torch
import torchmetrics
from PIL import Image
from torch import distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import truestep

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "README", "docs/how-to/clusters", "docs/how-to/data", "docs/how-to/debugging", "docs/how-to/evaluation",
    "docs/how-to/export", "docs/how-to/frameworks", "docs/how-to/inference", "docs/how-to/logging",
    "docs/how-to/models", "docs/how-to/own-loop", "docs/how-to/remote-storage", "docs/how-to/resume",
    "docs/how-to/schedules", "docs/how-to/settings", "docs/how-to/several-processes", "docs/how-to/suppress",
    "docs/reference/post-mortems", "docs/tutorial/inspect",
)  # fmt: skip
ELSEWHERE = {
    "docs/explanation/folklore": "tests/house/test_listings.py",
    "docs/how-to/ci": "tests/house/test_listings.py",
    "docs/how-to/memory": "tests/house/test_listings.py",
    "docs/how-to/notebooks": "tests/watch/test_extension.py",
    "docs/how-to/pytest": "tests/house/test_listings.py",
    "docs/reference/api/supervision": "tests/house/test_listings.py",
}
"""Pages with blocks that another test runs. Those of tutorials with a title are run by tests/examples."""
PROGRAMS = ("docs/lab/", "docs/rules/")
"""Pages with lines of programs: test_pages.py compares those of the lab, and a rule has its proof."""
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECONDS = ("docs/how-to/export", "docs/how-to/inference")
"""Pages with blocks of several seconds."""
COMPILES = ("docs/how-to/models", 7)
COMPILED = [pytest.mark.program, pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")]
"""For a block that imports the compiler: it takes seconds, and torch warns about a function that it calls itself."""


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return x + self.linear(x).relu()


class Net(nn.Module):
    """A model with the names of parts that pages speak of."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Module()
        self.encoder.layers = nn.ModuleList(Block() for _ in range(12))
        self.features = nn.Sequential(nn.Flatten(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = self.features(x)
        for layer in self.encoder.layers:
            x = layer(x)
        return self.head(self.drop(x))


def blocks():
    found = []
    for page in PAGES:
        for number, code in enumerate(FENCE.findall((ROOT / f"{page}.md").read_text(encoding="utf-8"))):
            marks = COMPILED if (page, number) == COMPILES else [pytest.mark.program] * (page in SECONDS)
            found.append(pytest.param(page, code, id=f"{Path(page).name}-{number}", marks=marks))
    return found


def names(folder):
    """Return the names that a block may use without defining them."""
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(64, 8), torch.randint(0, 10, (64,)))
    run = truestep.Run(out=folder / "run", max_epochs=10, seed=0)
    model = run.model(Net())
    optimizer = run.optimizer(torch.optim.SGD(model.parameters(), lr=0.01))
    loader = run.loader(data, batch_size=16, shuffle=True)
    x, y = data[:8]
    criterion = nn.functional.cross_entropy
    torch.save(model.state_dict(), folder / "backbone.pt")
    for part, count in (("train", 64), ("t10k", 32)):
        for kind, shape in (("images", (count, 2, 4)), ("labels", (count,))):
            head = struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape)
            (folder / "data").mkdir(exist_ok=True)
            (folder / "data" / f"{part}-{kind}").write_bytes(head + bytes(i % 10 for i in range(math.prod(shape))))
    return {
        "torch": torch, "truestep": truestep, "ts": truestep, "Net": Net, "Block": Block, "run": run, "model": model,
        "optimizer": optimizer, "train": loader, "loader": loader, "val": run.loader(data, batch_size=32), "x": x,
        "y": y, "corrupted": x + 1, "criterion": criterion, "test_set": data, "extra": loader, "examples": loader,
        "logits": model(x), "targets": y, "loss": criterion(model(x), y), "val_loss": 1.0, "batch": 3, "epochs": 2,
        "loss_of": lambda batch: criterion(model(batch[0]), batch[1]), "next_batch": lambda: (x, y),
        "consistency": lambda *_: model(x).square().mean(), "evaluate": lambda _: 1.0, "dataset": data,
        "outputs": model(x), "torchmetrics": torchmetrics, "accuracy": None, "scores": model(x),
        "policy": model, "rollout": lambda: (x, y), "policy_loss": lambda batch: criterion(model(batch[0]), batch[1]),
    }  # fmt: skip


def files(folder):
    """Write the files of the page on data: tables, pictures, a text."""
    for part in ("train", "test"):
        rows = [f"{i},{i % 7},{'ab'[i % 2]},{'xyz'[i % 3]},{100 + i}" for i in range(40)]
        (folder / f"houses-{part}.csv").write_text("\n".join(["id,rooms,place,street,price", *rows]) + "\n")
    for kind in ("cat", "dog"):
        (folder / "photos/train" / kind).mkdir(parents=True)
        for number in range(3):
            Image.new("RGB", (300, 250), (number, 80, 160)).save(folder / "photos/train" / kind / f"{number}.png")
    (folder / "input.txt").write_text("To be, or not to be: that is the question. " * 100)


class Pairs(torch.utils.data.Sampler):
    """A batch sampler of two samples of one length."""

    def __init__(self, lengths):
        super().__init__()
        self.order = sorted(range(len(lengths)), key=lengths.__getitem__)

    def __iter__(self):
        return iter([self.order[i : i + 2] for i in range(0, len(self.order), 2)])

    def __len__(self):
        return len(self.order) // 2


class Cached(nn.Module):
    """Scores of a token, and the cache with it."""

    def forward(self, token, cache):
        return token, torch.cat((cache, token.float().view(-1, 1, 1, 1, 1).expand(-1, 2, 2, 1, 4)), 3)


def trained_runs(folder):
    """Train the models of the page on inference, with files to predict. Return the names that its blocks use."""
    (folder / "network.py").write_text(
        "from torch import nn\n\ndef net(features=8, width=10):\n    return nn.Linear(features, width)\n"
    )
    rows = [f"{i},{i % 7},{i % 3}" for i in range(40)]
    (folder / "rows.csv").write_text("\n".join(["id,rooms,price", *rows]) + "\n")
    table = truestep.data.csv("rows.csv", target="price", standardize=True)
    digits = truestep.data.tensors(torch.randn(20, 8), torch.arange(20) % 10, std=2.0, classes="0123456789")
    for name, dataset, features in (("digits", digits, 8), ("table", table, len(table.features))):
        settings = Sized(out=f"runs/{name}", max_epochs=1, seed=0, width=10 if name == "digits" else 1)
        with truestep.Run(settings) as run:
            loader = run.loader(dataset, batch_size=8)
            model = run.model(nn.Linear(features, settings.width))
            run.optimizer(torch.optim.SGD(model.parameters(), lr=0.01))
            for _ in run.epochs():
                for x, y in run.train(loader, model):
                    loss = nn.functional.cross_entropy(model(x), y) if name == "digits" else model(x).square().mean()
                    run.step(loss)
            run.save(metric=1.0)
    numpy.save(folder / "d.npy", numpy.ones((3, 8), dtype="f4"))
    net = runpy.run_path(str(folder / "network.py"))["net"]
    return {"net": net, "trained": truestep.Trained("runs/digits"), "mean": torch.ones(3)}


@dataclass
class Sized(truestep.Settings):
    """Settings with the width of a model."""

    width: int = 10


def adversaries(run):
    """Return a generator and its critic, with optimizers and losses."""
    generator, critic = run.model(Net()), run.model(Net())
    return {
        "generator": generator,
        "critic": critic,
        "opt_g": run.optimizer(torch.optim.SGD(generator.parameters(), lr=0.01)),
        "opt_d": run.optimizer(torch.optim.SGD(critic.parameters(), lr=0.01)),
        "critic_loss": lambda x: critic(x).square().mean(),
        "generator_loss": lambda x: generator(x).square().mean(),
    }


class Trainer:
    """The trainer of a framework."""

    def fit(self, model, loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


def mirrored(code, folder):
    """Return code with a mirror in memory, which has the checkpoint that the code names."""
    fsspec.filesystem("memory").store.clear()
    if "load_weights" in code:
        run = truestep.Run(out=folder / "mirrored", mirror="memory://bucket/lab", seed=0)
        model = run.model(Net())
        run.optimizer(torch.optim.SGD(model.parameters(), lr=0.01))
        run.save(metric=1.0)
        run.close()
        (name,) = {path.split("/")[4] for path in fsspec.filesystem("memory").find("/bucket/lab/checkpoints/")}
        code = code.replace("step-000500-1-3", name)
    return code.replace("s3://", "memory://").replace("/scratch/", f"{folder}/scratch/")


def given(page, code, folder, space):
    """Return the names of a block that others do not have."""
    more = {}
    if page == "docs/how-to/data":
        files(folder)
        more |= {"lengths": [8] * 64, "Bucketed": Pairs}
    if "dataset.split" in code:
        more["dataset"] = truestep.data.tensors(*space["test_set"].tensors)
    if "x, lengths, y" in code:
        (folder / "texts.csv").write_text("text\tlabel\n" + "a good film\t1\nbad\t0\n" * 8)
        more["train"] = space["run"].loader(truestep.data.text("texts.csv", header=True), batch_size=4)
    if "opt_g" in code:  # two more models, that other loops would not step
        more |= adversaries(space["run"])
    if "load_weights(" in code:  # of earlier runs
        space["run"].save(metric=1.0)
        for old in ("old", "lab"):
            shutil.copytree(folder / "run", folder / "runs" / old, symlinks=True)
    if page == "docs/how-to/export":
        more |= {"islice": itertools.islice, "token": torch.ones(2, 1), "cache": torch.zeros(2, 2, 2, 3, 4)}
        more |= {"model": Cached()} if "scores, cache" in code else {}
    if page == "docs/how-to/inference":
        more |= trained_runs(folder)
    if "keep_preprocessing" in code:
        more["trained"].preprocessing["order"] = "BGR"
    if "run.model(model)" in code:
        more |= {"run": truestep.Run(max_epochs=2), "model": Net()}
    if page == "docs/how-to/suppress":
        more["scheduler"] = torch.optim.lr_scheduler.StepLR(space["optimizer"], 10)
        space["optimizer"].step()
    if page == "docs/how-to/clusters":
        more["train_set"] = space["dataset"]
    if "dist." in code:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        more |= {"dist": dist, "model": nn.parallel.DistributedDataParallel(Net())}
    if page == "docs/tutorial/inspect":
        more["model"] = nn.Sequential(nn.Linear(8, 8))
    if "session" in code:  # supervises a training outside of a run
        more |= {"model": Net(), "loader": DataLoader(space["dataset"], batch_size=16), "trainer": Trainer()}
        more["train"] = more["trainer"].fit
    return more


def build(run):
    """Return the model and the loader of a loop."""
    model, data = run.model(Net()), TensorDataset(torch.randn(64, 8), torch.randint(0, 10, (64,)))
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.01))
    return model, run.loader(data, batch_size=16)


@pytest.mark.parametrize(("page", "code"), blocks())
def test_a_block_runs(page, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["train.py", *(["--out", "runs/lab"] if page == "docs/how-to/clusters" else [])])
    space = names(tmp_path) | {"__name__": "page", "build": build}
    space |= given(page, code, tmp_path, space)
    if page == "docs/how-to/inference":
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "network", raising=False)
    code = code.replace("most_drop=0.01", "most_drop=0.5")  # of a model that was not trained
    if page == "docs/how-to/remote-storage":
        code = mirrored(code, tmp_path)
    code = code.replace(
        'clip_norm=1.0, trackers=("tensorboard",))\n...\n', "clip_norm=1.0)\nmodel, train = build(run)\n"
    )
    code = re.sub(r"max_epochs=\d+", "max_epochs=2", code)
    code = code.replace("1000)", "100)").replace("10_000", "100").replace("num_workers=4", "num_workers=0")
    exec(compile(code, "page.py", "exec"), space)


def test_every_page_with_code_is_run():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = {
        str(path.relative_to(ROOT).with_suffix("")) for path in pages if FENCE.search(path.read_text(encoding="utf-8"))
    }
    assert {page for page in found if not page.startswith(PROGRAMS)} == {*PAGES, *ELSEWHERE}
