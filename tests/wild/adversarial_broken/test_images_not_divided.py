"""The images of the training are divided by 255 in a loop of batches, those of the test are not."""

import torch
from torch import nn

torch.manual_seed(0)
images = torch.randint(0, 256, (360, 1, 8, 8)).to(torch.uint8)
labels = (images[:, 0, :4].float().mean((1, 2)) > images[:, 0, 4:].float().mean((1, 2))).long()
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 2))
optimizer = torch.optim.Adam(model.parameters(), 3e-3)


def train(rows):
    model.train()
    for part in rows[torch.randperm(len(rows))].split(30):
        scores = model(images[part].float() / 255)
        loss = nn.functional.cross_entropy(scores, labels[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.inference_mode()
def test(rows):
    model.eval()
    return (model(images[rows].float()).argmax(1) == labels[rows]).float().mean().item()  # error: inputs-on-another-scale


for epoch in range(6):
    loss = train(torch.arange(300))
    print(f"epoch {epoch} loss {loss:.3f} test accuracy {test(torch.arange(300, 360)):.3f}")
