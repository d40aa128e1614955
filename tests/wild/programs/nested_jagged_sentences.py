"""Sentences of different lengths without padding: nested tensors in the jagged layout."""

import torch
from torch import nn
import torch.nn.functional as F


class Bag(nn.Module):
    def __init__(self, vocabulary=100, width=32, classes=3):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.mix = nn.Linear(width, width)
        self.head = nn.Linear(width, classes)

    def forward(self, sentences):
        words = F.relu(self.mix(self.embed(sentences)))
        lengths = sentences.offsets().diff()[:, None]
        return self.head(words.to_padded_tensor(0.0).sum(dim=1) / lengths)


def make(n, generator):
    sentences, labels = [], []
    for _ in range(n):
        label = int(torch.randint(3, (), generator=generator))
        length = int(torch.randint(3, 15, (), generator=generator))
        own = torch.randint(label * 30, label * 30 + 40, (length,), generator=generator)
        sentences.append(own)
        labels.append(label)
    return sentences, torch.tensor(labels)


def main():
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(5)
    x, y = make(640, generator)
    x_test, y_test = make(200, generator)
    model = Bag()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for epoch in range(5):
        model.train()
        total = 0.0
        for chunk in torch.randperm(len(x)).split(32):
            batch = torch.nested.nested_tensor([x[i] for i in chunk], layout=torch.jagged)
            loss = F.cross_entropy(model(batch), y[chunk])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.inference_mode():
            logits = model(torch.nested.nested_tensor(x_test, layout=torch.jagged))
        print(epoch, round(total / 20, 3), (logits.argmax(1) == y_test).float().mean().item())


main()
