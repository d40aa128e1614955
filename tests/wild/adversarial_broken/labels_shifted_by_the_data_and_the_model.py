"""A causal model in the manner of a library shifts its labels; the collate function has shifted them before."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

torch.manual_seed(1)
WORDS, LENGTH = 20, 15
follows = torch.stack([torch.randperm(WORDS) for _ in range(2)])
rows = [torch.randint(0, WORDS, (500,))]
for _ in range(LENGTH):
    rows.append(follows[torch.randint(0, 2, (500,)), rows[-1]])
texts = torch.stack(rows, dim=1)


class CausalModel(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(WORDS, width), nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, WORDS, bias=False)

    def forward(self, input_ids, labels=None):
        logits = self.head(self.rnn(self.embed(input_ids))[0])
        if labels is None:
            return {"logits": logits}
        shifted = F.pad(labels, (0, 1), value=-100)[:, 1:]
        loss = F.cross_entropy(logits.view(-1, WORDS), shifted.reshape(-1), ignore_index=-100)  # error: target-in-input
        return {"loss": loss, "logits": logits}


def collate(samples):
    batch = torch.stack(samples)
    return {"input_ids": batch[:, :-1], "labels": batch[:, 1:]}


model = CausalModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
loader = DataLoader(list(texts[:400]), batch_size=40, shuffle=True, collate_fn=collate)
for epoch in range(5):
    model.train()
    for batch in loader:
        loss = model(**batch)["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch}: {model(texts[400:, :-1], labels=texts[400:, 1:])['loss']:.3f}")
