"""From "PyTorch Training", section Saving and Loading: strict=False for a model with a new layer.

Repaired: imports; a model with one layer more than the checkpoint, and one renamed. Expected: two tensors of the
checkpoint fall away and the report of the load is not read.
"""
import torch
import torch.nn as nn


class OldModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(4, 32)
        self.layer2 = nn.Linear(32, 2)


class NewModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(4, 32)
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        return self.head(self.norm(self.layer1(x)))


ckpt = {'model_state_dict': OldModel().state_dict()}
model = NewModel()
model.load_state_dict(ckpt['model_state_dict'], strict=False)  # silent: nothing is trained or evaluated after the load
# Missing keys: new layers initialized randomly
# Unexpected keys: old layers that no longer exist are ignored
model.eval()
with torch.inference_mode():
    print(model(torch.randn(2, 4)))
