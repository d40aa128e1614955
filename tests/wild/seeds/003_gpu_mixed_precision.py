"""From "PyTorch Gradient Accumulation - 200 Epoch Silent Failure", section Training on GPU and Mixed Precision.

Repaired: the class and the data of the sections before, one thread. Not repaired: it runs without a GPU as it stands. Expected: the old
names of mixed precision; and on a CPU model both parts switch themselves off with a warning, so all is float32.
"""
import torch
import torch.nn as nn
from torch.cuda.amp import autocast, GradScaler  # a warning of torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
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
train_loader = DataLoader(TensorDataset(train_features, train_targets), batch_size=16, shuffle=True)


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


# --- Device setup: use GPU if available ---
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print(f"Using device: {device}")

model = HousePriceNet(input_features=3).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.MSELoss()

# Mixed precision components
scaler = GradScaler()  # scales loss to avoid underflow in float16

# Training loop with mixed precision
model.train()
for epoch in range(5):
    for batch_idx, (features, targets) in enumerate(train_loader):
        # Move batch to the same device as the model
        features, targets = features.to(device), targets.to(device)

        optimizer.zero_grad()

        # autocast context
        with autocast():  # no rule: ADR 0025
            predictions = model(features)
            loss = loss_fn(predictions, targets)

        # Backprop through scaler
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # optimizer.step() but unscales gradients first
        scaler.update()

    print(f"Epoch {epoch+1} completed")

# Inference: no mixed precision needed, but still need to .to(device)
model.eval()
with torch.inference_mode():
    sample = torch.randn(1, 3).to(device)
    output = model(sample)
    print(f"Sample prediction: {output.item():.4f}")
