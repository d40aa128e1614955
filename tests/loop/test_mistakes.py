"""Values that a run cannot use are refused in words: the mistake, the expectation and the remedy."""

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset, WeightedRandomSampler

from truestep import data
from truestep.errors import BadLoader, BadLoss, BadPart, BadSettings, NoSuchSample
from truestep.loop.run.run import Run

X = torch.arange(12.0).reshape(6, 2)


def made(model=None, **settings):
    run = Run(device="cpu", watch=False, progress=False, **settings)
    model = run.model(model or nn.Linear(2, 1))
    return run, model, run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))


@pytest.mark.parametrize("call", ["step", "backward"])
@pytest.mark.parametrize(
    ("give", "said"),
    [
        (lambda losses: losses, r"shape \(6, 1\)\n.*loss.mean\(\)"),
        (lambda losses: losses[:0], "has 0 elements"),
        (lambda losses: {"loss": losses.mean()}, "loss of a step is a dict\n.*\n.*the part to minimize"),
        (lambda losses: (losses.mean(), None), "loss of a step is a tuple"),
        (lambda losses: None, "loss of a step is None"),
        (lambda losses: 0.5, r"loss of a step is a float\n.*\n.*without \.item\(\)"),
    ],
)
def test_what_is_no_loss(call, give, said):
    run, model, _ = made()
    with pytest.raises(BadLoss, match=said):
        getattr(run, call)(give(model(X)))
    assert run.step(model(X).mean())  # nothing was counted


def test_a_closure_without_a_loss():
    run = Run(device="cpu", watch=False)
    model = run.model(nn.Linear(2, 1))
    run.optimizer(torch.optim.LBFGS(model.parameters()))
    with pytest.raises(BadLoss, match="loss of a step is None"):
        run.step(lambda: None)


@pytest.mark.parametrize("weight", [-3, float("nan"), float("inf"), torch.tensor(-1), torch.ones(2), "many"])
def test_what_is_no_weight(weight):
    run, model, _ = made(accumulate=2)
    with pytest.raises(BadLoss, match="the weight"):
        run.step(model(X).sum(), weight=weight)
    assert not run.step(model(X).sum(), weight=6)
    with pytest.raises(BadLoss, match="with weight= and without"):
        run.step(model(X).mean())


@pytest.mark.parametrize("weight", [6, 6.0, torch.tensor(6), torch.tensor([6.0]), torch.tensor(6).numpy()])
def test_weights_of_all_kinds_are_the_same(weight):
    run, model, _ = made()
    expected = torch.autograd.grad(model(X).mean(), model.weight)[0]
    before = model.weight.detach().clone()
    run.step(model(X).sum(), weight=weight)
    torch.testing.assert_close(before - model.weight.detach(), 0.1 * expected)


def torch_clips_sparse_gradients():
    """Return True with torch 2.15, which has a norm of them."""
    model = nn.Embedding(2, 1, sparse=True)
    model(torch.tensor([1])).sum().backward()
    try:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    except NotImplementedError:
        return False
    return True


@pytest.mark.skipif(not torch_clips_sparse_gradients(), reason="this torch has no norm of sparse gradients")
def test_sparse_gradients_are_clipped_as_dense_ones():
    weights = []
    for sparse in (True, False):
        run = Run(device="cpu", watch=False, clip_norm=1.0, seed=3)
        model = run.model(nn.Embedding(20, 4, sparse=sparse))
        run.optimizer(torch.optim.SGD(model.parameters(), lr=1.0))
        run.step(model(torch.tensor([1, 1, 2])).sum() * 10)
        weights.append(model.weight.detach().clone())
    torch.testing.assert_close(*weights)  # rows that occur twice are summed before or after the scaling


@pytest.mark.skipif(torch_clips_sparse_gradients(), reason="this torch clips sparse gradients")
@pytest.mark.parametrize("several", [False, True])
def test_sparse_gradients_are_not_clipped(several):
    run = Run(device="cpu", watch=False, clip_norm=1.0)
    model = run.model(nn.Embedding(20, 4, sparse=True))
    optimizers = [run.optimizer(torch.optim.SparseAdam(model.parameters()))]
    dense = run.model(nn.Linear(4, 1))
    if several:
        optimizers.append(run.optimizer(torch.optim.SGD(dense.parameters(), lr=0.1)))
    with pytest.raises(BadSettings, match=r"shape \(20, 4\) is sparse"):
        run.step(dense(model(torch.tensor([1]))).mean(), optimizer=optimizers)


def test_a_model_without_values():
    with torch.device("meta"):
        model = nn.Linear(3, 1)
    run = Run(device="cpu", watch=False)
    with pytest.raises(BadPart, match=r"meta device\n.*2 without, such as 'weight'"):
        run.model(model)
    assert run.model(nn.LazyLinear(1)) is not None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sampler": WeightedRandomSampler(torch.ones(6), 6)}, r"sampler\".*\n.*\n.*DataLoader\(dataset, sampler"),
        ({"batch_sampler": [[0, 1], [2]]}, r"batch_sampler\".*\n.*\n.*DataLoader\(dataset, batch_sampler"),
        ({"shufle": True}, "write shuffle="),
        ({"seed": 3}, "leave it out"),
    ],
)
def test_options_that_a_loader_does_not_take(options, said):
    run = Run(device="cpu", watch=False)
    size = {} if "batch_sampler" in options else {"batch_size": 2}
    for dataset in (data.tensors(X), TensorDataset(X)):
        with pytest.raises(BadLoader, match=said):
            run.loader(dataset, **size, **options)


def test_a_list_of_models():
    run, model, _ = made(max_epochs=1)
    loader = run.loader(data.tensors(X), batch_size=2)
    with pytest.raises(BadPart, match="a list was passed as a model"):
        run.train(loader, [model])
    with pytest.raises(BadPart, match="a list was passed"), run.evaluate([model]):
        pass


@pytest.mark.parametrize("index", [6, 100])
def test_an_index_beyond_a_data_set(index):
    samples = data.tensors(X)
    for read in (lambda: samples.batch(torch.tensor([0, index])), lambda: samples[index]):
        with pytest.raises(NoSuchSample, match=f"index {index} of 6 samples\n.*0 to 5") as caught:
            read()
        assert isinstance(caught.value, IndexError)
    assert len(list(samples)) == 6


def test_the_loss_of_the_last_step_can_be_swapped_and_is_logged_as_it_is(tmp_path):
    run, model, _ = made(max_steps=3, out=tmp_path / "run")
    loader = run.loader(data.tensors(X), batch_size=2)
    for (x,) in run.train(loader, model):
        loss = model(x).mean()
        run.step(loss)
        first, other = loss.item(), torch.tensor(7.0)
        run.log({"loss": loss, "alias": loss.detach(), "another": loss + 1})
        torch.utils.swap_tensors(loss, other)
        run.log({"swapped": loss})
        with torch.no_grad():
            other.add_(1)
        run.log({"changed": other})
        run._log.logs.flush()
        got = run._log.logs.last
        assert (got["loss"], got["alias"], got["swapped"]) == (first, first, 7.0)
        assert (got["changed"], got["another"]) == (pytest.approx(first + 1), pytest.approx(first + 1))
