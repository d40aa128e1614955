"""Words are to be predicted that the model sees: the labels are kept where nothing is masked."""
import torch
from torch import nn

WORDS, LENGTH, MASK = 30, 12, 29


class Masked(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.places = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        self.mix = nn.TransformerEncoderLayer(width, 2, 48, dropout=0.0, batch_first=True)
        self.out = nn.Linear(width, WORDS)

    def forward(self, words):
        return self.out(self.mix(self.words(words) + self.places))


torch.manual_seed(0)
model = Masked()
optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
for step in range(60):
    words = (torch.randint(0, 28, (32, 1)) + torch.arange(LENGTH)) % 28
    hidden = torch.rand(words.shape) < 0.15
    seen = words.masked_fill(hidden, MASK)
    wanted = words.masked_fill(hidden, -100)
    loss = nn.functional.cross_entropy(model(seen).flatten(0, 1), wanted.flatten())  # error: target-in-input
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
