"""From "PyTorch Training", section Putting It All Together: the complete script.

Repaired: lost indentation; the class from an earlier section; the file goes to a temporary folder; 20 epochs -> 5. Expected: its labels are
random, so there is nothing to learn; that has no line. Its workers start again for every epoch of some milliseconds,
and weight decay covers the norm and the biases.
"""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.amp import GradScaler, autocast

torch.set_num_threads(1)

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)


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


# -- Setup --
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
X_train = torch.randn(1000, 4)
y_train = torch.randint(0, 2, (1000,))
X_val = torch.randn(200, 4)
y_val = torch.randint(0, 2, (200,))
train_loader = DataLoader(TensorDataset(X_train, y_train),  # silent: workers-respawned reports waits of seconds
                          batch_size=64, shuffle=True, num_workers=2, pin_memory=True)
val_loader = DataLoader(TensorDataset(X_val, y_val),  # silent: workers-respawned reports waits of seconds
                        batch_size=128, shuffle=False, num_workers=2, pin_memory=True)
# -- Model --
model = SentimentClassifier(input_dim=4, hidden_dim=64, num_classes=2)
model = model.to(device)
# model = torch.compile(model)  # uncomment for PyTorch 2.0+ speedup
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)  # no rule: nothing was measured yet
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)
scaler = GradScaler('cuda', enabled=(device.type == 'cuda'))
# -- Training --
best_val_loss = float('inf')
for epoch in range(5):
    model.train()
    train_loss = 0.0
    for inputs, targets in train_loader:
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad(set_to_none=True)
        with autocast('cuda', enabled=(device.type == 'cuda')):
            outputs = model(inputs)
            loss = criterion(outputs, targets)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()
        train_loss += loss.item() * inputs.size(0)
    scheduler.step()
    # -- Validation --
    model.eval()
    val_loss, correct = 0.0, 0
    with torch.inference_mode():
        for inputs, targets in val_loader:
            inputs, targets = inputs.to(device), targets.to(device)
            outputs = model(inputs)
            val_loss += criterion(outputs, targets).item() * inputs.size(0)
            correct += (outputs.argmax(1) == targets).sum().item()
    avg_train = train_loss / len(train_loader.dataset)
    avg_val = val_loss / len(val_loader.dataset)
    val_acc = correct / len(val_loader.dataset)
    print(f"Epoch {epoch+1:>2}/5 Train: {avg_train:.4f} "
          f"Val: {avg_val:.4f} Acc: {val_acc:.1%}")
    if avg_val < best_val_loss:
        best_val_loss = avg_val
        torch.save({
            'epoch': epoch,
            'model_state_dict': model.state_dict(),
            'optimizer_state_dict': optimizer.state_dict(),
            'scheduler_state_dict': scheduler.state_dict(),
            'val_loss': avg_val,
        }, 'best_model.pt')
os.chdir('/')
