"""From "PyTorch Debugging, Lab & Modern Performance", section torch.export (fragment 0.4.19).

Repaired: a small block, CUDA -> CPU; the file goes to a temporary folder. Expected: nothing.
"""
import os
import tempfile

import torch
import torch.nn as nn
# torch.export: capture a deployment-ready graph
from torch.export import export

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)


class MyTransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(d_model, n_heads, 2 * d_model, dropout=0.0, batch_first=True)

    def forward(self, x):
        return self.layer(x)


model = MyTransformerBlock(d_model=64, n_heads=8).eval()
# Define example inputs for tracing
example_input = torch.randn(1, 16, 64)
# Export the model (captures the full graph)
exported = export(model, (example_input,))
# The exported program can be serialized and loaded
torch.export.save(exported, "model_exported.pt2")
print(os.path.getsize("model_exported.pt2") > 0)
os.chdir('/')
