"""Healthy: saliency maps and integrated gradients after training: eval mode with gradients on, backward to the input only."""
import torch
import torch.nn as nn

torch.manual_seed(8)
torch.set_num_threads(1)


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        )
        self.dropout = nn.Dropout(0.25)
        self.classifier = nn.Linear(16 * 5 * 5, 4)

    def forward(self, x):
        return self.classifier(self.dropout(self.features(x).flatten(1)))


def quadrant_images(n):
    """A bright blob in one of four quadrants."""
    img = 0.5 * torch.randn(n, 1, 10, 10)
    label = torch.randint(0, 4, (n,))
    for i, q in enumerate(label.tolist()):
        r, c = 5 * (q // 2) + 1, 5 * (q % 2) + 1
        img[i, 0, r:r + 3, c:c + 3] += 1.5
    return img, label


images, labels = quadrant_images(480)
model = SmallCNN()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()

model.train()
for epoch in range(4):
    for idx in torch.randperm(480).split(48):
        optimizer.zero_grad()
        loss = criterion(model(images[idx]), labels[idx])
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", round(loss.item(), 4))

# --- explanations: no optimizer step from here on
model.eval()
x, y = quadrant_images(32)
x.requires_grad_()
score = model(x).gather(1, y[:, None]).sum()
score.backward()
saliency = x.grad.abs().squeeze(1)

baseline = torch.zeros_like(x)
total = torch.zeros_like(x)
for alpha in torch.linspace(0.05, 1, 8):
    point = (baseline + alpha * x.detach()).requires_grad_()
    total += torch.autograd.grad(model(point).gather(1, y[:, None]).sum(), point)[0]
integrated = ((x - baseline) * total / 8).squeeze(1).detach()


def share_in_quadrant(maps):
    inside = torch.stack([m[5 * (q // 2):5 * (q // 2) + 5, 5 * (q % 2):5 * (q % 2) + 5].sum() for m, q in zip(maps, y.tolist())])
    return (inside / maps.sum((1, 2))).mean().item()


print("saliency mass in the right quadrant: %.3f, integrated gradients: %.3f" % (
    share_in_quadrant(saliency), share_in_quadrant(integrated.abs())))
