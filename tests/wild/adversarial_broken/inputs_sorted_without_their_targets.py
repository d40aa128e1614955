"""A trainer sorts sequences by length, scales and pads them, and forgets the values to predict, in batches with names."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(1)
torch.set_num_threads(1)


class Series(Dataset):
    def __init__(self, count):
        self.steps = torch.randn(count, 12, 2)
        self.lengths = torch.randint(4, 13, (count,))

    def __len__(self):
        return len(self.steps)

    def __getitem__(self, index):
        steps = self.steps[index]
        return {"steps": steps, "length": self.lengths[index], "next": steps[:, :1].sum(0) / 4}


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(2, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, steps):
        return self.head(self.rnn(steps)[1][0][-1])


class Trainer:
    def __init__(self, model):
        self.model, self.optimizer = model, torch.optim.Adam(model.parameters(), lr=3e-3)

    def step(self, batch):
        order = batch["length"].argsort(descending=True)
        predicted = self.model(3 * batch["steps"][order] + 1)
        loss = nn.functional.mse_loss(predicted, batch["next"])  # error: targets-of-other-samples
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            print(epoch, sum(self.step(batch) for batch in loader) / len(loader))


Trainer(Forecaster()).fit(DataLoader(Series(320), batch_size=32, shuffle=True), 4)
