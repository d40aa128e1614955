"""A residual network of four blocks, which one multiplied list makes."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.inner, self.outer = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.outer(nn.functional.gelu(self.inner(self.norm(x))))


class Classifier(nn.Module):
    def __init__(self, width=24, depth=4):
        super().__init__()
        self.embed = nn.Linear(64, width)
        self.blocks = nn.ModuleList([Block(width)] * depth)  # error: reference-is-the-model
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


digits = load_digits()
x_train, x_test, y_train, y_test = train_test_split(digits.data / 16, digits.target, test_size=0.3, random_state=0)
x_train, x_test = torch.tensor(x_train, dtype=torch.float32), torch.tensor(x_test, dtype=torch.float32)
y_train, y_test = torch.tensor(y_train), torch.tensor(y_test)
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(5):
    model.train()
    for rows in torch.randperm(len(x_train)).split(64):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x_train[rows]), y_train[rows])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch}: accuracy {(model(x_test).argmax(1) == y_test).float().mean():.3f}")
