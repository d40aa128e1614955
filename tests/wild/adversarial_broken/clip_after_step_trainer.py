"""Clipping was put into the end-of-step method."""
import torch
from torch import nn

torch.manual_seed(0)


class LanguageModel(nn.Module):
    def __init__(self, vocab=30, d=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(d, vocab)

    def forward(self, tokens):
        return self.out(self.rnn(self.emb(tokens))[0])


class Trainer:
    def __init__(self):
        self.model = LanguageModel()
        self.opt = torch.optim.SGD(self.model.parameters(), lr=1.0)

    def finish(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.25)  # error: clip-after-step

    def train_step(self, tokens):
        self.opt.zero_grad()
        logits = self.model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), tokens[:, 1:])
        loss.backward()
        self.opt.step()
        self.finish()
        return loss.item()


t = Trainer()
for step in range(30):
    value = t.train_step(torch.randint(0, 30, (8, 12)))
print(value)
