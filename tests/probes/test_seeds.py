"""Seeds of the global generator, and draws of the training after a seed that was set again."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from truestep.events import DrawsRepeated, Event, Seeded
from truestep.testing import capture_events


def seeds(events: list[Event]) -> list[int | str]:
    return [
        event.seed if isinstance(event, Seeded) else "drawn"
        for event in events
        if isinstance(event, Seeded | DrawsRepeated)
    ]


def test_each_seed_has_an_index_and_draws_are_seen_after_a_repeated_one() -> None:
    net = nn.Linear(2, 1)
    with capture_events() as events:
        for seed in (7, 8, 7, 7):
            torch.manual_seed(seed)
            net(torch.randn(4, 2)).sum().backward()
    assert seeds(events) == [0, 1, 0, "drawn", 0, "drawn"]


def test_a_training_that_draws_nothing_repeats_nothing() -> None:
    net, x = nn.Linear(2, 1), torch.ones(4, 2)
    with capture_events() as events:
        for _ in range(3):
            torch.manual_seed(7)
            net(x).sum().backward()
    assert seeds(events) == [0, 0, 0]


def test_a_loader_repeats_draws_if_it_shuffles() -> None:
    def passes(shuffle: bool) -> list[int | str]:
        net = nn.Linear(2, 1)
        loader = DataLoader(TensorDataset(torch.ones(4, 2)), batch_size=2, shuffle=shuffle)
        with capture_events() as events:
            for _ in range(2):
                torch.manual_seed(7)
                for (x,) in loader:
                    net(x).sum().backward()
        return seeds(events)

    assert passes(shuffle=False) == [0, 0]
    assert passes(shuffle=True) == [0, 0, "drawn"]


def test_the_state_of_the_generator_is_left_alone() -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    with capture_events():
        for _ in range(2):
            torch.manual_seed(7)
            assert torch.equal(torch.rand(3), expected)
