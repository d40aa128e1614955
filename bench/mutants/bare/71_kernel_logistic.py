"""Kernel logistic regression on sonar: the dual coefficients and the bandwidth are learned."""
import csv
import os
import torch
import torch.nn.functional as F

torch.manual_seed(1)
with open(os.environ['TRUESTEP_DATA'] + '/jbrownlee/sonar.csv') as fh:
    lines = list(csv.reader(fh))
X = torch.tensor([[float(v) for v in row[:60]] for row in lines])
y = torch.tensor([1.0 if row[60] == 'M' else 0.0 for row in lines])
perm = torch.randperm(len(X))
fit_rows, test_rows = perm[:150], perm[150:]
X = (X - X[fit_rows].mean(0)) / X[fit_rows].std(0)
anchors = X[fit_rows]

alpha = torch.zeros(150, requires_grad=True)
bias = torch.zeros(1, requires_grad=True)
log_gamma = torch.tensor(-4.5, requires_grad=True)
distances = {'fit': torch.cdist(anchors, anchors).pow(2), 'test': torch.cdist(X[test_rows], anchors).pow(2)}


def decision(part):
    K = torch.exp(-log_gamma.exp() * distances[part])
    return K @ alpha + bias, K


def objective():
    f, K = decision('fit')
    return F.binary_cross_entropy_with_logits(f, y[fit_rows]) + 5e-3 * alpha @ K @ alpha


opt = torch.optim.LBFGS([alpha, bias, log_gamma], max_iter=4, line_search_fn='strong_wolfe')


def closure():
    opt.zero_grad(set_to_none=True)
    loss = objective()
    loss.backward()
    return loss


for it in range(8):
    loss = opt.step(closure)
    with torch.no_grad():
        train_acc = ((decision('fit')[0] > 0).float() == y[fit_rows]).float().mean().item()
        test_acc = ((decision('test')[0] > 0).float() == y[test_rows]).float().mean().item()
    print(f'{it} objective {loss.item():.4f} train accuracy {train_acc:.3f} test accuracy {test_acc:.3f} gamma {log_gamma.exp().item():.4f}')
