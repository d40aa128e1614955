"""The consistency of a student and its average: both sides are results of the average, and the term is zero."""
import copy

import torch
from torch import nn


class Consistency:
    def __init__(self, student, share=0.9):
        self.student, self.average, self.share = student, copy.deepcopy(student).requires_grad_(False), share

    def loss(self, x):
        noisy = x + 0.1 * torch.randn_like(x)
        wanted = self.average(x)
        given = self.average(x) if noisy is not None else self.student(noisy)
        return nn.functional.smooth_l1_loss(given, wanted)  # error: target-is-the-result

    @torch.no_grad()
    def update(self):
        for mean, new in zip(self.average.parameters(), self.student.parameters()):
            mean.lerp_(new, 1 - self.share)


def main():
    torch.manual_seed(0)
    student = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 3))
    consistency = Consistency(student)
    optimizer = torch.optim.Adam(student.parameters(), 5e-3)
    weight = torch.randn(8, 3)
    for step in range(60):
        labelled, unlabelled = torch.randn(24, 8), torch.randn(96, 8)
        supervised = nn.functional.cross_entropy(student(labelled), (labelled @ weight).argmax(1))
        unsupervised = consistency.loss(unlabelled)
        (supervised + 5 * unsupervised).backward()
        optimizer.step()
        optimizer.zero_grad()
        consistency.update()
    print(f"supervised {supervised.item():.3f}, consistency {unsupervised.item():.4f}")


main()
