import random
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


@dataclass
class Config:
    vocab_size: int = 200
    pad_id: int = 0
    embed_dim: int = 24
    hidden_dim: int = 32
    batch_size: int = 32
    epochs: int = 6
    lr: float = 5e-3
    seed: int = 7


POSITIVE = range(1, 31)
NEGATIVE = range(31, 61)
NEGATION = range(61, 66)


def make_review(rng, cfg):
    """A review is positive if more positive than negative words occur; a negation flips the next word."""
    length = rng.choice([5, 6, 8, 10, 14, 40])
    words, score, flip = [], 0, 1
    for _ in range(length):
        u = rng.random()
        if u < 0.15:
            words.append(rng.choice(NEGATION))
            flip = -1
            continue
        if u < 0.40:
            words.append(rng.choice(POSITIVE))
            score += flip
        elif u < 0.65:
            words.append(rng.choice(NEGATIVE))
            score -= flip
        else:
            words.append(rng.randrange(66, cfg.vocab_size))
        flip = 1
    return torch.tensor(words), int(score > 0)


def collate(batch):
    texts, labels = zip(*batch)
    lengths = torch.tensor([len(t) for t in texts])
    return pad_sequence(texts, batch_first=True, padding_value=0), lengths, torch.tensor(labels)


class SentimentLSTM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embedding = nn.Embedding(cfg.vocab_size, cfg.embed_dim, padding_idx=cfg.pad_id)
        self.lstm = nn.LSTM(cfg.embed_dim, cfg.hidden_dim, batch_first=True)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(cfg.hidden_dim, 2)

    def forward(self, text, lengths):
        outputs, _ = self.lstm(self.embedding(text))
        last = outputs[torch.arange(len(text)), lengths - 1]
        return self.fc(self.dropout(last))


def accuracy(model, loader):
    model.eval()
    hits = n = 0
    with torch.no_grad():
        for text, lengths, labels in loader:
            hits += (model(text, lengths).argmax(1) == labels).sum().item()
            n += len(labels)
    return hits / n


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    rng = random.Random(cfg.seed)
    reviews = [make_review(rng, cfg) for _ in range(1600)]
    train_loader = DataLoader(reviews[:1200], batch_size=cfg.batch_size, shuffle=True, collate_fn=collate)
    valid_loader = DataLoader(reviews[1200:], batch_size=100, collate_fn=collate)

    model = SentimentLSTM(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(cfg.epochs):
        model.train()
        epoch_loss = 0.0
        for text, lengths, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(text, lengths), labels)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item() * len(labels)
        print(f"Epoch {epoch + 1}: train loss {epoch_loss / 1200:.4f}, valid acc {accuracy(model, valid_loader):.4f}")


if __name__ == "__main__":
    main()
