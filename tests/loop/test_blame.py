"""A warning names the line of the user's script, however deep in the toolkit it is given."""

import warnings

import pytest
import torch

from truestep import Loader, Run, schedules
from truestep.loop.optim.schedulers import HorizonWarning


def test_a_warning_from_the_depth_of_a_loop_names_the_loop() -> None:
    with Run(max_steps=2, device="cpu") as run:
        weight = torch.nn.Parameter(torch.ones(1))
        optimizer = run.optimizer(torch.optim.SGD([weight], lr=0.1))
        run.scheduler(schedules.warmup_cosine(optimizer, warmup=50))
        with pytest.warns(HorizonWarning) as caught:
            for _ in run.steps():
                run.step(weight.sum())
    assert [warning.filename for warning in caught] == [__file__]


def test_a_warning_from_a_loader_names_its_caller() -> None:
    class Draws:
        def __init__(self) -> None:
            self.generator = torch.Generator()

        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> torch.Tensor:
            return torch.rand(1, generator=self.generator)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Loader(Draws(), batch_size=2).check_exact()
    assert [warning.filename for warning in caught] == [__file__]
