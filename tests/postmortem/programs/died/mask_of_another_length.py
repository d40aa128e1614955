# says: `loss` is (4, 7) and `mask` is (4, 8)
import torch


def masked(loss, lengths):
    mask = torch.arange(8)[None, :] < lengths[:, None]  # related
    return (loss * mask).sum() / mask.sum()  # died: shapes-do-not-fit


values = torch.rand(4, 7)  # related
masked(values, torch.tensor([1, 2, 3, 7]))
