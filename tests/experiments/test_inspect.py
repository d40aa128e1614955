"""`truestep inspect`: layers, gradients, losses and memory of one step are those of the script, which is unchanged."""

import io
import json
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from rich.console import Console
from tiers import few

from truestep.errors import NoExperiment
from truestep.experiments.inspect.inspect import LayerFacts, ModelFacts, ParameterFacts, inspect
from truestep.experiments.inspect.rows import rows_of
from truestep.experiments.reports.inspect import document, text
from truestep.experiments.running.bench import Bench
from truestep.supervision.launching.launch import Target

MLP = """
import json, sys
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
open("written.txt", "w").write("by the script")
for step in range(int(sys.argv[1]) if sys.argv[1:] else 10):
    x, y = torch.randn(16, 8), torch.randint(4, (16,))
    optimizer.zero_grad()
    hidden = torch.relu(nn.functional.linear(x, model[0].weight, model[0].bias)).detach()
    out = model(x)
    loss = criterion(out, y)
    loss.backward()
    facts = {"loss": loss.item(), "std": out.detach().std(correction=0).item()}
    facts["zeros"] = (hidden == 0).float().mean().item()
    facts["norms"] = [float(p.detach().norm()) for p in model.parameters()]
    facts["gradients"] = [float(p.grad.norm()) for p in model.parameters()]
    print(json.dumps(facts), flush=True)
    optimizer.step()
"""
CUT = """
import torch
from torch import nn
from torch.nn import functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.norm, self.conv2 = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 8, 3)
        self.head, self.aux = nn.Linear(8, 10), nn.Linear(8, 10)

    def forward(self, x):
        x = torch.relu(self.conv2(torch.relu(self.norm(self.conv1(x))))).mean(dim=(2, 3))
        self.spare = self.aux(x)
        return self.head(x.detach())  # the cut

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x, y = torch.randn(16, 1, 12, 12), torch.randint(10, (16,))
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
TRANSFORMER = """
import torch
from torch import nn
from torch.nn import functional as F

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))

class LM(nn.Module):
    def __init__(self, vocabulary=50, width=16, depth=6):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width).requires_grad_(False)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embedding.weight
        self.unused = nn.Linear(width, width)

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

def main():
    net = LM()
    optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-3)
    for step in range(10):
        for micro in range(4):
            ids = torch.randint(50, (8, 9))
            logits = net(ids[:, :-1])
            nll = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            penalty = logits.square().mean().item()
            z = logits.logsumexp(-1).square().mean()
            loss = (nll + 1e-2 * z + 0.1 * penalty) / 4
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()

main()
"""
GAN = """
import json
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
discriminator = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
of_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
of_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
for step in range(10):
    real, z = torch.randn(16, 16), torch.randn(16, 8)
    fake = generator(z)
    of_d.zero_grad()
    on_real = F.binary_cross_entropy_with_logits(discriminator(real), torch.ones(16, 1))
    on_fake = F.binary_cross_entropy_with_logits(discriminator(fake.detach()), torch.zeros(16, 1))  # the cut
    (on_real + on_fake).backward()
    norms = [float(p.grad.norm()) for p in discriminator.parameters()]
    of_d.step()
    of_g.zero_grad()
    F.binary_cross_entropy_with_logits(discriminator(fake), torch.ones(16, 1)).backward()
    norms += [float(p.grad.norm()) for p in generator.parameters()]
    print(json.dumps(norms), flush=True)
    of_g.step()
"""
RNN = """
import torch
from torch import nn

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(50, 16), nn.LSTM(16, 32, num_layers=2, batch_first=True)
        self.cell, self.out = nn.GRUCell(32, 32), nn.Linear(32, 5)

    def forward(self, ids):
        inner, _ = self.lstm(self.embedding(ids))
        state, states = torch.zeros(len(ids), 32), []
        for t in range(inner.shape[1]):
            state = self.cell(inner[:, t], state)
            states.append(state)
        return self.out(torch.stack(states, 1))

tagger = Tagger()
optimizer = torch.optim.Adam(tagger.parameters())
for _ in range(4):
    ids, y = torch.randint(50, (4, 7)), torch.randint(5, (4, 7))
    loss = nn.functional.cross_entropy(tagger(ids).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
BY_HAND = """
import torch

first, last = (torch.randn(shape, requires_grad=True) for shape in ((4, 8), (8, 1)))
for _ in range(4):
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    loss = ((torch.tanh(x @ first) @ last - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for weight in (first, last):
            weight -= 0.01 * weight.grad
            weight.grad = None
"""
TEACHER = """
import torch
from torch import nn
from torch.nn import functional as F

student, teacher = nn.Linear(8, 4), nn.Linear(8, 4)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for _ in range(4):
    x, y = torch.randn(16, 8), torch.randint(4, (16,))
    with torch.no_grad():  # the cut
        target = teacher(x)
    out = student(x)
    losses = {"hard": F.cross_entropy(out, y), "soft": F.mse_loss(out, target)}
    total = losses["hard"] + 0.5 * losses["soft"]
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
"""
COMPILED = """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
model = torch.compile(net, backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    loss = nn.functional.cross_entropy(model(torch.randn(16, 8)), torch.randint(4, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
NAN = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.head = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        return self.head(torch.log(self.inner(x) - 100))

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.randn(8, 4)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def seen(folder, program, *arguments, **options):
    (folder / "train.py").write_text(program, encoding="utf-8")
    return inspect(Bench(Target("train.py", arguments), None, folder=folder), **options)


def line_of(program, words):
    return next(number for number, line in enumerate(program.splitlines(), 1) if words in line)


def printed(found, width=80, depth=None, folder="."):
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False, color_system=None, _environ={})
    console.print(text(found, str(folder), width, depth))
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.program
def test_numbers_are_those_of_the_script_which_is_unchanged(folder):
    found = seen(folder, MLP)
    assert sorted(path.name for path in folder.iterdir()) == ["train.py"]
    said = found.outcome.said.splitlines()
    plain = subprocess.run([sys.executable, "train.py"], cwd=folder, capture_output=True, text=True, check=True)
    assert said == plain.stdout.splitlines()[:2]
    facts = json.loads(said[1])
    (model,) = found.models
    assert (found.step, found.optimizers[0][0], model.name, model.kind) == (2, "Adam", "model", "Sequential")
    shapes = [(layer.name, layer.kind, layer.input, layer.output) for layer in model.layers]
    assert shapes == [
        ("", "Sequential", "(16, 8)", "(16, 4)"),
        ("0", "Linear", "(16, 8)", "(16, 32)"),
        ("1", "ReLU", "(16, 32)", "(16, 32)"),
        ("2", "Linear", "(16, 32)", "(16, 4)"),
    ]
    assert model.layers[0].std == pytest.approx(facts["std"])
    assert model.layers[2].zeros == pytest.approx(facts["zeros"])
    assert [one.norm for one in model.parameters] == pytest.approx(facts["norms"])
    assert [one.gradient_norm for one in model.parameters] == pytest.approx(facts["gradients"])
    (loss,) = found.losses
    assert (loss.whole.name, loss.whole.operation) == ("loss", "criterion (CrossEntropyLoss)")
    assert loss.whole.value == facts["loss"]
    assert (loss.whole.reaches[0].parts, loss.whole.reaches[0].values) == (("model",), 420)
    assert (loss.site, loss.cuts, loss.without_gradient) == (
        (str(folder / "train.py"), line_of(MLP, "backward")),
        (),
        (),
    )
    memory = found.memory
    assert (memory.parameters, memory.gradients, memory.buffers) == (4 * 420, 4 * 420, 0)
    assert memory.optimizer == 2 * 4 * 420 + 4 * 4  # two moments, and a step number for each tensor
    # The input, the output of ReLU, the result of log_softmax, the labels and the weight of the loss.
    saved = 4 * 16 * 8 + 4 * 16 * 32 + 4 * 16 * 4 + 8 * 16 + 4
    assert memory.saved == (saved if hasattr(torch._C._autograd.SavedTensor, "data") else None)


@pytest.mark.program
def test_the_first_step_is_taken_if_there_is_no_other(folder):
    found = seen(folder, MLP, "1")
    assert (found.step, found.outcome.how) == (1, "finished")
    facts = json.loads(found.outcome.said)
    assert [one.gradient_norm for one in found.models[0].parameters] == pytest.approx(facts["gradients"])


@pytest.mark.program
def test_a_step_by_its_number(folder):
    found = seen(folder, MLP, step=4)
    said = found.outcome.said.splitlines()
    assert (found.step, len(said), found.outcome.how) == (4, 4, "stopped")
    assert found.losses[0].whole.value == json.loads(said[3])["loss"]
    assert [layer.calls for layer in found.models[0].layers] == [1, 1, 1, 1]
    with pytest.raises(NoExperiment, match="finished after 3 steps, before step 4") as error:
        seen(folder, MLP, "3", step=4)
    assert "--step 3" in error.value.remedy


def test_layers_that_the_loss_does_not_reach_and_the_cut(folder):
    found = seen(folder, CUT)
    (model,) = found.models
    reached = {one.name for one in model.parameters if one.reached}
    assert reached == {"head.weight", "head.bias"}
    (loss,) = found.losses
    assert loss.whole.reaches[0].parts == ("model.head",)
    cuts = {cut.parts: (cut.by, cut.site and cut.site[1]) for cut in loss.cuts}
    assert cuts == {
        ("model.conv1", "model.norm", "model.conv2"): (".detach()", line_of(CUT, "the cut")),
        ("model.aux",): ("", None),
    }
    lines = printed(found, folder=folder)
    assert "no gradient: 8 of 10 tensors: conv1.weight, conv1.bias, norm.weight, norm.bias," in lines
    states = {line.split()[0]: line.split()[-1] for line in lines if line.startswith("  ") and "(" in line}
    assert (states["conv1"], states["aux"]) == ("none", "none")
    assert float(states["head"]) > 0
    assert found.memory.buffers == 4 * 4 * 2 + 8


@pytest.mark.program
def test_repeated_blocks_are_one_row_and_terms_have_names_and_factors(folder):
    found = seen(folder, TRANSFORMER)
    (model,) = found.models
    assert (model.tied, model.not_called) == ({"head.weight": "embedding.weight"}, ("unused",))
    rows = {row.name: row for row in rows_of(model)}
    assert list(rows) == [
        "net", "embedding", "blocks.0-5", "norm1", "attention", "norm2", "mlp", "0", "1", "2", "norm", "head",
    ]  # fmt: skip
    assert rows["mlp"].depth == 2
    assert [len(rows[name].layers) for name in ("blocks.0-5", "0", "norm")] == [6, 6, 1]
    assert rows["0"].values == 6 * (16 * 64 + 64)
    assert len(rows["0"].gradients) == len(rows["0"].ratios) == 6
    assert rows["attention"].values == 6 * (4 * 16 * 16 + 4 * 16)
    assert (rows["norm"].state, rows["head"].values, rows["head"].tied) == ("frozen", 0, ["embedding.weight"])
    assert sum(row.values for row in rows.values()) + 16 * 16 + 16 == sum(one.values for one in model.parameters)
    shallow = rows_of(model, depth=1)
    assert [row.name for row in shallow] == ["net", "embedding", "blocks.0-5", "norm", "head"]
    assert sum(row.values for row in shallow) == sum(row.values for row in rows.values())
    assert found.passes == len(found.losses) == 4
    whole = found.losses[0].whole
    assert [(term.name, term.operation) for term in whole.terms] == [("nll", "cross_entropy"), ("z", "mean")]
    assert [term.factor for term in whole.terms] == pytest.approx([0.25, 0.0025])
    (penalty,) = found.losses[0].without_gradient
    assert (penalty.parts, penalty.by, penalty.site[1]) == (("penalty",), ".item()", line_of(TRANSFORMER, ".item()"))
    lines = printed(found)
    assert sum(line.startswith("loss: ") for line in lines) == 1
    assert any(line.endswith(", 4 times") for line in lines)
    assert any("tied: head.weight is embedding.weight" in line for line in lines)


@pytest.mark.program
@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(folder, width):
    found = seen(folder, TRANSFORMER)
    lines = printed(found, width)
    assert max(map(len, lines)) <= width
    head = next(line for line in lines if line.startswith("layer"))
    assert ("input" in head.split()) == (width == 120)
    row = next(line for line in lines if line.startswith("  blocks.0-5"))
    assert "(8, 8, 16)" in row


def test_both_steps_of_a_gan_are_one_with_the_gradients_that_were_used(folder):
    found = seen(folder, GAN)
    assert len(found.outcome.said.splitlines()) == 2
    norms = json.loads(found.outcome.said.splitlines()[1])
    models = {model.name: model for model in found.models}
    assert [one.gradient_norm for one in models["discriminator"].parameters] == pytest.approx(norms[:4])
    assert [one.gradient_norm for one in models["generator"].parameters] == pytest.approx(norms[4:])
    lines = [line_of(GAN, "of_d.step()"), line_of(GAN, "of_g.step()")]
    assert [site[1] for _, site in found.optimizers] == lines
    of_d, of_g = found.losses
    assert [term.name for term in of_d.whole.terms] == ["on_real", "on_fake"]
    ((parts, by, place),) = [(cut.parts, cut.by, cut.site[1]) for cut in of_d.cuts]
    assert (parts, by, place) == (("generator",), ".detach()", line_of(GAN, "the cut"))
    assert {reach.model for reach in of_g.whole.reaches} == {"generator", "discriminator"}
    assert of_g.cuts == ()


@pytest.mark.program
def test_a_model_without_gradients_and_terms_in_a_dict(folder):
    found = seen(folder, TEACHER)
    (loss,) = found.losses
    names = [(term.name, term.operation, term.factor) for term in loss.whole.terms]
    assert names == [('losses["hard"]', "cross_entropy", 1.0), ('losses["soft"]', "mse_loss", 0.5)]
    assert [(cut.parts, cut.by, cut.site[1]) for cut in loss.cuts] == [
        (("teacher",), "no_grad()", line_of(TEACHER, "the cut"))
    ]
    lines = printed(found)
    assert "no gradients: no backward pass of this step reached it" in lines
    assert [line.split()[0] for line in lines if "1 layer called" in line] == ["student", "teacher"]


@pytest.mark.program
def test_a_recurrent_cell_is_one_row_with_its_calls(folder):
    (model,) = seen(folder, RNN).models
    cell = next(layer for layer in model.layers if layer.name == "cell")
    assert (cell.calls, cell.output, cell.trained) == (7, "(4, 32)", True)
    lstm = next(layer for layer in model.layers if layer.name == "lstm")
    assert lstm.output == "((4, 7, 32), ((2, 4, 32), (2, 4, 32)))"


def test_a_script_without_modules_and_optimizers(folder):
    found = seen(folder, BY_HAND)
    assert (found.step, found.models, found.optimizers) == (2, (), ())
    assert sorted(found.losses[0].whole.tensors) == [("first", (4, 8)), ("last", (8, 1))]
    assert (found.memory.parameters, found.memory.gradients) == (4 * 40, 4 * 40)
    lines = printed(found, width=120)
    assert any(line.startswith("no layers: no module was called in this step") for line in lines)


@pytest.mark.program
def test_the_inside_of_a_compiled_model_is_named_as_hidden(folder):
    found = seen(folder, COMPILED)
    (model,) = found.models
    assert [(layer.name, layer.output) for layer in model.layers] == [("", "(16, 4)")]
    assert model.hidden == (("", "torch.compile", 3),)
    assert all(one.gradient_norm for one in model.parameters)
    assert found.losses[0].whole.reaches[0].of == 4
    assert found.losses[0].hidden == ("torch.compile",)


def test_nan_has_its_origin_and_is_null_in_json(folder):
    found = seen(folder, NAN)
    lines = printed(found)
    assert any(line.startswith("first NaN in the forward of the model (Net), before it called head") for line in lines)
    assert any(line.split()[:2] == ["head", "Linear"] and "NaN" in line for line in lines)
    made = json.loads(json.dumps(document(found), allow_nan=False))
    assert (made["schema"], made["step"], made["how"]) == ("truestep.inspect/1", 2, "stopped")
    assert made["losses"][0]["whole"]["value"] is None
    assert made["models"][0]["layers"][0]["finite"] is False


WITHOUT_A_STEP = [
    ("import torch; torch.zeros(3)", "the script finished without training"),
    (
        "import torch\nw = torch.ones(1, requires_grad=True)\ntorch.optim.SGD([w], 0.1)\n(2 * w).backward()",
        "no optimizer of torch took a step, although losses were backpropagated",
    ),
    ("import torch\nraise ValueError('x')", "the script crashed before its first step"),
]


@pytest.mark.parametrize(
    ("program", "happened"),
    few(3, WITHOUT_A_STEP),
    ids=["no training", "no step", "crash"],
)
def test_a_script_without_a_step_has_no_result(folder, program, happened):
    with pytest.raises(NoExperiment, match=happened):
        seen(folder, program)


# --- rows, without a process ---


def layer(name, depth, **facts):
    common = LayerFacts(
        name, "Linear", depth, (), 1, "(4, 8)", "(4, 8)", "float32", "cpu", True, False, 0.0, 1.0, 0.0, True
    )
    return replace(common, **facts)


def model_of(layers, parameters=()):
    return ModelFacts("model", "Net", tuple(layers), tuple(parameters), {}, (), (), "", "", "", ())


def parameter(name, **facts):
    return replace(ParameterFacts(name, (8, 8), "float32", 64, True, True, 2.0, 1.0), **facts)


def test_rows_are_one_only_if_their_form_is_equal():
    names = ["layers.0", "layers.1", "layers.2", "layers.3", "layers.5", "other.6"]
    wider = {"layers.2": {"output": "(4, 16)"}}
    model = model_of([layer("", 0), *(layer(name, 1, **wider.get(name, {})) for name in names)])
    assert [row.name for row in rows_of(model)] == [
        "model", "layers.0-1", "layers.2", "layers.3", "layers.5", "other.6",
    ]  # fmt: skip
    reached = [parameter("layers.0.weight"), parameter("layers.1.weight", reached=False, gradient_norm=None)]
    model = model_of([layer("", 0), layer("layers.0", 1), layer("layers.1", 1)], reached)
    assert [(row.name, row.state) for row in rows_of(model)][1:] == [("layers.0", "all"), ("layers.1", "none")]


def test_the_norm_of_a_row_is_that_of_all_its_parameters():
    parameters = [parameter("0.weight", gradient_norm=3.0, norm=6.0), parameter("0.bias", gradient_norm=4.0, norm=8.0)]
    parameters += [parameter("0.other", gradient_norm=None, reached=False)]
    (_, row) = rows_of(model_of([layer("", 0), layer("0", 1)], parameters))
    assert (row.gradients, row.ratios, row.state, row.values) == ([5.0], [0.5], "some", 192)


@pytest.mark.program
def test_a_long_table_has_its_first_and_last_rows(folder):
    found = seen(folder, BY_HAND)
    layers = [layer("", 0), *(layer(f"part{number}x", 1) for number in range(200))]
    lines = printed(replace(found, models=(model_of(layers),)))
    assert any(line.startswith("... 141 more") for line in lines)
    assert sum("part" in line for line in lines) == 59
    assert any("part199x" in line for line in lines)


CRASH = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 16), nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(2, 8)).sum().backward()
optimizer.step()
"""
LATE = """
import torch
from torch import nn

critic, maker = nn.Linear(8, 1), nn.Linear(4, 8)
of_critic, of_maker = torch.optim.SGD(critic.parameters(), 0.1), torch.optim.SGD(maker.parameters(), 0.1)
for step in range(6):
    critic.eval()
    with torch.no_grad():
        critic(torch.randn(2, 8))
    critic.train()
    of_critic.zero_grad()
    loss = critic(torch.randn(2, 8)).mean() - critic(maker(torch.randn(2, 4)).detach()).mean()
    loss.backward()
    of_critic.step()
    if step % 3 == 2:
        of_maker.zero_grad()
        (-critic(maker(torch.randn(2, 4))).mean()).backward()
        of_maker.step()
"""


PER_SAMPLE = """
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.1)

def error(parameters, x, y):
    return (functional_call(net, parameters, (x,)) - y).square().sum()

for _ in range(3):
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    values = {name: parameter.detach() for name, parameter in net.named_parameters()}
    vmap(grad(error), in_dims=(None, 0, 0))(values, x, y)
    loss = error(dict(net.named_parameters()), x, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.program
def test_a_model_is_seen_with_its_own_parameters_also_after_a_transform(folder):
    (model,) = seen(folder, PER_SAMPLE).models
    assert [layer.output for layer in model.layers] == ["(8, 1)", "(8, 8)", "(8, 8)", "(8, 1)"]
    assert all(one.gradient_norm for one in model.parameters)


@pytest.mark.program
def test_a_crash_in_the_first_step_shows_the_layers_up_to_it(folder):
    found = seen(folder, CRASH)
    assert (found.ended, found.outcome.how) == (False, "crashed")
    (model,) = found.models
    assert [(layer.name, layer.raised) for layer in model.layers] == [("", True), ("0", False), ("1", True)]
    lines = printed(found)
    assert lines[0] == "inspect: step 1, up to the error that ended the script"
    assert lines[1] == "crashed: RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x16 and 8x4)"
    assert any(line.split()[:4] == ["1", "Linear", "raised", "on"] and "(2, 16)" in line for line in lines)
    assert not any(line.startswith("memory") for line in lines)


@pytest.mark.program
def test_the_step_of_another_optimizer_belongs_to_the_step_before_it(folder):
    found = seen(folder, LATE, step=3)
    assert [site[1] for _, site in found.optimizers] == [line_of(LATE, "of_critic.step()")]
    found = seen(folder, LATE, step=4)
    assert [site[1] for _, site in found.optimizers] == [line_of(LATE, "of_critic.step()")]
    assert found.passes == 1
    models = {model.name: model for model in found.models}
    assert models["critic"].layers[0].calls == 2, "calls without gradients, as in an evaluation, do not count"
    (whole,) = [loss.whole for loss in found.losses]
    assert [term.factor for term in whole.terms] == [1.0, -1.0]
