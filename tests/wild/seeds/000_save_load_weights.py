"""From "PyTorch Training", sections Saving and Loading, and Inference: weights only, then both switches.

Repaired: lost indentation; imports; `device` and `inputs`; the file lies in a temporary folder. Expected: nothing.
"""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
device = torch.device('cpu')
inputs = torch.randn(16, 4)


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


model = SentimentClassifier()
# Save weights only
torch.save(model.state_dict(), 'model_weights.pt')
# Load weights: create architecture first, then load state
model = SentimentClassifier()
model.load_state_dict(torch.load('model_weights.pt', map_location=device))
model.to(device)
model.eval()

model.eval()  # switch 1: change layer behavior
with torch.inference_mode():  # switch 2: disable gradient tracking
    outputs = model(inputs.to(device))
    predictions = outputs.argmax(dim=1)
print(predictions.shape)
os.chdir('/')
