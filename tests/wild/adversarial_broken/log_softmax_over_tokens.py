"""A tagger with a log_softmax over the sentences of the batch: dim=0 of (batch, tokens, tags), then flattened."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 12)
        self.lstm = nn.LSTM(12, 16, batch_first=True)
        self.tag = nn.Linear(16, 4)

    def forward(self, sentences):
        hidden, _ = self.lstm(self.embed(sentences))
        return F.log_softmax(self.tag(hidden), dim=0)


sentences = torch.randint(0, 50, (96, 7))
tags = sentences % 4
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(5):
    for rows in torch.randperm(96).split(16):
        model.zero_grad()
        scores = model(sentences[rows])
        loss = F.nll_loss(scores.view(-1, 4), tags[rows].view(-1))  # error: softmax-wrong-dim
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
