"""From "PyTorch Training", sections nn.Module and Device Management: the classifier, moved to a device and called.

Repaired: lost indentation; the call and the prints. Expected: nothing.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


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


device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
model = SentimentClassifier().to(device)  # in-place for modules
inputs = torch.randn(16, 4)
inputs = inputs.to(device)  # NOT in-place for tensors
print(model(inputs).shape, sum(p.numel() for p in model.parameters()))
