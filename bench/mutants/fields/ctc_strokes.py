"""Read short strings from noisy feature sequences with CTC."""

import torch
from torch import nn

SYMBOLS, FEATURES, FRAMES = 5, 8, 24
BLANK = 0


def make_batch(n, prototypes, gen):
    """Every symbol (1 to 5) is shown for three or four frames, with a gap before it."""
    x = 0.3 * torch.randn(n, FRAMES, FEATURES, generator=gen)
    targets, lengths = [], []
    for i in range(n):
        k = int(torch.randint(2, 5, (1,), generator=gen))
        symbols = torch.randint(0, SYMBOLS, (k,), generator=gen)
        t = 0
        for s in symbols.tolist():
            t += int(torch.randint(1, 3, (1,), generator=gen))
            width = int(torch.randint(3, 5, (1,), generator=gen))
            x[i, t : t + width] += prototypes[s]
            t += width
        targets.append(symbols + 1)
        lengths.append(k)
    return x, targets, torch.tensor(lengths)


class Reader(nn.Module):
    """Convolution over time and log probabilities of blank and symbols."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(FEATURES, 24, 3, padding=1), nn.ReLU(), nn.Conv1d(24, 24, 3, padding=1))
        self.out = nn.Linear(24, SYMBOLS + 1)

    def forward(self, x):
        h = torch.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        return self.out(h).log_softmax(dim=-1)


def decode(log_probs):
    best = log_probs.argmax(-1)
    result = []
    for row in best:
        row = torch.unique_consecutive(row)
        result.append(row[row != BLANK].tolist())
    return result


def exact_match(model, x, targets):
    model.eval()
    with torch.no_grad():
        decoded = decode(model(x))
    return sum(d == t.tolist() for d, t in zip(decoded, targets, strict=True)) / len(targets)


def main():
    torch.manual_seed(30)
    gen = torch.Generator().manual_seed(31)
    prototypes = torch.randn(SYMBOLS, FEATURES, generator=gen)
    x, targets, lengths = make_batch(300, prototypes, gen)
    x_val, targets_val, _ = make_batch(150, prototypes, gen)
    model = Reader()
    ctc = nn.CTCLoss(blank=BLANK, zero_infinity=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(1, 16):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(30):
            log_probs = model(x[idx]).transpose(0, 1)
            flat = torch.cat([targets[i] for i in idx.tolist()])
            loss = ctc(log_probs, flat, torch.full((len(idx),), FRAMES), lengths[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        if epoch % 3 == 0:
            print(f"epoch {epoch} ctc {total / len(x):.4f} exact {exact_match(model, x_val, targets_val):.4f}")


main()
