"""Numbers written backwards with another alphabet: a class, attention with masks, padding, decoding, exact matches."""

import math
import random

import torch
import torch.nn.functional as F
from torch import nn

PAD, BOS, EOS, LETTERS = 0, 1, 2, 10


def pairs(count, rng):
    made = []
    for _ in range(count):
        source = [rng.randrange(LETTERS) for _ in range(rng.randint(3, 7))]
        made.append(([3 + s for s in source], [BOS] + [3 + (s * 3 + 1) % LETTERS for s in reversed(source)] + [EOS]))
    return made


def collate(items):
    def pad(rows):
        width = max(map(len, rows))
        return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])

    return pad([source for source, _ in items]), pad([target for _, target in items])


class Translator(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.dim = dim
        self.source = nn.Embedding(3 + LETTERS, dim, padding_idx=PAD)
        self.target = nn.Embedding(3 + LETTERS, dim, padding_idx=PAD)
        self.encoder = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * dim, dim)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.query, self.key = nn.Linear(dim, dim), nn.Linear(2 * dim, dim)
        self.mix = nn.Linear(3 * dim, dim)
        self.out = nn.Linear(dim, 3 + LETTERS)

    def encode(self, source):
        memory, last = self.encoder(self.source(source))
        start = torch.tanh(self.bridge(torch.cat([last[0], last[1]], dim=-1)))
        return memory, start.unsqueeze(0)

    def decode(self, tokens, state, memory, blank):
        hidden, state = self.decoder(self.target(tokens), state)
        scores = self.query(hidden) @ self.key(memory).transpose(1, 2) / math.sqrt(self.dim)
        weights = scores.masked_fill(blank.unsqueeze(1), float("-inf")).softmax(dim=-1)
        context = weights @ memory
        return self.out(torch.tanh(self.mix(torch.cat([hidden, context], dim=-1)))), state

    def forward(self, source, tokens):
        memory, state = self.encode(source)
        return self.decode(tokens, state, memory, source == PAD)[0]


class Trainer:
    def __init__(self, model, train, valid):
        self.model, self.train_pairs, self.valid_pairs = model, train, valid
        self.optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
        self.rng = random.Random(5)

    def epoch(self):
        self.model.train()
        self.rng.shuffle(self.train_pairs)
        for i in range(0, len(self.train_pairs), 50):
            source, target = collate(self.train_pairs[i : i + 50])
            logits = self.model(source, target[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
            self.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        nll, right, tokens = 0.0, 0, 0
        for i in range(0, len(self.valid_pairs), 40):
            source, target = collate(self.valid_pairs[i : i + 40])
            logits = self.model(source, target[:, :-1])
            expected = target[:, 1:]
            real = expected != PAD
            nll += F.cross_entropy(logits.flatten(0, 1), expected.flatten(), ignore_index=PAD, reduction="sum").item()
            right += ((logits.argmax(-1) == expected) & real).sum().item()
            tokens += real.sum().item()
        return math.exp(nll / tokens), right / tokens

    @torch.no_grad()
    def translate(self, source, limit=10):
        self.model.eval()
        memory, state = self.model.encode(source)
        token = torch.full((len(source), 1), BOS)
        made = []
        for _ in range(limit):
            logits, state = self.model.decode(token, state, memory, source == PAD)
            token = logits[:, -1:].argmax(-1)
            made.append(token)
        return torch.cat(made, dim=1)

    def exact(self):
        source, target = collate(self.valid_pairs)
        made = self.translate(source)
        hits = 0
        for row, wanted in zip(made.tolist(), target[:, 1:].tolist()):
            row = row[: row.index(EOS)] if EOS in row else row
            hits += row == wanted[: wanted.index(EOS)]
        return hits / len(source)


def main():
    torch.manual_seed(5)
    rng = random.Random(0)
    trainer = Trainer(Translator(), pairs(1500, rng), pairs(200, rng))
    for epoch in range(5):
        trainer.epoch()
        perplexity, accuracy = trainer.evaluate()
        print(f"epoch {epoch} perplexity {perplexity:.3f} tokens {accuracy:.4f} exact {trainer.exact():.4f}")


main()
