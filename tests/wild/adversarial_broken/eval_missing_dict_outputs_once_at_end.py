"""HF-style outputs; the test set is predicted once, at the end, without eval()."""
from types import SimpleNamespace

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self, vocab=40, d=24, labels=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        layer = nn.TransformerEncoderLayer(d, 2, 48, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.score = nn.Linear(d, labels)

    def forward(self, input_ids, labels=None):
        logits = self.score(self.encoder(self.embed(input_ids)).mean(1))
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return SimpleNamespace(loss=loss, logits=logits)


def items(n):
    return [{"input_ids": torch.randint(0, 40, (10,)), "labels": torch.tensor(i % 2)} for i in range(n)]


train_dataloader = DataLoader(items(64), batch_size=8, shuffle=True)
test_dataloader = DataLoader(items(32), batch_size=8)
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
for epoch in range(2):
    model.train()
    for batch in train_dataloader:
        outputs = model(**batch)
        outputs.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
predictions = []
with torch.inference_mode():
    for batch in test_dataloader:
        outputs = model(batch["input_ids"])  # error: eval-mode-missing
        predictions.append(outputs.logits.argmax(-1))
print(torch.cat(predictions).float().mean())
