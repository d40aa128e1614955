"""A module keeps its network a second time as the teacher: an assignment, not a copy."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Distill(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.student = backbone
        self.teacher = backbone  # error: reference-is-the-model
        self.project = nn.Linear(6, 6)

    def forward(self, weak, strong):
        out = self.project(self.student(strong))
        with torch.no_grad():
            target = self.teacher(weak)
        return (F.normalize(out, dim=1) - F.normalize(target, dim=1)).square().sum(1).mean()


def main():
    torch.manual_seed(2)
    model = Distill(nn.Sequential(nn.Linear(9, 24), nn.ReLU(), nn.Linear(24, 6)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    data = torch.randn(400, 9)
    for _ in range(3):
        for rows in torch.randperm(400).split(40):
            loss = model(data[rows] + 0.05 * torch.randn(40, 9), data[rows] + 0.5 * torch.randn(40, 9))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"{loss.item():.3f}")


main()
