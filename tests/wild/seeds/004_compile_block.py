"""From "PyTorch Debugging, Lab & Modern Performance", section torch.compile and PyTorch 2.x (fragment 0.4.17).

Repaired: a small block (d_model 64 for 512), input, CUDA -> CPU, and the backend "eager" with the mode dropped, because code generation takes
longer than a test may. Expected: nothing.
"""
import torch
import torch.nn as nn


class MyTransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(d_model, n_heads, 2 * d_model, dropout=0.0, batch_first=True)

    def forward(self, x):
        return self.layer(x)


# Define a simple model
model = MyTransformerBlock(d_model=64, n_heads=8)
input_tensor = torch.randn(4, 16, 64)

# Without torch.compile: standard eager execution
output_eager = model(input_tensor)

# With torch.compile: optimized execution
compiled_model = torch.compile(model, backend="eager")

# First call triggers compilation (slow), subsequent calls are fast
output_compiled = compiled_model(input_tensor)
print((output_eager - output_compiled).abs().max().item())
