# says: `x` has 5 columns and `w` has 3 rows
# says: `w.mT`
import torch

x = torch.randn(8, 5)  # related
w = torch.randn(3, 5, requires_grad=True)  # related
b = torch.zeros(3, requires_grad=True)
pred = x @ w + b  # died: shapes-do-not-fit
