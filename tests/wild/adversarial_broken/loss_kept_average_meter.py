"""The AverageMeter of the ImageNet example, fed with the loss itself."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n  # error: loss-kept-with-graph
        self.count += n
        self.avg = self.sum / self.count


def main():
    model = nn.Linear(6, 3)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    loader = DataLoader(TensorDataset(torch.randn(400, 6), torch.randint(0, 3, (400,))), batch_size=5, shuffle=True)
    losses = AverageMeter()
    for images, target in loader:
        loss = criterion(model(images), target)
        losses.update(loss, images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(losses.avg)


main()
