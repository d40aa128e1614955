"""Healthy: magnitude pruning with torch.nn.utils.prune, fine-tuning under the mask, then made permanent."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.prune as prune

torch.manual_seed(0)
torch.set_num_threads(1)


class LeNet300(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 64)
        self.fc2 = nn.Linear(64, 32)
        self.fc3 = nn.Linear(32, 5)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


centers = torch.randn(5, 20)


def batch(n=64):
    y = torch.randint(0, 5, (n,))
    return 0.9 * centers[y] + torch.randn(n, 20), y


def train(model, steps, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    model.train()
    for _ in range(steps):
        x, y = batch()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


def accuracy(model):
    model.eval()
    with torch.no_grad():
        return (model(x_test).argmax(1) == y_test).float().mean().item()


x_test, y_test = batch(600)
model = LeNet300()
train(model, 60, 5e-3)
print("dense accuracy", round(accuracy(model), 4))

parameters_to_prune = [(m, "weight") for m in (model.fc1, model.fc2, model.fc3)]
for round_ in range(3):
    prune.global_unstructured(parameters_to_prune, pruning_method=prune.L1Unstructured, amount=0.4)
    before = accuracy(model)
    train(model, 25, 2e-3)
    zeros = sum((m.weight == 0).sum().item() for m, _ in parameters_to_prune)
    total = sum(m.weight.numel() for m, _ in parameters_to_prune)
    print(f"round {round_}: sparsity {zeros / total:.3f}, accuracy {before:.4f} -> {accuracy(model):.4f}")

for module, name in parameters_to_prune:
    prune.remove(module, name)
print("after remove", round(accuracy(model), 4), "parameters:", sorted(n for n, _ in model.named_parameters())[:2])
