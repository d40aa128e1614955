"""A character model carries the state of its LSTM on; the fused optimizer lets the passes through old graphs succeed."""
import torch
from torch import nn

torch.manual_seed(0)


class Characters(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.head = nn.Embedding(12, 8), nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 12)

    def forward(self, text, state):
        output, state = self.lstm(self.embed(text), state)
        return self.head(output), state


model, state = Characters(), None
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
text = torch.randint(0, 12, (4, 301))
for start in range(0, 300, 6):
    x, y = text[:, start : start + 6], text[:, start + 1 : start + 7]
    logits, state = model(x, state)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward(retain_graph=True)  # error: hidden-state-not-detached
    optimizer.step()
print(loss.item())
