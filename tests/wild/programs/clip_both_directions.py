"""Healthy: image-text contrastive loss in both directions, log_softmax over rows and over columns of one square matrix."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(21)
torch.set_num_threads(1)

meaning = torch.randn(320, 6)
images = torch.tanh(meaning @ torch.randn(6, 20)) + 0.1 * torch.randn(320, 20)
texts = torch.tanh(meaning @ torch.randn(6, 14)) + 0.1 * torch.randn(320, 14)


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 8))
        self.text = nn.Sequential(nn.Linear(14, 32), nn.ReLU(), nn.Linear(32, 8))
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, image, text):
        image, text = F.normalize(self.image(image), dim=1), F.normalize(self.text(text), dim=1)
        return self.scale.exp() * image @ text.t()


model = TwoTowers()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(8):
    for rows in torch.randperm(320).split(48):  # the last batch is smaller
        similarity = model(images[rows], texts[rows])
        matching = torch.arange(len(rows))
        to_text = F.nll_loss(F.log_softmax(similarity, dim=1), matching)
        to_image = F.nll_loss(F.log_softmax(similarity, dim=0), matching)
        loss = (to_text + to_image) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.3f}")

model.eval()
with torch.no_grad():
    found = model(images[:100], texts[:100]).argmax(1) == torch.arange(100)
print(f"retrieval {found.float().mean():.3f}")
