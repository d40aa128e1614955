"""Healthy: a plain loop with torchmetrics collections, modules with state, updated in training and evaluation."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score

torch.manual_seed(4)
torch.set_num_threads(1)
x = torch.randn(384, 6)
y = x[:, :3].argmax(1)
train = DataLoader(TensorDataset(x[:288], y[:288]), batch_size=32, shuffle=True)
valid = DataLoader(TensorDataset(x[288:], y[288:]), batch_size=48)
model = nn.Sequential(nn.Linear(6, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
metrics = MetricCollection([MulticlassAccuracy(3), MulticlassF1Score(3)])
train_metrics, valid_metrics = metrics.clone("train_"), metrics.clone("valid_")
mean_loss = MeanMetric()

for _ in range(6):
    model.train()
    train_metrics.reset()
    mean_loss.reset()
    for inputs, labels in train:
        logits = model(inputs)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_metrics.update(logits, labels)
        mean_loss(loss.detach())
    model.eval()
    valid_metrics.reset()
    with torch.no_grad():
        for inputs, labels in valid:
            valid_metrics(model(inputs), labels)
results = {name: round(float(value), 2) for name, value in (train_metrics.compute() | valid_metrics.compute()).items()}
print(results, f"{float(mean_loss.compute()):.2f}")
