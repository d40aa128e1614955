"""From "PyTorch Gradient Accumulation - 200 Epoch Silent Failure", the debug cheat sheet: its commands, one after the other, on a small model.

Repaired: the model, one step, and the inputs; torch.cuda.memory_summary() needs a GPU and falls away; gradcheck, which raises in
float32 (and looks at the gradient of the inputs, not of the parameters), is caught. Expected: nothing.
"""
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
inputs, targets = torch.randn(32, 3), torch.randn(32, 1)
test_input = torch.randn(4, 3, requires_grad=True)

torch.autograd.set_detect_anomaly(True)
optimizer.zero_grad()
loss = nn.functional.mse_loss(model(inputs), targets)
loss.backward()
print([(n, p.grad.norm()) for n, p in model.named_parameters() if p.grad is not None])
torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
optimizer.step()
print(loss.item())  # NOT print(loss)

for n, p in model.named_parameters(): print(n, p.requires_grad, p.grad is not None)
model.eval()
try:
    torch.autograd.gradcheck(model, (test_input,))
except Exception as error:
    print(type(error).__name__)

print(model.training)  # Should be False during validation
print(any(isinstance(m, nn.Dropout) for m in model.modules()))
