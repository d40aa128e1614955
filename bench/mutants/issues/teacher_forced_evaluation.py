"""Encoder-decoder with scheduled teacher forcing: reverse a sequence and add one to each symbol."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SOS = 0
SYMBOLS = 12
VOCAB = SYMBOLS + 1
LENGTH = 6


class Encoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, src):
        _, hidden = self.rnn(self.embed(src))
        return hidden


class Decoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, token, hidden):
        output, hidden = self.rnn(self.embed(token).unsqueeze(1), hidden)
        return self.out(output.squeeze(1)), hidden


class Seq2Seq(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.encoder = Encoder(dim)
        self.decoder = Decoder(dim)

    def forward(self, src, trg, teacher_forcing_ratio=0.9):
        hidden = self.encoder(src)
        token = torch.full((len(src),), SOS)
        outputs = []
        for t in range(trg.size(1)):
            logits, hidden = self.decoder(token, hidden)
            outputs.append(logits)
            use_gold = random.random() < teacher_forcing_ratio
            token = trg[:, t] if use_gold else logits.argmax(1)
        return torch.stack(outputs, dim=1)


def make_dataset(n):
    # a random walk over the symbols: neighbours in the sequence are related
    steps = torch.randint(-1, 2, (n, LENGTH)).cumsum(1)
    src = (torch.randint(0, SYMBOLS, (n, 1)) + steps) % SYMBOLS
    trg = (src.flip(1) + 1) % SYMBOLS
    return TensorDataset(src + 1, trg + 1)


def evaluate(model, loader, criterion):
    model.eval()
    loss = token_hits = sequence_hits = tokens = 0
    with torch.no_grad():
        for src, trg in loader:
            output = model(src, trg, teacher_forcing_ratio=0.0)
            loss += criterion(output.reshape(-1, VOCAB), trg.reshape(-1)).item() * trg.numel()
            hits = output.argmax(-1) == trg
            token_hits += hits.sum().item()
            sequence_hits += hits.all(1).sum().item()
            tokens += trg.numel()
    return loss / tokens, token_hits / tokens, sequence_hits / len(loader.dataset)


def main():
    random.seed(8)
    torch.manual_seed(8)
    train_loader = DataLoader(make_dataset(1200), batch_size=40, shuffle=True)
    val_loader = DataLoader(make_dataset(300), batch_size=100)
    model = Seq2Seq()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(1, 8):
        model.train()
        for src, trg in train_loader:
            optimizer.zero_grad()
            output = model(src, trg)
            loss = criterion(output.reshape(-1, VOCAB), trg.reshape(-1))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        val_loss, token_acc, seq_acc = evaluate(model, val_loader, criterion)
        print(f"epoch {epoch}: val loss {val_loss:.4f} token acc {token_acc:.4f} sequence acc {seq_acc:.4f}")


if __name__ == "__main__":
    main()
