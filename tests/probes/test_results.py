"""Uses of results, read from the source after the call."""

import ast
from pathlib import Path

import pytest

from truestep.events import Site
from truestep.probes.forward.results import Use, given_at, use_of

COMPARED, LOSS, READ, OTHER = Use("compared", True), Use("loss", True), Use("read", True), Use()


def use(tmp_path: Path, text: str) -> Use:
    """Return the use of the first call of ``net`` in a text."""
    return use_of(at(tmp_path, text))


def at(tmp_path: Path, text: str) -> Site:
    """Return the site of this call."""
    path = tmp_path / "train.py"
    path.write_text(text, encoding="utf-8")
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    call = next(one for one in calls if isinstance(one.func, ast.Name) and one.func.id == "net")
    return Site(str(path), call.lineno, call.col_offset, call.end_lineno or 0, call.end_col_offset or 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("right = (net(x).argmax(1) == y).float().mean().item()", COMPARED),
        ("hits += net(x).argmax(dim=1).eq(y.view(-1)).sum()", COMPARED),
        ("p = net(x).data.max(1, keepdim=True)[1]\nhits += p.eq(y.data.view_as(p)).cpu().sum()", COMPARED),
        ("out = net(x)\n_, best = torch.max(out, 1)\nright += (best == y).sum().item()", COMPARED),
        ("parts = []\nfor x in data:\n    parts.append(net(x).numpy())\nprint(accuracy_score(y, parts))", COMPARED),
        ("pred = (torch.sigmoid(net(x)) > 0.5).float()\nprint((pred == y).mean())", COMPARED),
        ("for t, p in zip(y, net(x).argmax(1)):\n    table[t, p] += 1", COMPARED),
        ("print(F.mse_loss(net(x), y).item())", LOSS),
        ("loss = criterion(net(x), y)\ntotal += loss.item()", LOSS),
        ("_, loss = net(x, y)\nlosses[k] = loss.item()", LOSS),
        ("action = net(state).argmax().item()", READ),
        ("print(net(grid).mean().item())", READ),
    ],
)  # fmt: skip
def test_results_that_are_only_read(tmp_path: Path, text: str, expected: Use) -> None:
    assert use(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("out = net(x)\nright += (out.argmax(1) == y).sum()\nloss = criterion(out, y)\nloss.backward()", "compared"),
        ("loss = F.cross_entropy(net(x), y)\nloss.backward()\nprint(loss.item())", "loss"),
        ("def f(x):\n    return net(x)", ""),
        ("self.out = net(x)", ""),
        ("net(x)", ""),
        ("q = net(s2).max(1).values\ny = r + 0.9 * q\nloss = mse(other(s), y)\nloss.backward()", ""),
        ("agree = net(x).argmax(1) == other(x).argmax(1)\nx2 = x[agree]", "read"),
        ("loss = criterion(net(x), y)\nloss = loss + 1\nprint(loss.item())\nloss.backward()", "loss"),
        ("a = net(x)\na = 3\nprint(a == y)", ""),
    ],
)
def test_results_with_another_use(tmp_path: Path, text: str, how: str) -> None:
    found = use(tmp_path, text)
    assert found.how == how
    assert not found.only or how == "read"


def test_a_site_without_a_column_or_a_file_has_no_use(tmp_path: Path) -> None:
    assert use_of(Site("nowhere.py", 1, 0, 1, 4)) == OTHER
    assert use_of(Site(str(tmp_path), 1)) == OTHER


@pytest.mark.parametrize("moved", ["x.cuda()", "Variable(x)", "autograd.Variable(x.to(device))", "y"])
def test_an_element_of_a_loop_may_be_moved(tmp_path: Path, moved: str) -> None:
    text = f"for x, y in loader:\n    x, y = {moved}, y\n    net(x)"
    assert given_at(at(tmp_path, text)) == ("" if moved == "y" else "*")
