"""From "PyTorch Debugging, Lab & Modern Performance", section Advanced torch.compile (fragment 0.4.18).

Repaired: a small block and input, CUDA -> CPU, the backend "eager" with the mode dropped. Expected: nothing: the benchmark calls the
model 200 times with gradients on, as a timing may.
"""
import torch
import torch.nn as nn


class MyTransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(d_model, n_heads, 2 * d_model, dropout=0.0, batch_first=True)

    def forward(self, x):
        return self.layer(x)


model = MyTransformerBlock(d_model=64, n_heads=8)
input_tensor = torch.randn(2, 8, 64)

# Strict mode: fails if any graph break is detected
compiled_strict = torch.compile(model, fullgraph=True, backend="eager")

# Dynamic shapes: avoid recompilation when input sizes change
compiled_dynamic = torch.compile(model, dynamic=True, backend="eager")

# Combine max-autotune with fullgraph for production
compiled_prod = torch.compile(
    model,
    backend="eager",
    fullgraph=True,
    dynamic=True,
)

# Debugging: see what the compiler is doing
import torch._dynamo
torch._dynamo.config.verbose = True  # Log graph breaks with tracebacks
torch._dynamo.config.suppress_errors = False  # Fail loudly on issues

# Profile compiled vs. eager to measure actual speedup
import torch.utils.benchmark as bench

timer_eager = bench.Timer(
    stmt="model(x)",
    globals={"model": model, "x": input_tensor},
)
timer_compiled = bench.Timer(
    stmt="compiled_model(x)",
    globals={"compiled_model": compiled_prod, "x": input_tensor},
)

print(f"Eager: {timer_eager.timeit(100).mean * 1000:.2f} ms")
print(f"Compiled: {timer_compiled.timeit(100).mean * 1000:.2f} ms")
