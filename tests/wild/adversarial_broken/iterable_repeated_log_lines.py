"""A stream of log lines from a list of shards that is not divided among the workers; the epoch is counted in batches."""
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Lines(IterableDataset):
    def __init__(self, shards):
        self.shards = shards

    def __iter__(self):
        for shard in self.shards:
            generator = torch.Generator().manual_seed(shard)
            for _ in range(40):
                row = torch.randn(4, generator=generator)
                yield {"x": row, "y": (row.sum() > 0).float()}


def main():
    torch.manual_seed(0)
    loader = DataLoader(Lines(range(3)), batch_size=10, num_workers=2)  # error: iterable-repeated-by-workers
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    seen = 0
    for batch in loader:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(batch["x"]).squeeze(1), batch["y"])
        loss.backward()
        optimizer.step()
        seen += len(batch["y"])
    print(seen, loss.item())


if __name__ == "__main__":
    main()
