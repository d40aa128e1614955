"""From "The annotated PyTorch training loop" (both copies of the essay in the seeds carry the same listings),
sections The model, and Device placement: the optimiser is built after the move, the batches are moved one by one.

Repaired: lost indentation; data. The loop's body ends with the moves, as printed. Expected: nothing.
"""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class MLP(nn.Module):
    def __init__(self, in_features, hidden, out_features):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(in_features, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, out_features),
        )

    def forward(self, x):
        return self.net(x)


loader = DataLoader(TensorDataset(torch.randn(320, 2), torch.randint(0, 3, (320,))), batch_size=64, shuffle=True)
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')

model = MLP(in_features=2, hidden=128, out_features=3).to(device)
# construct optimiser AFTER moving model: it captures parameter references
optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

# per-batch: move data to device
for X_batch, y_batch in loader:
    X_batch = X_batch.to(device, non_blocking=True)
    y_batch = y_batch.to(device, non_blocking=True)
print(X_batch.device, len(optimiser.param_groups[0]['params']))
