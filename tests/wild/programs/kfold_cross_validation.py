"""Healthy: k-fold cross validation: a new model and optimizer per fold, SubsetRandomSampler for the folds."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Subset, SubsetRandomSampler, TensorDataset


def reset_weights(m):
    """Reset the parameters of every layer that knows how."""
    if hasattr(m, "reset_parameters"):
        m.reset_parameters()


def kfold_indices(n, k, rng):
    folds = np.array_split(rng.permutation(n), k)
    for i in range(k):
        yield np.concatenate(folds[:i] + folds[i + 1:]), folds[i]


class SimpleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))

    def forward(self, x):
        return self.layers(x)


if __name__ == "__main__":
    k_folds, num_epochs = 4, 5
    rng = np.random.RandomState(42)
    torch.manual_seed(42)
    torch.set_num_threads(1)
    loss_function = nn.CrossEntropyLoss()
    results = {}
    x = torch.randn(480, 8)
    y = (x[:, 0] * 1.5 + x[:, 1] - x[:, 2] + 0.5 * torch.randn(480) > 0).long()
    dataset = TensorDataset(x, y)

    for fold, (train_ids, test_ids) in enumerate(kfold_indices(len(dataset), k_folds, rng)):
        train_subsampler = SubsetRandomSampler(train_ids.tolist())
        trainloader = DataLoader(dataset, batch_size=30, sampler=train_subsampler)
        testloader = DataLoader(Subset(dataset, test_ids.tolist()), batch_size=60)

        network = SimpleNet()
        network.apply(reset_weights)
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)

        network.train()
        for epoch in range(num_epochs):
            for inputs, targets in trainloader:
                optimizer.zero_grad()
                loss = loss_function(network(inputs), targets)
                loss.backward()
                optimizer.step()

        network.eval()
        correct, total = 0, 0
        with torch.no_grad():
            for inputs, targets in testloader:
                predicted = network(inputs).argmax(1)
                total += targets.size(0)
                correct += (predicted == targets).sum().item()
        results[fold] = 100.0 * correct / total
        print("Accuracy for fold %d: %.2f %%" % (fold, results[fold]))
    print("Average: %.2f %%" % (sum(results.values()) / len(results)))
