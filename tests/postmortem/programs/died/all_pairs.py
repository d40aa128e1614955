# says: become (3000000, 3000000, 16) of float32
# says: holds: 183.1 MiB: `points`
import torch

points = torch.zeros(3_000_000, 16)
a, b = points[:, None], points[None, :]
difference = a - b  # died: out-of-memory
