"""CTC on synthetic tones: spectrogram frames, sequences of unequal length padded by a collate function, greedy decoding and error rate."""
import math

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

BLANK, NOTES, FRAME = 0, 5, 32


class Tones(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            label = torch.randint(1, NOTES + 1, (int(torch.randint(2, 5, (1,), generator=g)),), generator=g)
            wave = []
            for note in label.tolist():
                length = FRAME * int(torch.randint(2, 5, (1,), generator=g))
                wave += [torch.sin(2 * math.pi * (note + 1) / FRAME * torch.arange(length)), torch.zeros(FRAME)]
            wave = torch.cat(wave)
            self.items.append((wave + 0.1 * torch.randn(len(wave), generator=g), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        wave, label = self.items[i]
        spectrum = torch.fft.rfft(wave.view(-1, FRAME) * torch.hann_window(FRAME)).abs()
        return torch.log1p(spectrum), label


def collate(samples):
    frames, labels = zip(*samples)
    return (
        pad_sequence(frames, batch_first=True), torch.tensor([len(f) for f in frames]),
        torch.cat(labels), torch.tensor([len(l) for l in labels]),
    )


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(nn.Linear(FRAME // 2 + 1, 32), nn.ReLU())
        self.rnn = nn.GRU(32, 24, batch_first=True, bidirectional=True)
        self.out = nn.Linear(48, NOTES + 1)

    def forward(self, x):
        return self.out(self.rnn(self.front(x))[0]).log_softmax(-1)


def greedy(log_probs, lengths):
    for best, length in zip(log_probs.argmax(-1), lengths):
        collapsed = torch.unique_consecutive(best[:length])
        yield collapsed[collapsed != BLANK].tolist()


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


def error_rate(model, loader):
    model.eval()
    errors = total = 0
    with torch.no_grad():
        for x, lengths, labels, label_lengths in loader:
            for guess, truth in zip(greedy(model(x), lengths), labels.split(label_lengths.tolist())):
                errors += edit_distance(guess, truth.tolist())
                total += len(truth)
    return errors / total


def main():
    torch.manual_seed(4)
    train = DataLoader(Tones(240, 0), batch_size=16, shuffle=True, collate_fn=collate)
    test = DataLoader(Tones(60, 1), batch_size=30, collate_fn=collate)
    model = Recogniser()
    criterion = nn.CTCLoss(blank=BLANK, zero_infinity=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, steps_per_epoch=len(train), epochs=6)
    for epoch in range(6):
        model.train()
        for x, lengths, labels, label_lengths in train:
            optimizer.zero_grad()
            loss = criterion(model(x).transpose(0, 1), labels, lengths, label_lengths)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
        print(f"epoch {epoch} loss {loss.item():.3f} error rate {error_rate(model, test):.3f}")


main()
