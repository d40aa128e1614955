"""Tags for samples: the head ends in torch.sigmoid, and BCEWithLogitsLoss with pos_weight applies another one."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(12, 24)
        self.head = nn.Linear(24, 5)

    def forward(self, x):
        return torch.sigmoid(self.head(torch.relu(self.body(x))))


x = torch.randn(300, 12)
tags = (x @ torch.randn(12, 5) > 1).float()
model = Tagger()
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.full((5,), 2.0))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(4):
    for i in range(0, 300, 50):
        optimizer.zero_grad()
        scores = model(x[i:i + 50])
        loss = criterion(scores, tags[i:i + 50])  # error: sigmoid-before-bce-with-logits
        loss.backward()
        optimizer.step()
print(loss.item())
