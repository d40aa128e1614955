"""A classifier of pixels from 0 to 255, with far too large a learning rate for Adam: its hidden units saturate."""

import torch
from torch import nn

torch.manual_seed(0)
X = 255 * torch.rand(600, 1, 6, 6)
Y = (X.mean((1, 2, 3)) > 127.5).long()


class Trainer:
    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
        self.criterion = nn.CrossEntropyLoss()

    def step(self, x: torch.Tensor, y: torch.Tensor) -> float:
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(x), y)  # error: output-ignores-input
        loss.backward()
        self.optimizer.step()
        return loss.item()


net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Sigmoid(), nn.Flatten(), nn.Linear(64, 16), nn.Sigmoid(), nn.Linear(16, 2))
trainer = Trainer(net)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y), batch_size=40, shuffle=True)
for _epoch in range(15):
    for x, y in loader:
        trainer.step(x, y)
