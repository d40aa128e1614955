# says: `hidden` carries the graph of the previous iteration
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, vocabulary=20):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 8)
        self.rnn = nn.RNN(8, 16, batch_first=True)
        self.out = nn.Linear(16, vocabulary)

    def forward(self, x, hidden=None):
        y, hidden = self.rnn(self.embed(x), hidden)
        return self.out(y), hidden


def fit(text, epochs=2):
    model, criterion = Model(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        hidden = torch.zeros(1, 4, 16)
        for start in range(0, text.shape[1] - 6, 5):
            x, y = text[:, start : start + 5], text[:, start + 1 : start + 6]
            optimizer.zero_grad()
            logits, hidden = model(x, hidden)  # related
            loss = criterion(logits.reshape(-1, 20), y.reshape(-1))
            loss.backward()  # died: graph-freed
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


fit(torch.randint(0, 20, (4, 40)))
