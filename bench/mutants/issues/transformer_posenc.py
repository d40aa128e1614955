"""Token order classification with a small transformer encoder."""
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

VOCAB, SEQ_LEN, D_MODEL = 24, 8, 32
OPEN, CLOSE = 1, 2


def make_corpus(n):
    """Label 1 when OPEN comes before CLOSE, or when OPEN stands alone."""
    tokens = torch.randint(3, VOCAB, (n, SEQ_LEN))
    labels = torch.zeros(n, dtype=torch.long)
    for i in range(n):
        a, b = torch.randperm(SEQ_LEN)[:2].tolist()
        kind = torch.rand(()).item()
        if kind < 0.2:
            tokens[i, a] = OPEN
            labels[i] = 1
        elif kind < 0.4:
            tokens[i, b] = CLOSE
        else:
            tokens[i, a], tokens[i, b] = OPEN, CLOSE
            labels[i] = int(a < b)
    return tokens, labels


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=512, dropout=0.05):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        x = x + self.pe[:, :x.size(1)]
        return self.dropout(x)


class OrderClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, D_MODEL)
        self.pos = PositionalEncoding(D_MODEL)
        layer = nn.TransformerEncoderLayer(D_MODEL, nhead=2, dim_feedforward=64,
                                           dropout=0.05, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)
        self.head = nn.Linear(D_MODEL, 2)

    def forward(self, tokens):
        x = self.embed(tokens) * math.sqrt(D_MODEL)
        x = self.encoder(self.pos(x))
        return self.head(x.mean(dim=1))


def run_epoch(model, loader, criterion, optimizer):
    model.train()
    total = 0.0
    for tokens, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(tokens), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    return total / len(loader.dataset)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = 0
    for tokens, labels in loader:
        correct += (model(tokens).argmax(dim=1) == labels).sum().item()
    return correct / len(loader.dataset)


def main():
    train_set = TensorDataset(*make_corpus(1600))
    val_set = TensorDataset(*make_corpus(600))
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=100)

    model = OrderClassifier()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(1, 11):
        train_loss = run_epoch(model, train_loader, criterion, optimizer)
        val_acc = evaluate(model, val_loader)
        print(f"epoch {epoch:2d}  train loss {train_loss:.4f}  val acc {val_acc:.4f}")


if __name__ == "__main__":
    main()
