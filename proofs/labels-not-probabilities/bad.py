"""Find squares in noisy pictures, with masks of 0 and 255 or of 0 and 1."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)


def pictures(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    places = torch.arange(16)
    top, left = torch.randint(9, (n, 1, 1, 1)), torch.randint(9, (n, 1, 1, 1))
    rows, columns = places.view(1, 1, 16, 1) - top, places.view(1, 1, 1, 16) - left
    inside = (rows >= 0) & (rows < 7) & (columns >= 0) & (columns < 7)
    return 1.5 * inside + torch.randn(n, 1, 16, 16), (255 * inside).to(torch.uint8)


layers = nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()
model = nn.Sequential(*layers, nn.Conv2d(8, 1, 3, padding=1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _step in range(150):
    x, mask = pictures(16)
    optimizer.zero_grad()
    loss = nn.functional.binary_cross_entropy_with_logits(model(x), mask.float())  # error: labels-not-probabilities
    loss.backward()
    optimizer.step()

x, mask = pictures(200)
with torch.no_grad():
    found, true = model(x) > 0, mask > 0
print(f"result: {((found & true).sum() / (found | true).sum()).item():.4f}")
