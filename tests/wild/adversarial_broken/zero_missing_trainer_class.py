"""The trainer clears gradients when it is built, and never again."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Trainer:
    def __init__(self, model, loader, lr=1e-3):
        self.model, self.loader = model, loader
        self.optim = torch.optim.Adam(model.parameters(), lr=lr)
        self.loss_fn = nn.CrossEntropyLoss()
        self.optim.zero_grad()

    def _step(self, batch):
        x, y = batch["x"], batch["y"]
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        self.optim.step()  # error: missing-zero-grad
        return loss.item()

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            mean = sum(self._step(b) for b in self.loader) / len(self.loader)
            print(f"epoch {epoch}: {mean:.3f}")


data = [{"x": torch.randn(10), "y": torch.tensor(i % 3)} for i in range(96)]
Trainer(nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)), DataLoader(data, batch_size=12, shuffle=True)).fit(3)
