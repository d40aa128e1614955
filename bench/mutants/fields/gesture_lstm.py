"""Classify gestures (curves of different length) by the end state of an LSTM."""

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence


def make_gestures(n, seed):
    rng = np.random.default_rng(seed)
    seqs, labels = [], []
    for _ in range(n):
        label = int(rng.integers(0, 4))
        length = int(rng.integers(8, 36))
        s = np.linspace(0, 1, length)
        turn = [1.0, -1.0, 0.4, -0.4][label] * 2 * np.pi
        angle = rng.uniform(0, 2 * np.pi) + turn * s
        xy = np.stack([np.cos(angle), np.sin(angle)], axis=1) + rng.normal(0, 0.1, (length, 2))
        seqs.append(torch.tensor(xy, dtype=torch.float32))
        labels.append(label)
    return seqs, torch.tensor(labels)


class GestureLSTM(nn.Module):
    """LSTM and a linear layer on the state after the last real point."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, 24, batch_first=True)
        self.fc = nn.Linear(24, 4)

    def forward(self, x, lengths):
        out, _ = self.lstm(x)
        last = out[torch.arange(x.size(0)), lengths - 1]
        return self.fc(last)


class Trainer:
    """Keeps the model, its optimizer and its data together."""

    def __init__(self, model, train, val, lr):
        self.model, self.train_set, self.val_set = model, train, val
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()

    def batches(self, data, size, shuffle):
        seqs, labels = data
        order = torch.randperm(len(labels)) if shuffle else torch.arange(len(labels))
        for idx in order.split(size):
            chosen = [seqs[i] for i in idx.tolist()]
            lengths = torch.tensor([len(c) for c in chosen])
            yield pad_sequence(chosen, batch_first=True), lengths, labels[idx]

    def run_epoch(self):
        self.model.train()
        losses = []
        for x, lengths, y in self.batches(self.train_set, 32, True):
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x, lengths), y)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return float(np.mean(losses))

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        right = sum((self.model(x, n).argmax(1) == y).sum().item() for x, n, y in self.batches(self.val_set, 64, False))
        return right / len(self.val_set[1])


if __name__ == "__main__":
    torch.manual_seed(21)
    trainer = Trainer(GestureLSTM(), make_gestures(400, 1), make_gestures(200, 2), lr=5e-3)
    for epoch in range(8):
        loss = trainer.run_epoch()
        print(f"[{epoch}] train_loss={loss:.4f} val_acc={trainer.validate():.4f}")
