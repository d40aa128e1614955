import pytest

from truestep.events import Site
from truestep.probes.backward.gradient_reads import reads_gradients

READ = "    total += sum(p.grad.norm() for p in model.parameters())\n"
LOOP = "for x in data:\n    loss = f(x)\n    loss.backward()\n{}"


def at_backward(folder, text):
    path = folder / f"train{len(list(folder.iterdir()))}.py"
    path.write_text(text)
    line = next(number for number, code in enumerate(text.splitlines(), 1) if "backward()" in code)
    return reads_gradients(Site(str(path), line, 4))


@pytest.mark.parametrize(
    ("rest", "reads"),
    [
        (READ, True),
        ("    scores.append(w.grad)\n", True),
        ("    optimizer.step()\n", False),
        ("    w.grad = None\n", False),
        ("    w.grad.zero_()\n", False),
        ("    if w.grad is not None:\n        steps += 1\n", False),
        ("    g = torch.autograd.grad(loss, w)\n", False),
        ("total += sum(p.grad.norm() for p in model.parameters())\n", False),
    ],
)
def test_a_loop_reads_the_gradients_that_it_names(tmp_path, rest, reads):
    assert at_backward(tmp_path, LOOP.format(rest)) is reads


def test_a_function_reads_where_it_is_called(tmp_path):
    function = "def passes(x):\n    f(x).backward()\n\n\nfor x in data:\n    passes(x)\n"
    assert at_backward(tmp_path, function + READ) is True
    assert at_backward(tmp_path, function + "    optimizer.step()\n") is False


def test_a_source_that_cannot_be_read_says_nothing(tmp_path):
    assert reads_gradients(None) is False
    assert reads_gradients(Site(str(tmp_path / "gone.py"), 3, 0)) is False
    assert at_backward(tmp_path, "def broken(:\n    loss.backward()\n") is False
