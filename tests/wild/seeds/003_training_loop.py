"""From "PyTorch Gradient Accumulation - 200 Epoch Silent Failure", section Building a Real Training Loop.

Repaired: the document cuts the listing off in the class; the class follows the printed model, the loops follow the section's
words (five steps; eval and no_grad together) and the printed lines. Expected: nothing. The document prints 201 parameters
for this model; it has 209.
"""
import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(42)

# --- Dataset: synthetic house price prediction ---
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


# --- Model definition ---
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


model = HousePriceNet(num_features)
print("Model parameters:", sum(p.numel() for p in model.parameters()))
print(model)
optimizer = optim.Adam(model.parameters(), lr=1e-2)
loss_fn = nn.MSELoss()

for epoch in range(50):
    model.train()
    optimizer.zero_grad()
    predictions = model(train_features)
    loss = loss_fn(predictions, train_targets)
    loss.backward()
    grad_norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in model.parameters()))
    optimizer.step()

    model.eval()
    with torch.no_grad():
        val_loss = loss_fn(model(val_features), val_targets)
    if (epoch + 1) % 10 == 0:
        print(f"Epoch {epoch+1} | Train Loss: {loss.item():.4f} | Val Loss: {val_loss.item():.4f} | "
              f"Grad Norm: {grad_norm.item():.4f}")

model.eval()
with torch.inference_mode():
    print(f"Predicted: {model(torch.tensor([[1.0, 1.0, 0.4]])).item():.4f}")
