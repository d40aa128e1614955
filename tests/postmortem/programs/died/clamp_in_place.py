# says: `probs`, an output of exp, was overwritten
# says: write `probs = probs.clamp(0.001, 1.0)`
import torch

logits = torch.randn(4, 3, requires_grad=True)
probs = logits.exp()
probs.clamp_(1e-3, 1.0)  # related
probs.sum().backward()  # died: modified-in-place
