import torch

try:
    torch.ones(2, 3) @ torch.ones(2, 3)
except RuntimeError as error:
    raise RuntimeError(f"bad batch: {error}") from error
