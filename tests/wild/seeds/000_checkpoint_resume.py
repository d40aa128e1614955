"""From "PyTorch Training", section Saving and Loading: a full checkpoint, and training resumed from it.

Repaired: lost indentation; imports; a small training run around the two fragments, with the checkpoint of epoch 2
instead of 42; files in a temporary folder. Expected: the state of the random generators is not saved, and dropout and
shuffling use it, so the resumed epochs are other epochs than those of a run that was not stopped.
"""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
device = torch.device('cpu')


class SentimentClassifier(nn.Module):
    def __init__(self, input_dim=4, hidden_dim=32, num_classes=2):
        super().__init__()
        self.layer1 = nn.Linear(input_dim, hidden_dim)
        self.bn = nn.BatchNorm1d(hidden_dim)
        self.dropout = nn.Dropout(0.3)
        self.layer2 = nn.Linear(hidden_dim, num_classes)

    def forward(self, x):
        x = self.layer1(x)
        x = self.bn(x)
        x = F.relu(x)
        x = self.dropout(x)
        x = self.layer2(x)
        return x  # raw logits


def build():
    model = SentimentClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)


def train_one_epoch():
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    scheduler.step()
    return loss.item()


torch.manual_seed(0)
X = torch.randn(1000, 4)
y = (X[:, 0] > X[:, 1]).long()
train_loader = DataLoader(TensorDataset(X, y), batch_size=64, shuffle=True)
criterion = nn.CrossEntropyLoss()
model, optimizer, scheduler = build()
best_val_loss = float('inf')
for epoch in range(5):
    best_val_loss = min(best_val_loss, train_one_epoch())
    # Save full checkpoint
    checkpoint = {
        'epoch': epoch,
        'model_state_dict': model.state_dict(),
        'optimizer_state_dict': optimizer.state_dict(),
        'scheduler_state_dict': scheduler.state_dict(),
        'best_val_loss': best_val_loss,
    }
    torch.save(checkpoint, f'checkpoint_epoch_{epoch}.pt')  # no rule: ADR 0018
finished = model.layer1.weight.detach().clone()

model, optimizer, scheduler = build()
# Resume
ckpt = torch.load('checkpoint_epoch_2.pt', map_location=device)
model.load_state_dict(ckpt['model_state_dict'])
optimizer.load_state_dict(ckpt['optimizer_state_dict'])
scheduler.load_state_dict(ckpt['scheduler_state_dict'])
start_epoch = ckpt['epoch'] + 1
for epoch in range(start_epoch, 5):
    train_one_epoch()
print("resumed run differs by", (model.layer1.weight - finished).abs().max().item())
os.chdir('/')
