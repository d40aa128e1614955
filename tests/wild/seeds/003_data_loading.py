"""From "PyTorch Gradient Accumulation - 200 Epoch Silent Failure", section Data Loading.

Repaired: the document cuts the listing off in the dataset's __init__; the rest follows its words (a loader that shuffles, one
that does not, batches moved to the device) and the printed lines. Expected: nothing.
"""
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

torch.manual_seed(42)
torch.set_num_threads(1)


# --- Custom Dataset for house price data from a CSV-like pattern ---
class HousePriceDataset(Dataset):
    def __init__(self, features, targets):
        self.features = features
        self.targets = targets

    def __len__(self):
        return len(self.features)

    def __getitem__(self, idx):
        return self.features[idx], self.targets[idx]


num_samples  = 100
num_features = 3

# Generate synthetic features and a linear target with realistic noise
raw_features = torch.randn(num_samples, num_features)
true_weights  = torch.tensor([0.5, 0.3, -0.2])  # size helps, age hurts price
target_prices = raw_features @ true_weights + 0.1 * torch.randn(num_samples)

# Train / validation split: 80 / 20
train_size = int(0.8 * num_samples)
train_features, val_features = raw_features[:train_size], raw_features[train_size:]
train_targets,  val_targets  = target_prices[:train_size], target_prices[train_size:]


class HousePriceNet(nn.Module):
    def __init__(self, input_features):
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(input_features, 16),
            nn.ReLU(),
            nn.Linear(16, 8),
            nn.ReLU(),
            nn.Linear(8, 1),
        )

    def forward(self, x):
        return self.network(x).squeeze(1)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
train_loader = DataLoader(HousePriceDataset(train_features, train_targets), batch_size=16, shuffle=True)
val_loader = DataLoader(HousePriceDataset(val_features, val_targets), batch_size=20, shuffle=False)
model = HousePriceNet(num_features).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loss_fn = nn.MSELoss()

for epoch in range(5):
    model.train()
    for features, targets in train_loader:
        features, targets = features.to(device), targets.to(device)
        optimizer.zero_grad()
        loss = loss_fn(model(features), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    val_loss = 0.0
    with torch.no_grad():
        for features, targets in val_loader:
            features, targets = features.to(device), targets.to(device)
            val_loss += loss_fn(model(features), targets).item()
    print(f"Epoch {epoch+1}: Val Loss = {val_loss / len(val_loader):.4f}")
