"""Areas under a curve of decisions that are collected over batches, and of scores."""

import pytest

from truestep.lint import lint

PROGRAM = """
import numpy as np
import torch
from sklearn.metrics import accuracy_score, average_precision_score, roc_auc_score
from torch import nn

class Net(nn.Module):
    def __init__(self, classes={classes}):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        return self.head(self.body(x).relu())

model = Net()

{before}
@torch.no_grad()
def evaluate(loader):
    model.eval()
    {start}
    for x, y in loader:
        logits = model(x)
        {add}
        truths.extend(y.tolist())
    {end}
"""
DEFAULTS = {
    "classes": 2,
    "before": "",
    "start": "found, truths = [], []",
    "add": "found.append(logits.argmax(1))",
    "end": "return roc_auc_score(truths, torch.cat(found).numpy())",
}
MAX = "_, guess = torch.max(logits, 1); found.append(guess)"
HARD = "found += (torch.sigmoid(logits) > 0.5).int().squeeze(1).tolist()"
JOINED = "found = np.concatenate([found, logits.argmax(dim=1).cpu().numpy()])"
REPORT = "def report(y_true, y_hat):\n    print(average_precision_score(y_true, np.array(y_hat)))\n"
BALANCED = "return {'balanced accuracy': roc_auc_score(truths, torch.cat(found))}"


def found(**parts):
    return [one.rule for one in lint(PROGRAM.format(**(DEFAULTS | parts)))]


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"add": "found.extend(logits.argmax(-1).cpu().tolist())", "end": "return roc_auc_score(truths, found)"},
        {"add": MAX},
        {"add": "found.append(logits.max(1)[1].detach().cpu())"},
        {"add": "found.append(logits.max(dim=1).indices)"},
        {"add": HARD, "end": "return average_precision_score(truths, found)", "classes": 1},
        {"add": "found.append(torch.sigmoid(logits).round())", "classes": 1},
        {"add": JOINED, "start": "found, truths = np.array([]), []", "end": "return roc_auc_score(truths, found)"},
        {"before": REPORT, "end": "report(truths, torch.cat(found))"},
        {"end": "found = torch.cat(found)\n    return accuracy_score(truths, found), roc_auc_score(truths, found)"},
        {"end": "return truths, torch.cat(found)\n\ndef main(loader):\n    y, scores = evaluate(loader)\n"
                "    print(roc_auc_score(y, scores))"},
    ],
)  # fmt: skip
def test_decisions_that_are_collected_are_found(parts):
    assert found(**parts) == ["metric-misreported"]


@pytest.mark.parametrize(
    "parts",
    [
        {"add": "found.append(logits.softmax(1)[:, 1])"},
        {"add": "found.append(logits[:, 1] - logits[:, 0])"},
        {"classes": 5},
        {"add": "found.append(logits.argmax(1) if y.sum() else logits[:, 1])"},
        {"add": "found.append(logits.argmax(1)); found.append(logits[:, 1])"},
        {"end": BALANCED},
        {"end": "return accuracy_score(truths, torch.cat(found))"},
        {"end": "return roc_auc_score(truths, torch.stack(found).float().mean(0))"},
        {"start": "found, truths, scores = [], [], []",
         "add": "found.append(logits.argmax(1)); scores.append(logits.softmax(1)[:, 1])",
         "end": "return accuracy_score(truths, torch.cat(found)), roc_auc_score(truths, torch.cat(scores))"},
        {"add": "found.append(torch.round(logits * 20))", "classes": 1},
        {"add": "found.append(x[:, 0] > 30)"},
        {"end": "found.insert(0, truths)\n    return roc_auc_score(truths, found)"},
        {"before": "def report(y_true, y_hat):\n    print(roc_auc_score(y_true, y_hat))\n",
         "end": "report(truths, torch.cat(found)); report(truths, truths)"},
        {"add": "found.append(logits.topk(2).indices)"},
    ],
)  # fmt: skip
def test_scores_and_other_values_are_quiet(parts):
    assert found(**parts) == []
