"""Decisions are collected for accuracies beside the scores of curves; grades and shares of votes are scores too."""

import numpy as np
import torch
from sklearn.metrics import accuracy_score, average_precision_score, balanced_accuracy_score, roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def fitted(x, y, classes):
    net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Dropout(0.2), nn.Linear(20, classes))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(4):
        net.train()
        for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(inputs), labels).backward()
            optimizer.step()
    return net.eval()


@torch.no_grad()
def report(net, loader):
    preds, probs, labels = [], [], []
    for inputs, wanted in loader:
        logits = net(inputs)
        preds.append(logits.argmax(1))
        probs.append(logits.softmax(1)[:, 1])
        labels.append(wanted)
    preds, probs, labels = (torch.cat(one).numpy() for one in (preds, probs, labels))
    print("accuracy", accuracy_score(labels, preds), "AUC", roc_auc_score(labels, probs))
    print("average precision", average_precision_score(labels, probs))


@torch.no_grad()
def of_votes(nets, x, y):
    votes = []
    for net in nets:
        votes.append(net(x).argmax(1))
    share = torch.stack(votes).float().mean(0)
    print("AUC of the share of votes", roc_auc_score(y, share))


@torch.no_grad()
def of_grades(net, loader):
    grades, ill = [], []
    for inputs, wanted in loader:
        grades.append(net(inputs).argmax(1))
        ill.append(wanted > 2)
    print("AUC of the grade", roc_auc_score(torch.cat(ill), torch.cat(grades)))


@torch.no_grad()
def at_the_threshold(net, loader):
    preds, labels = [], []
    for inputs, wanted in loader:
        preds.extend(net(inputs).argmax(1).tolist())
        labels.extend(wanted.tolist())
    print("balanced accuracy", roc_auc_score(labels, preds), balanced_accuracy_score(labels, preds))


torch.manual_seed(0)
x = torch.randn(900, 10)
severity = x[:, 0] + 0.5 * torch.randn(900)
two, five = (severity > 0.5).long(), torch.tensor(np.digitize(severity.numpy(), [-1, -0.3, 0.3, 1]))
binary = DataLoader(TensorDataset(x[600:], two[600:]), batch_size=100)
nets = [fitted(x[:600], two[:600], 2) for _ in range(3)]
report(nets[0], binary)
of_votes(nets, x[600:], two[600:])
at_the_threshold(nets[1], binary)
of_grades(fitted(x[:600], five[:600], 5), DataLoader(TensorDataset(x[600:], five[600:]), batch_size=100))
