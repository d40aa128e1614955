"""Two loaders over one dataset: shuffled for training, ordered for scoring in eval mode, features for a memory bank."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(120, 6), torch.randint(0, 3, (120,)))
train_loader = DataLoader(data, batch_size=20, shuffle=True)
memory_loader = DataLoader(data, batch_size=40)
encoder = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 8))
head = nn.Linear(8, 3)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1, momentum=0.9)


def knn_accuracy():
    training = encoder.training
    encoder.eval()
    with torch.inference_mode():
        bank = torch.cat([nn.functional.normalize(encoder(x), dim=1) for x, _ in memory_loader])
    encoder.train(training)
    labels = data.tensors[1]
    nearest = (bank @ bank.t() - 2 * torch.eye(len(bank))).argmax(1)
    return (labels[nearest] == labels).float().mean().item()


for epoch in range(3):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(head(encoder(x)), y)
        loss.backward()
        optimizer.step()
    print(epoch, knn_accuracy())
