"""A segmentation test at the end of the script, with graphs."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 2, 1))
images, masks = torch.randn(32, 1, 12, 12), torch.randint(0, 2, (32, 12, 12))
train_dl = DataLoader(TensorDataset(images[:24], masks[:24]), batch_size=4, shuffle=True)
test_dl = DataLoader(TensorDataset(images[24:], masks[24:]), batch_size=4)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(3):
    model.train()
    for x, m in train_dl:
        opt.zero_grad()
        nn.functional.cross_entropy(model(x), m).backward()
        opt.step()
model.eval()
intersection = union = 0
for x, m in test_dl:
    p = model(x).argmax(1)  # error: no-grad-missing
    intersection += ((p == 1) & (m == 1)).sum().item()
    union += ((p == 1) | (m == 1)).sum().item()
print("IoU", intersection / max(1, union))
