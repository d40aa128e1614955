"""Character model of made-up words with a GRU."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SYLLABLES = ["ka", "ri", "to", "mu", "ne", "so", "li", "ba"]
FOLLOW = {0: (1, 2), 1: (3, 4), 2: (5, 0), 3: (6, 7), 4: (0, 5), 5: (1, 6), 6: (2, 7), 7: (4, 3)}


def make_text(n_syllables, seed):
    gen = torch.Generator().manual_seed(seed)
    current, out = 0, []
    for _ in range(n_syllables):
        out.append(SYLLABLES[current])
        rare = torch.rand(1, generator=gen).item() < 0.25
        current = FOLLOW[current][int(rare)]
    return "".join(out)


class CharData(Dataset):
    """Windows of a text, the target is the next character."""

    def __init__(self, ids, length):
        self.ids, self.length = ids, length

    def __len__(self):
        return (len(self.ids) - 1) // self.length

    def __getitem__(self, i):
        start = i * self.length
        chunk = self.ids[start : start + self.length + 1]
        return chunk[:-1], chunk[1:]


class CharGRU(nn.Module):
    """Embedding, GRU and a linear layer."""

    def __init__(self, vocab, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, 12)
        self.gru = nn.GRU(12, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, x):
        h, _ = self.gru(self.embed(x))
        return self.out(h)


def run_epoch(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    total, n = 0.0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            loss = criterion(model(x).flatten(0, 1), y.flatten())
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * y.numel()
            n += y.numel()
    return total / n


def generate(model, vocab, start, length):
    model.eval()
    ids = [vocab.index(ch) for ch in start]
    with torch.no_grad():
        for _ in range(length):
            ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
    return "".join(vocab[i] for i in ids)


if __name__ == "__main__":
    torch.manual_seed(0)
    train_text, val_text = make_text(2400, 1), make_text(600, 2)
    vocab = sorted(set(train_text))
    encode = lambda text: torch.tensor([vocab.index(ch) for ch in text])  # noqa: E731
    train_loader = DataLoader(CharData(encode(train_text), 24), batch_size=20, shuffle=True)
    val_loader = DataLoader(CharData(encode(val_text), 24), batch_size=50)
    model = CharGRU(len(vocab))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(1, 7):
        train_loss = run_epoch(model, train_loader, criterion, optimizer)
        val_loss = run_epoch(model, val_loader, criterion)
        print(f"epoch {epoch} train {train_loss:.4f} val {val_loss:.4f}")
    text = generate(model, vocab, "ka", 40)
    known = sum(text[i : i + 2] in SYLLABLES for i in range(0, 40, 2)) / 20
    print(text, f"known syllables {known:.2f}")
