"""A recurrent encoder and decoder with attention: the optimizer gets the parameters of the first."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(3)
WORDS, DIM, LENGTH = 16, 24, 6


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, DIM)
        self.rnn = nn.GRU(DIM, DIM, batch_first=True, bidirectional=True)

    def forward(self, source):
        states, last = self.rnn(self.embed(source))
        return states, last.sum(0)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.query = nn.Embedding(WORDS, DIM), nn.Linear(DIM, 2 * DIM)
        self.cell, self.out = nn.GRUCell(3 * DIM, DIM), nn.Linear(3 * DIM, WORDS)

    def forward(self, word, state, memory):
        weights = F.softmax(torch.bmm(memory, self.query(state).unsqueeze(2)).squeeze(2), 1)
        context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
        state = self.cell(torch.cat([self.embed(word), context], 1), state)
        return self.out(torch.cat([state, context], 1)), state


encoder, decoder = Encoder(), Decoder()
params = list(encoder.parameters())
opt = torch.optim.Adam(params, lr=3e-3)  # error: parameters-not-optimized
for step in range(160):
    source = torch.randint(2, WORDS, (32, LENGTH))
    target = source.flip(1)
    memory, state = encoder(source)
    word, loss = torch.ones(32, dtype=torch.long), 0.0
    for at in range(LENGTH):
        logits, state = decoder(word, state, memory)
        loss = loss + F.cross_entropy(logits, target[:, at]) / LENGTH
        word = target[:, at]
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 1.0)
    opt.step()
    if step % 20 == 0:
        print(step, loss.item())
