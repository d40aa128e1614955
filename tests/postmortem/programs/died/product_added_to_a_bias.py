# says: `x` has 5 columns and `weight` has 3 rows
# says: make the last dimension of `x` and the second last of `weight` equal
import torch


def project(x, weight, bias):
    return torch.addmm(bias, x, weight)  # died: shapes-do-not-fit


x = torch.ones(4, 5)  # related
weight = torch.ones(3, 2)  # related
print(project(x, weight, torch.zeros(2)))
