"""Predictions from a checkpoint: the weights, the preprocessing and the settings are those of the training."""

import json

import numpy
import pytest
import torch
from torch import nn

from truestep import Run, Settings, Trained, data
from truestep.errors import BadCheckpoint, BadInputs, BadPart, KeysDoNotMatch
from truestep.loop.inference.answers import answers

CLASSES = ("a", "b", "c")


def net():
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 3))


def dataset(transform=None):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(24, 4, generator=generator) * 3 + 1
    return data.tensors(x, torch.arange(24) % 3, mean=1.0, std=3.0, classes=CLASSES, transform=transform), x


def trained_run(out, *, metric=None, transform=None, keep=None, evaluate=False):
    made, raw = dataset(transform)
    settings = Settings(out=str(out), seed=1, max_epochs=2, device="cpu", progress=False)
    with Run(settings) as run:
        loader = run.loader(made, batch_size=8)
        if keep is not None:
            run.keep_preprocessing(keep)
        model = run.model(net())
        run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        run.ema(model, 0.5)
        for epoch in run.epochs():
            for x, y in run.train(loader, model):
                run.step(nn.functional.cross_entropy(model(x), y))
            run.save(metric=None if metric is None else metric[epoch])
        outputs = run.predict(model, loader)
    return run, outputs, raw


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run", *trained_run(tmp_path / "run")


def test_predictions_equal_those_of_the_run(run, tmp_path):
    folder, _, outputs, raw = run
    numpy.save(tmp_path / "raw.npy", raw.numpy())
    trained = Trained(folder, device="cpu")
    model = net().train()
    found = list(trained.predict(model, [tmp_path / "raw.npy"], batch_size=7))
    torch.testing.assert_close(torch.stack([answer.output for answer in found]), outputs)
    assert [answer.label for answer in found] == [CLASSES[at] for at in outputs.argmax(1)]
    assert found[0].source.endswith("raw.npy, sample 1")
    assert sum(found[0].probabilities.values()) == pytest.approx(1)
    assert trained.classes == CLASSES
    assert trained.settings["max_epochs"] == 2


def test_the_best_checkpoint_is_read_and_its_average_on_request(tmp_path):
    trained_run(tmp_path / "run", metric=[1.0, 2.0])
    trained = Trained(tmp_path / "run")
    assert trained.checkpoint.step == 3
    assert Trained(tmp_path / "run" / "last").checkpoint.step == 6
    plain, average = trained.load(net()), trained.load(net(), "ema")
    assert not plain.training
    assert not any(parameter.requires_grad for parameter in plain.parameters())
    assert not torch.equal(plain[0].weight, average[0].weight)


def test_evaluated_weights_have_the_preprocessing(tmp_path):
    made, _ = dataset()
    with Run(out=tmp_path / "run", max_steps=6, device="cpu", progress=False) as run:
        loader = run.loader(made, batch_size=8)
        model = run.model(net())
        run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        for _ in run.epochs():
            for step, (x, y) in enumerate(run.train(loader, model)):
                if step == 1:
                    run.save(metric=0.5)  # before the update of this body
                run.step(nn.functional.cross_entropy(model(x), y))
    trained = Trained(tmp_path / "run")
    assert trained.checkpoint.path.name.startswith("evaluated-")
    assert trained.preparation.classes == CLASSES


def test_a_resumed_run_keeps_it(run, tmp_path):
    folder, *_ = run
    made, _ = dataset()
    with Run(out=folder, max_epochs=3, seed=1, device="cpu", resume="auto", progress=False) as resumed:
        loader = resumed.loader(made, batch_size=8)
        model = resumed.model(net())
        resumed.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        resumed.ema(model, 0.5)
        for _ in resumed.epochs():
            for x, y in resumed.train(loader, model):
                resumed.step(nn.functional.cross_entropy(model(x), y))
            resumed.save()
    assert Trained(folder).preprocessing["std"] == 3.0


def test_another_model_is_refused(run):
    with pytest.raises(KeysDoNotMatch):
        Trained(run[0]).load(nn.Linear(4, 3))


def test_inputs_of_another_shape_are_refused(run, tmp_path):
    (tmp_path / "x.csv").write_text("1,2,3\n")
    with pytest.raises(BadInputs, match="samples of shape"):
        list(Trained(run[0]).predict(net(), [tmp_path / "x.csv"]))


def doubled(x):
    return 2 * x


def test_the_transform_of_the_training_is_required(tmp_path):
    _, outputs, raw = trained_run(tmp_path / "run", transform=doubled)
    torch.save(raw, tmp_path / "x.pt")
    trained = Trained(tmp_path / "run")
    with pytest.raises(BadInputs, match="had transform=doubled"):
        list(trained.predict(net(), [tmp_path / "x.pt"]))
    found = list(trained.predict(net(), [tmp_path / "x.pt"], transform=doubled))
    torch.testing.assert_close(torch.stack([answer.output for answer in found]), outputs)


def test_the_users_own_values_are_kept(tmp_path):
    trained_run(tmp_path / "run", keep={"mean": [0.5], "order": "BGR"})
    trained = Trained(tmp_path / "run")
    assert trained.preprocessing == {"mean": [0.5], "order": "BGR"}
    with pytest.raises(BadInputs, match="no preprocessing that reads files"):
        list(trained.predict(net(), ["x.csv"]))


@pytest.mark.parametrize(
    ("values", "said"), [(3, "was given a int"), ({"mean": torch.ones(1)}, "cannot be written as JSON")]
)
def test_values_that_cannot_be_kept_are_refused(values, said):
    with Run(device="cpu", progress=False) as run, pytest.raises(BadPart, match=said):
        run.keep_preprocessing(values)


def test_a_run_without_a_data_set_writes_no_file(tmp_path):
    with Run(out=tmp_path / "run", max_steps=1, device="cpu", progress=False) as run:
        model = run.model(nn.Linear(1, 1))
        run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        for _ in run.steps():
            run.step(model(torch.ones(1, 1)).sum())
        run.save()
    trained = Trained(tmp_path / "run")
    assert not (trained.checkpoint.path / "inference.json").exists()
    assert trained.settings["max_steps"] == 1
    assert trained.preprocessing == {}


def test_the_file_is_part_of_the_checkpoint(run):
    path = run[0] / "checkpoints/last/inference.json"
    held = json.loads(path.read_text())
    path.write_text(json.dumps(held | {"settings": {}}))
    with pytest.raises(BadCheckpoint):
        Trained(run[0] / "checkpoints/last")


def test_no_folder_is_an_error():
    with pytest.raises(BadCheckpoint, match="no folder of a run"):
        Trained(None)


def test_answers_have_labels_and_numbers():
    (two,) = answers(["x"], torch.tensor([[2.0]]), ("no", "yes"))
    assert (two.label, round(two.probability, 3)) == ("yes", 0.881)
    (number,) = answers(["x"], torch.tensor([[1234567.0]]), ())
    assert (str(number), number.label) == ("x: 1,234,567", None)
    with pytest.raises(BadInputs, match="the model has 4 outputs"):
        answers(["x"], torch.zeros(1, 4), CLASSES)
    with pytest.raises(BadInputs, match=r"returns shape \(2,\) for 1 inputs"):
        answers(["x"], torch.zeros(2), CLASSES)
