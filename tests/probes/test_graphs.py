"""Edges of batches of graphs, and the graphs of their nodes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import EdgesRead
from truestep.testing import capture_events

GRAPHS, NODES = 6, 5


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, nodes: Tensor, edges: Tensor, number: Tensor) -> Tensor:
        near = torch.zeros_like(nodes).index_add(0, edges[1], nodes[edges[0]])
        return self.head(torch.zeros(GRAPHS, 8).index_add(0, number, torch.relu(self.layer(near))))  # type: ignore[no-any-return]


def read(edges: Tensor, number: Tensor) -> list[EdgesRead]:
    """Return the events of three steps on batches of graphs."""
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with capture_events() as events:
        for _ in range(3):
            optimizer.zero_grad()
            nodes, labels = torch.randn(GRAPHS * NODES, 4), torch.randint(0, 2, (GRAPHS,))
            F.cross_entropy(model(nodes, edges, number), labels).backward()
            optimizer.step()
    return [event for event in events if isinstance(event, EdgesRead)]


OF_ONE = torch.stack([torch.arange(NODES - 1), torch.arange(1, NODES)])
NUMBER = torch.arange(GRAPHS).repeat_interleave(NODES)


def test_edges_without_offsets_join_the_first_nodes() -> None:
    found = read(OF_ONE.repeat(1, GRAPHS), NUMBER)
    assert len(found) == 3
    first = found[0]
    assert (first.graphs, first.nodes, first.edges, first.without) == (GRAPHS, 30, 24, 25)
    assert first.site is not None


def test_edges_with_offsets_join_all_graphs() -> None:
    offsets = NODES * torch.arange(GRAPHS).repeat_interleave(NODES - 1)
    assert {event.without for event in read(OF_ONE.repeat(1, GRAPHS) + offsets, NUMBER)} == {0}


def test_few_edges_are_not_judged() -> None:
    assert {event.without for event in read(OF_ONE, NUMBER)} == {0}


def test_numbers_that_are_not_those_of_graphs_are_not_read() -> None:
    assert read(OF_ONE.repeat(1, GRAPHS), torch.arange(GRAPHS).repeat(NODES)) == []
