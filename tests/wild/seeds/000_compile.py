"""From "PyTorch Training", section torch.compile: one line, and the three modes.

Repaired: lost indentation; imports; the compiled call uses the backend "eager", because code generation takes longer than a
test may; the three modes are only wrapped, as printed. Expected: nothing.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)


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


device = torch.device('cpu')
model = SentimentClassifier().to(device)
model = torch.compile(model, backend='eager')  # one line
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(64, 4), torch.randint(0, 2, (64,))
for step in range(5):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
print(f"loss={loss.item():.4f}")

torch.compile(model, mode='default')  # safe, moderate speedup
torch.compile(model, mode='reduce-overhead')  # uses CUDA graphs
torch.compile(model, mode='max-autotune')  # benchmarks multiple kernel variants
