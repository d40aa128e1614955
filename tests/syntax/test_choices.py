"""Numbers that are chosen by samples of the test, in the styles of different programs."""

import ast

import pytest

from truestep.syntax import chosen_by_test

PARTS = "p_val, p_test = predict(model, x_val), predict(model, x_test)\n"
FIGURE = "print('test F1', f1_score(y_test, p_test >= thr))\n"
LOOP = """
thr, best = 0.5, 0.0
for t in np.linspace(0.05, 0.95, 19):
    f1 = f1_score({y}, {p} >= t)
    if f1 > best:
        best, thr = f1, t
"""
CURVE = """
prec, rec, ths = precision_recall_curve({y}, {p})
f1 = 2 * prec * rec / (prec + rec)
thr = float(ths[f1[:-1].argmax()])
"""
YOUDEN = """
fpr, tpr, ths = roc_curve({y}, {p})
place = np.argmax(tpr - fpr)
thr = ths[place]
"""
STYLES = {
    "function": "thr = best_threshold({y}, {p})\n",
    "function-and-figure": "thr, best_f1 = choose_threshold({p}, {y}[3:])\n",
    "loop": LOOP,
    "curve": CURVE,
    "place-of-the-best": YOUDEN,
    "max-with-key": "thr = max(np.linspace(0, 1, 99), key=lambda t: f1_score({y}, {p} >= t))\n",
    "argmax": "grid = np.linspace(0, 1, 99)\nthr = grid[np.argmax([f1_score({y}, {p} >= t) for t in grid])]\n",
    "keywords": "thr = tune_threshold(labels={y}.numpy(), scores={p}.numpy())\n",
    "minimised": "thr = minimize_scalar(lambda t: -f1_score({y}, {p} >= t), bounds=(0, 1)).x\n",
}


def found(text):
    return [(one.name, ast.unparse(one.figure)) for one in chosen_by_test(ast.parse(text))]


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_a_threshold_of_the_test_is_found_and_one_of_the_validation_is_not(style):
    test, validation = (PARTS + style.format(y=f"y_{part}", p=f"p_{part}") + FIGURE for part in ("test", "val"))
    assert found(test) == [("thr", "f1_score(y_test, p_test >= thr)")]
    assert found(validation) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a, b = fit_platt(logits(test), test[2])\nreport('x', a * logits(test) + b, test[2])\nprint(val)", "a"),
        ("t = tune_temperature(model, test_loader)\nacc = evaluate(model, test_loader, t)\nprint(val_loader)", "t"),
        ("iso = IsotonicRegression()\niso.fit(p_test, y_test)\nq = iso.predict(p_test)\n"
         "print(log_loss(y_test, q), y_val)", "iso"),
        ("iso = IsotonicRegression().fit(p_test, y_test)\nprint(log_loss(y_test, iso.predict(p_test)), y_val)", "iso"),
        ("def main():\n    x_val, x_test = split()\n    s, y = score(x_test)\n    thr = find_threshold(s, y)\n"
         "    flagged = s > thr\n    print((flagged == y).float().mean())", "thr"),
        ("scores, labels = [], []\nfor x, y in test_loader:\n    scores.append(model(x))\n    labels.append(y)\n"
         "scores, labels = torch.cat(scores), torch.cat(labels)\ncutoff = best_cutoff(scores, labels)\n"
         "hits = ((scores > cutoff) & (labels == 1)).sum()\nprint(val_loader)", "cutoff"),
        ("p = {k: predict(k) for k in ('val', 'test')}\nthr = best_threshold(data['test'], scores['test'])\n"
         "f1 = f1_score(data['test'], scores['test'] > thr)", "thr"),
        ("w = best_weight(a_test, b_test, y_test)\nmix = w * a_test + (1 - w) * b_test\n"
         "print(accuracy(mix, y_test), x_val)", "w"),
    ],
)  # fmt: skip
def test_other_numbers_of_the_test_are_found(text, name):
    assert [one for one, _ in found(text)] == [name]


HEALTHY = {
    "no-validation": "thr = best_threshold(y_test, p_test)\n" + FIGURE,
    "an-oracle": PARTS + "oracle = best_threshold(y_test, p_test)\nprint(f1_score(y_test, p_test > oracle))",
    "an-upper-bound": PARTS + "thr = best_threshold(y_test, p_test)\n"
    "print('upper bound of F1', f1_score(y_test, p_test > thr))",
    "both-compared": PARTS + "thr_val = best_threshold(y_val, p_val)\nthr = best_threshold(y_test, p_test)\n"
    "" + FIGURE,
    "curves": PARTS + "fpr, tpr, thr = roc_curve(y_test, p_test)\n"
    "print(auc(fpr, tpr), average_precision(y_test, p_test))",
    "largest-f1": PARTS + CURVE.format(y="y_test", p="p_test") + "print('best F1', f1.max(), 'at', thr)",
    "marked-in-a-plot": PARTS + YOUDEN.format(y="y_test", p="p_test") + "plot_roc(y_test, p_test, thr)\n"
    "plt.axvline(thr)",
    "quantile-of-scores": PARTS + "thr = np.quantile(p_test, 0.95)\n" + FIGURE,
    "quantile-of-training": PARTS + "thr = np.quantile(errors(model, x_train), 0.99)\n" + FIGURE,
    "calibration-part": "t = fit_temperature(logits_cal, y_cal)\nprint(nll(logits_test / t, y_test), x_val)",
    "half-of-the-test": PARTS + "cal, rest = halves(y_test)\nthr = best_threshold(y_test[cal], p_test[cal])\n"
    "" + FIGURE,
    "first-half": PARTS + "thr = best_threshold(y_test[:500], p_test[:500])\n"
    "print(f1_score(y_test[500:], p_test[500:] > thr))",
    "named-halves": PARTS + "a, b = y_test[:500], y_test[500:]\nc, d = p_test[:500], p_test[500:]\n"
    "thr = best_threshold(a, c)\nprint(f1_score(b, d > thr))",
    "split-again": PARTS + "a, b, c, d = train_test_split(y_test, p_test)\nthr = best_threshold(a, c)\n"
    "print(f1_score(b, d > thr))",
    "masked-half": PARTS + "thr = best_threshold(y_test[~late], p_test[~late])\n"
    "print(f1_score(y_test[late], p_test[late] > thr))",
    "chosen-again": PARTS + "thr = best_threshold(y_test, p_test)\nthr = pick(y_val, p_val)\n" + FIGURE,
    "not-used": PARTS + "thr = best_threshold(y_test, p_test)\nprint(thr)\n",
    "used-on-others": PARTS + "thr = best_threshold(y_test, p_test)\nprint(f1_score(y_new, p_new > thr))\n",
    "in-an-evaluation": "def evaluate(model, test_loader):\n    y, p = predict(model, test_loader)\n"
    "    thr = best_threshold(y, p)\n    return f1_score(y, p > thr)\nevaluate(model, val_loader)",
    "parts-in-a-loop": "for part, (x, y) in {'val': val, 'test': test}.items():\n    p = predict(model, x)\n"
    "    thr = best_threshold(y, p)\n    print(part, f1_score(y, p > thr))",
    "equal-error-rate": PARTS + "fpr, tpr, ths = roc_curve(y_test, p_test)\n"
    "i = np.nanargmin(np.abs(1 - tpr - fpr))\nthr = ths[i]\n" + FIGURE,
    "at-a-level": PARTS + "fpr, tpr, ths = roc_curve(y_test, p_test)\nthr = ths[np.argmax(tpr >= 0.95)]\n" + FIGURE,
    "at-a-given-level": PARTS + "thr = find_threshold(y_test, p_test, 0.95)\n" + FIGURE,
    "largest-at-a-level": PARTS + "prec, rec, ths = precision_recall_curve(y_test, p_test)\n"
    "k = np.argmax(prec * (rec >= 0.9)) - 1\nthr = ths[k]\n" + FIGURE,
    "rank-correlation": PARTS + "tau = kendall_tau(y_test, p_test)\nprint(significance(y_test, p_test, tau))",
    "worst-group": PARTS + "worst = min(range(4), key=lambda g: accuracy(p_test[g_test == g], y_test[g_test == g]))\n"
    "print(report(p_test, y_test, worst))",
    "largest-loss": PARTS + "shown = max(rows, key=lambda k: loss_of(p_test[k], y_test[k]))\n"
    "print(around(p_test, y_test, shown))",
    "least-gain": PARTS + "found = min(grid, key=lambda t: accuracy(p_test > t, y_test))\n"
    "print(f1_score(y_test, p_test > found))",
    "first-below-a-level": PARTS + "for t in grid:\n    if accuracy(y_test, p_test > t) < 0.5:\n"
    "        thr = t\n" + FIGURE,
    "hold-out-part": "thr = best_threshold(y_hold, score(x_hold, test_transform))\n"
    "print(f1_score(y_test, p_test > thr), x_val)",
    "scale-and-shift": PARTS + "scale, shift = fit_scale_shift(p_test, y_test)\n"
    "print(rmse(scale * p_test + shift, y_test))",
    "degrees": PARTS + "temperature, seen = to_temperature(p_test, y_test)\nprint(mae(temperature, y_test))",
    "decomposition": PARTS + "iso = IsotonicRegression().fit(p_test, y_test)\n"
    "print('MCB', whole - brier(y_test, iso.predict(p_test)))",
    "weights-of-samples": PARTS + "w = fit_weights(x_test, known_test)\nprint(accuracy(p_test, y_test, w))",
    "given-threshold": PARTS + "thr = 0.5\n" + FIGURE + "report = f1_at_threshold(y_test, p_test, thr)",
    "a-figure-named-threshold": PARTS + "threshold_f1 = f1_at(y_test, p_test)\n"
    "print(compare(y_test, p_test, threshold_f1))",
    "class-weights": PARTS + "weights = compute_weights(y_test, x_test)\n"
    "print(f1_score(y_test, p_test > 0, weights))",
    "scores-at-candidates": PARTS + "for t in (0.3, 0.5, 0.7):\n    f1 = f1_score(y_test, p_test > t)\n"
    "    print(t, f1)",
    "last-candidate-above": PARTS + "for t in grid:\n    if precision(y_val, p_val > t) > 0.9:\n"
    "        thr = t\n" + FIGURE,
    "quantised": "calibrate(model, test_loader)\nprint(evaluate(model, test_loader), val_loader)",
    "scaler": PARTS + "scaler = StandardScaler().fit(x_train)\nprint(f1_score(y_test, scaler.transform(p_test)))",
    "conformal": PARTS + "q = np.quantile(1 - p_cal[rows, y_cal], 0.9)\nprint((sets(p_test, q) == y_test).mean())",
    "folds": "for train, test in kfold:\n    thr = best_threshold(y[val], p[val])\n"
    "    print(f1_score(y[test], p[test] > thr))",
    "by-epochs": "for epoch in range(9):\n    acc = accuracy(model, x_val, y_val)\n    if acc > best:\n"
    "        best, kept = acc, epoch\nprint(accuracy(model, x_test, y_test), kept)",
}  # fmt: skip


@pytest.mark.parametrize("text", HEALTHY.values(), ids=HEALTHY)
def test_other_programs_are_quiet(text):
    assert found(text) == []


def test_a_choice_in_a_branch_may_not_run():
    text = PARTS + "if tuned:\n    thr = best_threshold(y_test, p_test)\n    f1 = f1_score(y_test, p_test > thr)\n"
    assert [one.always for one in chosen_by_test(ast.parse(text))] == [False]


MODEL = "for lr in (0.01, 0.1):\n    model = fit(lr, x_train, y_train)\n"
AGAIN = "print(accuracy(fit(best_lr), x_test, y_test), x_val)\n"
COLLECTED = {
    "tuples": "runs = []\n" + MODEL + "    runs.append((accuracy(model, {x}, {y}), lr))\nbest_lr = max(runs)[1]\n",
    "by-place": "runs = []\n" + MODEL + "    runs.append((lr, accuracy(model, {x}, {y})))\n"
    "best_lr, _ = max(runs, key=lambda run: run[1])\n",
    "dict": "found = {{}}\n"
    + MODEL
    + "    found[lr] = accuracy(model, {x}, {y})\nbest_lr = max(found, key=found.get)\n",
    "items": "losses = {{}}\n" + MODEL + "    losses[lr] = evaluate(model, {x}, {y})\n"
    "best_lr = min(losses.items(), key=lambda pair: pair[1])[0]\n",
    "dicts": "runs = []\n" + MODEL + "    acc = accuracy(model, {x}, {y})\n    runs.append(dict(lr=lr, acc=acc))\n"
    "best = sorted(runs, key=lambda run: -run['acc'])[0]\nbest_lr = best['lr']\n",
    "list": "rates = (0.01, 0.1)\nscores = [accuracy(fit(rate), {x}, {y}) for rate in rates]\n"
    "best_lr = rates[int(np.argmax(scores))]\n",
    "generator": "_, best_lr = max((accuracy(fit(lr), {x}, {y}), lr) for lr in (0.01, 0.1))\n",
    "comprehension": "scores = {{lr: accuracy(fit(lr), {x}, {y}) for lr in (0.01, 0.1)}}\n"
    "best_lr = max(scores, key=scores.get)\n",
}


@pytest.mark.parametrize("style", COLLECTED.values(), ids=COLLECTED)
def test_a_setting_by_collected_figures_of_the_test_is_found_and_one_of_the_validation_is_not(style):
    test, validation = (style.format(x=f"x_{part}", y=f"y_{part}") + AGAIN for part in ("test", "val"))
    assert [figure for _, figure in found(test)] == ["accuracy(fit(best_lr), x_test, y_test)"]
    assert found(validation) == []


BOTH = (
    MODEL
    + "    runs.append({'lr': lr, 'val': accuracy(model, x_val, y_val), 'test': accuracy(model, x_test, y_test)})\n"
)
QUIET = {
    "all-are-shown": "found = {}\n" + MODEL + "    found[lr] = accuracy(model, x_test, y_test)\nprint(found, x_val)",
    "best-is-shown": "found = {}\n" + MODEL + "    found[lr] = accuracy(model, x_test, y_test)\n"
    "best_lr = max(found, key=found.get)\nprint('best', best_lr, found[best_lr], x_val)",
    "by-the-validation": "runs = []\n" + BOTH + "best_lr = max(runs, key=lambda run: run['val'])['lr']\n" + AGAIN,
    "tuple-of-both": "runs = []\n" + MODEL + "    runs.append((accuracy(model, x_val, y_val), "
    "accuracy(model, x_test, y_test), lr))\nbest_lr = max(runs)[2]\n" + AGAIN,
    "worst": "found = {}\n" + MODEL + "    found[lr] = accuracy(model, x_test, y_test)\n"
    "poor = min(found, key=found.get)\nprint(accuracy(fit(poor), x_test, y_test), x_val)",
    "median": "found = {}\n" + MODEL + "    found[lr] = accuracy(model, x_test, y_test)\n"
    "middle = sorted(found, key=found.get)[1]\nprint(accuracy(fit(middle), x_test, y_test), x_val)",
    "best-class": "per_class = [accuracy_of(p_test, y_test, c) for c in range(9)]\nbest = np.argmax(per_class)\n"
    "print(accuracy_of(p_test, y_test, best), x_val)",
    "masked-class": "per_class = []\nfor c in range(9):\n    mask = y_test == c\n"
    "    per_class.append(accuracy(p_test[mask], y_test[mask]))\nbest = int(np.argmax(per_class))\n"
    "print(accuracy(p_test, y_test, best), x_val)",
    "attacks": "found = {}\nfor eps in (0.1, 0.2):\n    found[eps] = accuracy(model, attack(x_test, eps), y_test)\n"
    "best_eps = max(found, key=found.get)\nprint(accuracy(model, attack(x_test, best_eps), y_test), x_val)",
    "confusion-of-the-best": "found = {}\n" + MODEL + "    found[lr] = accuracy(model, x_test, y_test)\n"
    "best_lr = max(found, key=found.get)\nprint(confusion(fit(best_lr), x_test, y_test), x_val)",
    "other-figures": "found = {}\n" + MODEL + "    found[lr] = accuracy(model, x_val, y_val)\n"
    "    print(accuracy(model, x_test, y_test))\nbest_lr = max(found, key=found.get)\n" + AGAIN,
    "folds": "accs = [accuracy(fit(fold), x_test, y_test) for fold in range(5)]\nbest_lr = np.argmax(accs)\n" + AGAIN,
    "new-list": "found = {}\n" + MODEL + "    found[lr] = accuracy(model, x_test, y_test)\n"
    "found = by_validation(x_val)\nbest_lr = max(found, key=found.get)\n" + AGAIN,
}  # fmt: skip


@pytest.mark.parametrize("text", QUIET.values(), ids=QUIET)
def test_other_collected_figures_are_quiet(text):
    assert found(text) == []
