"""Text classification with a generator of length-sorted batches, packed sequences, label smoothing and a validation set evaluated first."""
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_sequence


class Classifier(nn.Module):
    def __init__(self, vocab, classes=3):
        super().__init__()
        self.embedding = nn.Embedding(vocab, 24)
        self.gru = nn.GRU(24, 24, bidirectional=True)
        self.fc = nn.Linear(48, classes)

    def forward(self, texts):
        packed = pack_sequence(texts, enforce_sorted=True)
        embedded = torch.nn.utils.rnn.PackedSequence(self.embedding(packed.data), packed.batch_sizes)
        _, hidden = self.gru(embedded)
        return self.fc(torch.cat([hidden[0], hidden[1]], dim=1))


def corpus(n, rng):
    """Three topics with their own words among common ones."""
    for _ in range(n):
        topic = rng.randrange(3)
        length = rng.randint(4, 14)
        words = [rng.randrange(20) if rng.random() < 0.6 else 20 + 10 * topic + rng.randrange(10) for _ in range(length)]
        yield torch.tensor(words), topic


def iterate(data, size, rng=None):
    """Yield batches of similar lengths: shuffled in pools of eight batches when there is a random generator."""
    data = list(data)
    if rng is not None:
        rng.shuffle(data)
    batches = []
    for at in range(0, len(data), 8 * size):
        pool = sorted(data[at:at + 8 * size], key=lambda item: -len(item[0]))
        batches += [pool[i:i + size] for i in range(0, len(pool), size)]
    if rng is not None:
        rng.shuffle(batches)
    for batch in batches:
        texts, labels = zip(*batch)
        yield list(texts), torch.tensor(labels)


def evaluate(model, data):
    model.eval()
    correct = 0
    with torch.no_grad():
        for texts, labels in iterate(data, 50):
            correct += (model(texts).argmax(1) == labels).sum().item()
    model.train()
    return correct / len(data)


def main():
    rng = random.Random(12)
    torch.manual_seed(12)
    train, valid = list(corpus(640, rng)), list(corpus(200, rng))
    model = Classifier(50)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    print(f"before training {evaluate(model, valid):.3f}")
    for epoch in range(5):
        total = 0.0
        for texts, labels in iterate(train, 32, rng):
            optimizer.zero_grad()
            loss = criterion(model(texts), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        print(f"epoch {epoch} loss {total / len(train):.3f} accuracy {evaluate(model, valid):.3f}")


if __name__ == "__main__":
    main()
