"""Figures of an evaluation, learning rates and lists of models: mistakes in several styles, and healthy code."""

import pytest

from truestep.lint import lint

HEAD = """
import math
import numpy as np
import torch
import torch.nn.functional as F
from collections import Counter
from sklearn.metrics import (
    average_precision_score, confusion_matrix, precision_score, r2_score, roc_auc_score,
)
from torch import nn

criterion = nn.CrossEntropyLoss()
"""
LOOP = """
@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    {start}
    for x, y in loader:
        out = model(x)
        {body}
    {end}
"""
TRAIN = """
def main(model, loader, schedule):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (x, y) in enumerate(loader):
        lr = schedule(step)
        {rate}
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        print(f"step {{step}} lr {{lr}}")
"""


def loop(start="total, count = 0.0, 0", body="pass", end="return total / count"):
    return LOOP.format(start=start, body=body, end=end)


METRIC = {
    "a perplexity of two": "def report(val_loss):\n    ppl = 2**val_loss\n    print(ppl)\n",
    "a perplexity of two in a text": "def report(val_loss):\n    print(f'loss {val_loss} ppl {2 ** val_loss:.2f}')\n",
    "a perplexity of two of torch": "def report(nll):\n    return {'perplexity': torch.exp2(nll)}\n",
    "false negatives that are false positives": (
        "def f1(pred, target):\n    tp = ((pred == 1) & (target == 1)).sum()\n"
        "    fp = ((pred == 1) & (target == 0)).sum()\n"
        "    fn = ((pred == 1) & (target == 0)).sum()\n    return tp / (tp + 0.5 * (fp + fn))\n"
    ),
    "false positives by products": (
        "def count(preds, labels):\n    tp = (preds * labels).sum()\n    fp = ((1 - preds) * labels).sum()\n"
        "    return tp, fp\n"
    ),
    "false positives of the class zero": (
        "def count(preds, labels):\n    tp = (~preds & ~labels).sum()\n    fp = (preds & ~labels).sum()\n"
        "    return tp, fp\n"
    ),
    "a perplexity of two of a mean": (
        "def report(total, count):\n    loss = total / count\n    ppl = 2**loss\n    print(ppl)\n"
    ),
    "a curve of a sigmoid that is rounded": (
        "def report(y, logits):\n    hard = torch.sigmoid(logits).round()\n    print(roc_auc_score(y, hard))\n"
    ),
    "a recall by the columns of a counted table": (
        "def report(pairs):\n    table = torch.zeros(3, 3)\n    for labels, predictions in pairs:\n"
        "        table[labels, predictions] += 1\n    recall = table.diag() / table.sum(0)\n    print(recall)\n"
    ),
    "a recall with false positives": "def recall(tp, fp):\n    recall = tp / (tp + fp)\n    return recall\n",
    "a precision with false negatives": "def scores(tp, fn):\n    return {'precision': tp / (tp + fn)}\n",
    "a recall by the columns of a table": (
        "def report(targets, predictions):\n    table = confusion_matrix(targets, predictions)\n"
        "    recall = np.diag(table) / table.sum(axis=0)\n    print(recall)\n"
    ),
    "a recall by a counter of predictions": (
        "def report(pairs):\n    hits, counts = Counter(), Counter()\n    for labels, predictions in pairs:\n"
        "        counts.update(predictions.tolist())\n        hits.update(labels[predictions == labels].tolist())\n"
        "    recalls = [hits[c] / counts[c] for c in range(3)]\n    print(recalls)\n"
    ),
    "R2 by the spread of predictions": (
        "def report(actual, predicted):\n    r2 = 1 - ((actual - predicted) ** 2).sum() / "
        "((predicted - predicted.mean()) ** 2).sum()\n    print(r2)\n"
    ),
    "a curve of decisions": "def report(y, p):\n    hard = p >= 0.5\n    print(roc_auc_score(y, hard.astype(int)))\n",
    "a curve of rounded scores": "def report(y, probs):\n    print(average_precision_score(y, np.round(probs)))\n",
    "arguments of a metric that are exchanged": "def report(y_true, y_pred):\n    print(r2_score(y_pred, y_true))\n",
    "labels that are compared with themselves": loop(
        start="right, count = 0, 0", body="right += (y == y).sum().item(); count += len(y)", end="return right / count"
    ),
    "the last batch only": loop(
        start="pass", body="predicted, actual = out.argmax(1), y", end="return (predicted == actual).float().mean()"
    ),
    "the last batch with the labels of the loop": loop(
        start="pass", body="predicted = out.argmax(1)", end="return precision_score(y, predicted)"
    ),
    "a count that is overwritten": loop(
        body="total = (out.argmax(1) == y).sum().item()", end="return total / len(loader.dataset)"
    ),
    "means by samples": loop(body="total += criterion(out, y).item()", end="return total / len(loader.dataset)"),
    "means by counted samples": loop(body="total += F.cross_entropy(out, y).item(); count += len(y)"),
    "means by samples, in two lines": loop(
        body="loss = F.mse_loss(out, y); total += loss.item()", end="total /= len(loader.dataset); return total"
    ),
    "errors of batches by samples": loop(body="total += (out - y).abs().mean().item(); count += y.size(0)"),
    "right answers by batches": loop(
        body="total += (out.argmax(1) == y).sum().item()", end="return total / len(loader)"
    ),
    "right answers by counted batches": loop(body="total += out.argmax(1).eq(y).sum().item(); count += 1"),
    "sums that go on in a printed quotient": (
        "def main(model, val_loader):\n    hits, seen = 0, 0\n    for epoch in range(9):\n"
        "        for x, y in val_loader:\n"
        "            hits += (model(x).argmax(1) == y).sum().item()\n            seen += len(y)\n"
        "        print(hits / seen)\n"
    ),
}  # fmt: skip
QUIET = {
    "bits": "def report(val_loss):\n    bits = val_loss / math.log(2)\n    ppl = 2**bits\n    print(ppl)\n",
    "bits by a name": "LN_2 = 0.7\ndef report(nll):\n    entropy = nll / LN_2\n    ppl = 2**entropy\n    print(ppl)\n",
    "bits by a tensor": "def report(nll):\n    ppl = 2 ** (nll / float(torch.tensor(2.0).log()))\n    print(ppl)\n",
    "bits by an attribute": "def report(nll, unit):\n    loss = nll / unit.value\n    return {'ppl': 2**loss}\n",
    "bits by a factor": "def report(nll):\n    ppl = 2 ** (1.4427 * nll)\n    print(ppl)\n",
    "bits with more in the name": "def report(nll_bits):\n    ppl = 2**nll_bits\n    print(ppl)\n",
    "an exponential": "def report(val_loss):\n    ppl = math.exp(val_loss)\n    print(ppl)\n",
    "counts of a table": (
        "def f1(pred, target):\n    tp = (pred & target).sum()\n    fp = (pred & ~target).sum()\n"
        "    fn = (~pred & target).sum()\n"
        "    precision, recall = tp / (tp + fp), tp / (tp + fn)\n    return precision, recall\n"
    ),
    "counts of the class zero": (
        "def f1(pred, labels):\n    tp = ((pred == 0) & (labels == 0)).sum()\n"
        "    fn = ((pred == 1) & (labels == 0)).sum()\n    fp = ((pred == 0) & (labels == 1)).sum()\n"
        "    return tp / (tp + fn), tp / (tp + fp)\n"
    ),
    "counts of rejected samples": (
        "def f1(pred, labels):\n    fp = (~pred & labels).sum()\n    fn = (pred & ~labels).sum()\n"
        "    tp = (~pred & ~labels).sum()\n    return tp / (tp + fp), tp / (tp + fn)\n"
    ),
    "a count of an unknown class": "def count(pred, labels):\n    fp = (~pred & labels).sum()\n    return fp\n",
    "a table that is turned": (
        "def report(targets, predictions):\n    table = confusion_matrix(targets, predictions)\n    table = table.T\n"
        "    recall = np.diag(table) / table.sum(axis=0)\n    print(recall)\n"
    ),
    "R2 of a student": (
        "teacher, student = nn.Linear(2, 1), nn.Linear(2, 1)\ndef r2(x):\n    y, est = teacher(x), student(x)\n"
        "    return 1 - ((y - est) ** 2).sum() / ((y - y.mean()) ** 2).sum()\n"
    ),
    "R2 of labels of a reference": (
        "reference = nn.Linear(2, 1)\ndef r2(x, target):\n    y = reference(x)\n"
        "    return 1 - ((y - target) ** 2).sum() / ((y - y.mean()) ** 2).sum()\n"
    ),
    "a table with the predictions in its rows": (
        "def report(targets, predictions):\n    table = confusion_matrix(predictions, targets)\n"
        "    recall = np.diag(table) / table.sum(axis=0)\n    print(recall)\n"
    ),
    "a table of unknown order": (
        "def report(table):\n    recall = np.diag(table) / table.sum(axis=0)\n    print(recall)\n"
        ""
    ),
    "a curve of a rule": "def report(y, age):\n    print(roc_auc_score(y, age > 50))\n",
    "a curve of rounded decimals": "def report(y, probs):\n    print(roc_auc_score(y, np.round(probs, 4)))\n",
    "a curve of points": "def report(y, probs):\n    print(roc_auc_score(y, np.round(probs * 20)))\n",
    "a curve of counts": "def report(y, pred):\n    n = pred.exp().round()\n    print(average_precision_score(y, n))\n",
    "a balanced accuracy": "def report(y, p):\n    print('balanced accuracy', roc_auc_score(y, p > 0.5))\n",
    "a curve of grades": "def report(y, out):\n    print(roc_auc_score(y, out.argmax(1)))\n",
    "a curve of scores": "def report(y, out):\n    p = out[:, 1]\n    print(roc_auc_score(y, p), p >= 0.5)\n",
    "metrics with their names": "def report(y, out):\n    print(r2_score(y_pred=out, y_true=y), r2_score(y, out))\n",
    "a test for numbers": "def valid(x):\n    accepted = (x == x).all()\n    return accepted\n",
    "an accuracy of known labels": (
        "def accuracy(pred, y):\n    acc = ((pred == y) & (y == y)).sum() / (y == y).sum()\n    return acc\n"
    ),
    "right answers of known labels": "def right(pred, y):\n    correct = (pred == y)[y == y]\n    return correct\n",
    "an accuracy that is a number": "def known(acc):\n    acc = acc if acc == acc else 0.0\n    return acc\n",
    "the last batch for a picture": loop(
        body="total += (out.argmax(1) == y).sum().item(); count += len(y); shown = out",
        end="print(shown[0]); return total / count",
    ),
    "one batch": loop(
        start="pass", body="predicted = out.argmax(1); break", end="return (predicted == y).float().mean()"
    ),
    "shapes of the last batch": loop(start="pass", body="predicted = out", end="print(predicted.shape, y.shape)"),
    "batches that are collected": loop(
        start="outs, ys = [], []",
        body="outs.append(out); ys.append(y)",
        end="return (torch.cat(outs).argmax(1) == torch.cat(ys)).float().mean()",
    ),
    "means by batches": loop(body="total += criterion(out, y).item()", end="return total / len(loader)"),
    "weighted means by samples": loop(body="total += criterion(out, y).item() * len(y); count += len(y)"),
    "sums by samples": loop(body="total += F.cross_entropy(out, y, reduction='sum').item(); count += len(y)"),
    "a function that chooses its reduction": (
        "criterion = nn.CrossEntropyLoss(reduction='sum')\n"
        + loop(body="total += criterion(out, y).item(); count += len(y)")
    ),
    "samples one by one": (
        "def evaluate(model, data):\n    right = 0\n    for x, y in data:\n"
        "        right += (model(x.unsqueeze(0)).argmax(1) == y).sum().item()\n    return right / len(data)\n"
    ),
    "batches of one sample": (
        "def evaluate(model, data):\n    loader = torch.utils.data.DataLoader(data, batch_size=1)\n    right = 0\n"
        "    for x, y in loader:\n        right += (model(x).argmax(1) == y).sum().item()\n"
        "    return right / len(loader)\n"
    ),
    "a value of each batch that the loop reads": loop(
        body="right = (out.argmax(1) == y).sum().item(); total += right; count += len(y)"
    ),
    "counts that begin in each epoch": (
        "def main(model, val_loader):\n    for epoch in range(9):\n        hits, seen = 0, 0\n"
        "        for x, y in val_loader:\n"
        "            hits += (model(x).argmax(1) == y).sum().item()\n            seen += len(y)\n"
        "        print(hits / seen)\n"
    ),
    "a rate that is set": TRAIN.format(rate="optimizer.param_groups[0]['lr'] = lr"),
    "a rate that a function sets": TRAIN.format(rate="adjust(optimizer, lr)"),
    "a rate that an attribute keeps": TRAIN.format(rate="optimizer.lr = lr; set_rate(optimizer.lr)"),
    "a rate of an update by hand": TRAIN.format(rate="model.bias.data -= lr * model.bias.grad"),
    "the rate of a schedule of torch": (
        "def main(model, loader):\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)\n    for step, (x, y) in enumerate(loader):\n"
        "        lr = schedule.get_last_lr()[0]\n        optimizer.zero_grad()\n"
        "        F.cross_entropy(model(x), y).backward()\n"
        "        optimizer.step()\n        schedule.step()\n        print(step, lr)\n"
    ),
    "models one by one": "networks = [nn.Linear(2, 2) for _ in range(5)]\n",
    "activations that repeat": "net = nn.Sequential(*[nn.ReLU()] * 2)\nsizes = [8] * 3\n",
    "a layer that a function copies": (
        "import copy\ndef clones(layer, n):\n"
        "    return nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])\n"
    ),
    "layers of a list": "def stack(layers):\n    return nn.ModuleList([layer for layer in layers])\n",
}  # fmt: skip
OTHERS = {
    "learning-rate-off-course": [TRAIN.format(rate="pass"), TRAIN.format(rate="optimizer.lr = lr")],
    "reference-is-the-model": [
        "networks = [nn.Linear(2, 2)] * 5\n",
        "def make():\n    return nn.Sequential(nn.Linear(2, 2), nn.ReLU())\nmembers = 3 * [make()]\n",
        "body = nn.Sequential(*[nn.Linear(8, 8), nn.ReLU()] * 3)\n",
        "layer = nn.TransformerEncoderLayer(8, 2)\nlayers = nn.ModuleList([layer for _ in range(6)])\n",
    ],
}


def found(code):
    return [one.rule for one in lint(HEAD + code)]


@pytest.mark.parametrize("name", METRIC)
def test_a_wrong_figure_is_found(name):
    assert set(found(METRIC[name])) == {"metric-misreported"}


@pytest.mark.parametrize("name", QUIET)
def test_a_right_figure_is_quiet(name):
    assert found(QUIET[name]) == []


@pytest.mark.parametrize(("rule", "code"), [(rule, code) for rule, codes in OTHERS.items() for code in codes])
def test_another_mistake_is_found(rule, code):
    assert found(code) == [rule]
