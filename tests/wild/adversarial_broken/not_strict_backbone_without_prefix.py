"""A pretrained backbone is loaded into the classifier around it: its keys lack the prefix `backbone.`."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


pretrained = Classifier(7).backbone.state_dict()
model = Classifier(3)
model.load_state_dict(pretrained, strict=False)  # error: load-not-strict-silently
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(30):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(16, 10)), torch.randint(0, 3, (16,))).backward()
    optimizer.step()
