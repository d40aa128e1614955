"""All that an optimizer trains is in the checkpoint, or the checkpoint is refused."""

import warnings

import pytest
import torch
from torch import nn

from truestep.errors import NotInCheckpoint, UnsavableState
from truestep.loop.run.run import Run


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(2, 1)

    def forward(self, x):
        return self.head(x)


def trained(run, *parameters):
    run.optimizer(torch.optim.SGD(parameters, lr=0.1))
    for _ in run.steps(2):
        run.step(sum(parameter.sum() for parameter in parameters))


def test_a_model_that_was_not_given_to_the_run_is_named_at_the_first_step_and_at_the_save(tmp_path):
    run = Run(out=tmp_path / "run", device="cpu", watch=False)
    net = Net()
    with pytest.warns(NotInCheckpoint, match=r"Net \(head\.weight, head\.bias\), 2 parameter tensors of optimizer"):
        trained(run, *net.parameters())
    with pytest.raises(UnsavableState, match=r"would not contain Net .*\n.*\n.*run\.model\(model\)"):
        run.save()
    assert not list((tmp_path / "run").glob("checkpoints/step-*"))


def test_a_part_of_a_model_is_not_the_model(tmp_path):
    run = Run(out=tmp_path / "run", device="cpu", watch=False)
    net = nn.Sequential(Net(), nn.Linear(1, 1))
    run.model(net[1])
    with pytest.warns(NotInCheckpoint, match=r"0\.head\.weight"):
        trained(run, *net.parameters())


def test_a_parameter_of_no_model_is_reported_by_its_shape(tmp_path):
    run = Run(out=tmp_path / "run", device="cpu", watch=False)
    with pytest.warns(NotInCheckpoint, match=r"1 parameter tensor outside of any model, of shape \(3, 7\)"):
        trained(run, torch.zeros(3, 7, requires_grad=True))


def test_a_run_without_folder_needs_no_model():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trained(Run(device="cpu", watch=False), *Net().parameters())


@pytest.mark.parametrize("how", ["model", "registered", "state", "list"])
def test_what_the_checkpoint_holds_is_quiet(how, tmp_path):
    run = Run(out=tmp_path / "run", device="cpu", watch=False)
    net, alpha = Net(), torch.zeros(2, requires_grad=True)
    parameters = [*net.parameters()]
    if how == "registered":
        run.register("net", net)
    else:
        run.model(net)
    if how == "state":
        run.state.alpha = [alpha.detach()]
        parameters.append(alpha)
    elif how == "list":
        run.model(nn.ParameterList([nn.Parameter(alpha)]), name="alpha")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trained(run, *parameters)
        run.save()
    assert len(list((tmp_path / "run").glob("checkpoints/step-*"))) == 1
