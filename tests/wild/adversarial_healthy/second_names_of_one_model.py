"""Second names of a trained model without a second model: a wrapper's module, tied embeddings, a target to be attacked."""
import torch
from torch import nn

torch.manual_seed(0)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.source_embedding = nn.Embedding(20, 12)
        self.target_embedding = self.source_embedding
        self.mix = nn.Linear(24, 20)

    def forward(self, left, right):
        both = torch.cat([self.source_embedding(left), self.target_embedding(right)], dim=1)
        return self.mix(both)


model = Tied()
target_model = module = model
optimizer = torch.optim.Adam(target_model.parameters(), lr=1e-2)
for step in range(90):
    left, right = torch.randint(0, 20, (2, 64))
    loss = nn.functional.cross_entropy(model(left, right), (left + right) % 20)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        target_model.eval()
        with torch.no_grad():
            accuracy = (target_model(left, right).argmax(1) == (left + right) % 20).float().mean().item()
        target_model.train()
print(f"{loss.item():.3f} {accuracy:.3f}")
