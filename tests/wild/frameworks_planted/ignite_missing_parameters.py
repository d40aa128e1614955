"""Ignite: a layer of the model is not given to the optimizer."""
import torch
from ignite.engine import create_supervised_trainer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(5, 32)
        self.middle = nn.Linear(32, 16)
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.middle(self.body(x).relu()).relu())


x = torch.randn(320, 5)
model = Net()
optimizer = torch.optim.Adam([*model.body.parameters(), *model.head.parameters()], lr=1e-2)  # error: parameters-not-optimized
trainer = create_supervised_trainer(model, optimizer, nn.CrossEntropyLoss())
trainer.run(DataLoader(TensorDataset(x, x[:, 0].gt(0).long()), batch_size=16, shuffle=True), max_epochs=3)
print(f"done after {trainer.state.iteration} iterations")
