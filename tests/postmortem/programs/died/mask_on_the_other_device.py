# says: `scores` is on meta, `mask` is on cpu
# says: write `mask = mask.to('meta')` before this line
import torch

scores = torch.randn(4, 4, device="meta")  # related
mask = torch.tril(torch.ones(4, 4))  # related
weights = scores * mask  # died: different-devices
