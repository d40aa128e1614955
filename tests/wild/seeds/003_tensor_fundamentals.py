"""From "PyTorch Gradient Accumulation - 200 Epoch Silent Failure", section Tensors.

Repaired: nothing. Expected: nothing. The normalised row in the document differs from the output of the program.
"""
import torch

# --- Creating tensors from real data ---
# Simulating a tiny dataset: 4 house sizes (sq ft) and their prices ($k)
house_sizes = torch.tensor([750.0, 1200.0, 1800.0, 2400.0])  # 1D tensor, shape (4,)
house_prices = torch.tensor([150.0, 220.0, 310.0, 410.0])    # 1D tensor, shape (4,)

print("Sizes tensor:", house_sizes)
print("Shape:", house_sizes.shape)
print("Data type:", house_sizes.dtype)

# --- 2D tensor: batch of data (rows = samples, cols = features) ---
feature_matrix = torch.tensor([
    [750.0,  3.0, 1.0],   # size, bedrooms, bathrooms
    [1200.0, 4.0, 2.0],
    [1800.0, 4.0, 3.0],
    [2400.0, 5.0, 3.0],
])
print("\nFeature matrix shape:", feature_matrix.shape)

# --- Device awareness: check and move to GPU if available ---
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print("\nUsing device:", device)

feature_matrix = feature_matrix.to(device)
print("Feature matrix device:", feature_matrix.device)

# --- Useful tensor operations ---
means = feature_matrix.mean(dim=0)
stds  = feature_matrix.std(dim=0)
normalised = (feature_matrix - means) / stds

print("\nNormalised features (first row):", normalised[0])

# --- requires_grad: opting a tensor INTO gradient tracking ---
weight = torch.tensor([0.15], requires_grad=True)  # our model's single weight
bias   = torch.tensor([10.0], requires_grad=True)  # our model's bias term

print("\nWeight requires grad:", weight.requires_grad)
print("House sizes requires grad:", house_sizes.requires_grad)

# --- Checking tensor metadata in one place ---
for name, t in [("weight", weight), ("bias", bias), ("sizes", house_sizes)]:
    print(f"{name:8s} | dtype: {t.dtype} | device: {t.device} | requires_grad: {t.requires_grad}")
