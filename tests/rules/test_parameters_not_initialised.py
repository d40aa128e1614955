import copy

import pytest
import torch
from torch import nn

from truestep.events import ParameterUnwritten, Site
from truestep.findings import Confidence, Outcome
from truestep.lint import lint
from truestep.rules import Progress
from truestep.rules.parameters_not_initialised import ParametersNotInitialised
from truestep.testing import capture_events, judge

CALL = Site("train.py", 40, 4)
CLASS = """
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = {made}
        self.bias = nn.Parameter(torch.zeros(outputs))
        {init}

    def forward(self, x):
        return x @ self.weight.T + self.bias

{other}
"""
EMPTY = "nn.Parameter(torch.empty(outputs, inputs))"


def text(made=EMPTY, init="pass", other=""):
    return CLASS.format(made=made, init=init, other=other)


def met(path, *, name="weight", files=(), compared=True):
    return ParameterUnwritten(
        model=1,
        layer="0",
        name=name,
        owners=(("Layer", str(path)),),
        files=tuple(map(str, files)),
        compared=compared,
        site=CALL,
    )


def judged(tmp_path, *, name="weight", **parts):
    path = tmp_path / "layer.py"
    path.write_text(text(**parts))
    return judge(ParametersNotInitialised, [met(path, name=name)])


@pytest.mark.parametrize(
    "made",
    [
        EMPTY, "nn.Parameter(torch.Tensor(outputs, inputs))", "nn.Parameter(torch.empty((outputs, inputs)), True)",
        "torch.nn.Parameter(data=torch.empty(outputs, inputs, device='cpu'))",
    ],
)  # fmt: skip
def test_memory_is_found_in_a_run_and_in_the_source(tmp_path, made):
    (finding,) = judged(tmp_path, made=made)
    assert (finding.primary.site.line, finding.related[0].site) == (8, CALL)
    assert [one.rule for one in lint(text(made=made))] == ["parameters-not-initialised"]


@pytest.mark.parametrize(
    "parts",
    [
        {"init": "nn.init.xavier_uniform_(self.weight)"},
        {"init": "self.weight.data.uniform_(-0.1, 0.1)"},
        {"init": "self.weight.data[:] = torch.randn(outputs, inputs)"},
        {"init": "self.reset(self.weight)"},
        {"init": "nn.init.xavier_uniform(self.weight)"},
        {"other": "def scale(model):\n    model[0].weight.data.mul_(0.5)"},
        {"other": "def fill(model):\n    for p in model.parameters():\n        p.data = torch.randn_like(p)"},
        {"other": "def fill(model):\n    for p in model.parameters():\n        p.data += torch.randn_like(p)"},
        {"other": "def fill(model):\n    for p in model.parameters():\n        nn.init.normal_(p.data)"},
        {"other": "def fill(parameters):\n    for p in parameters:\n        p.detach().numpy()[...] = draw(p.shape)"},
        {"other": "net = torch.load('model.pt')"},
        {"other": "net = pickle.loads(state)"},
        {"other": "def predict(net, made, x):\n    return torch.func.functional_call(net, made, (x,))"},
        {"made": "nn.Parameter(torch.randn(outputs, inputs))"},
        {"made": "nn.Parameter(torch.empty(outputs, inputs).normal_(0, 0.1))"},
        {"made": "nn.Parameter(nn.init.orthogonal_(torch.empty(outputs, inputs)))"},
        {"made": "nn.Parameter(torch.empty(0))"},
        {"made": "nn.Parameter(torch.Tensor(inputs))"},
    ],
)
def test_values_that_are_written_are_quiet(tmp_path, parts):
    assert judged(tmp_path, **parts) == []
    assert list(lint(text(**parts))) == []


@pytest.mark.parametrize(
    "other",
    [
        "def fill(model):\n    for p in model.parameters():\n        nn.init.normal_(p)",
        "def start(model):\n    model.apply(weights)",
        "def resume(model, path):\n    model.load_state_dict(path)",
    ],
)
def test_writes_to_all_parameters_are_counted_by_a_run_and_may_be_any_in_the_source(tmp_path, other):
    assert len(judged(tmp_path, other=other)) == 1
    assert list(lint(text(other=other))) == []


@pytest.mark.parametrize(
    ("other", "count"),
    [
        ("def fill(model):\n    for p in model.parameters():\n        nn.init.normal_(p)", 0),
        ("def fill(module):\n    module.apply(weights)", 0),
        ("model.load_state_dict(state, assign=True)", 0),
        ("def step(model):\n    model.requires_grad_(True)\n    nn.utils.clip_grad_norm_(model, 1.0)", 1),
        ("def train(model):\n    model.train()", 1),
    ],
)
def test_values_that_were_not_compared_are_found_without_any_initialisation(tmp_path, other, count):
    path = tmp_path / "layer.py"
    path.write_text(text(other=other))
    assert len(judge(ParametersNotInitialised, [met(path, compared=False)])) == count


@pytest.mark.parametrize(
    "parts",
    [
        {"init": "glorot(self)"},
        {"init": "glorot(self.weight)"},
        {"init": "glorot(1.0, self.weight)"},
        {"init": "for p in self.parameters():\n            glorot(p)"},
        {"init": "for one in (self.weight, self.bias):\n            glorot(one)"},
        {"init": "torch.randn(3, 3, out=self.weight.detach())"},
        {"init": "self.weight = self.other.weight"},
        {"other": "def tie(net):\n    net.last.weight = net.first.weight"},
        {"other": "def put(layer, name):\n    vars(layer)['_parameters'][name] = made(name)"},
        {"other": "def fill(net):\n    for x in net.state_dict().values():\n        np.copyto(x.numpy(), made)"},
    ],
)
def test_helpers_of_other_files_may_write_in_the_source(parts):
    assert list(lint(text(**parts))) == []


def test_a_base_of_another_file_may_write_in_the_source():
    source = text().replace("class Layer(nn.Module)", "class Layer(Base)")
    assert list(lint("from layers import Base\n" + source)) == []
    assert len(list(lint("class Base(nn.Module):\n    pass\n" + source))) == 1


def test_a_file_that_does_not_train_is_less_sure():
    (alone,) = lint(text())
    (trains,) = lint(
        text(other="def train(loss, optimizer):\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()")
    )
    assert (alone.confidence, trains.confidence) == (Confidence.LOW, Confidence.HIGH)
    (measures,) = lint(text(other="def measure(loss):\n    loss.backward()"))
    assert measures.confidence is Confidence.LOW


@pytest.mark.parametrize("given", ["net", "net.parameters()", "list(net.modules())"])
def test_a_model_that_another_file_gets_is_less_sure(given):
    train = "def train(loss, optimizer):\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
    one = text(other=f"{train}net = Layer(2, 3)\nbegin({given})")
    (own,), (other,) = lint("def begin(net):\n    pass\n" + one), lint("from layers import begin\n" + one)
    assert (own.confidence, other.confidence) == (Confidence.HIGH, Confidence.LOW)


def test_another_file_may_write_to_it(tmp_path):
    path, other = tmp_path / "layer.py", tmp_path / "start.py"
    path.write_text(text())
    other.write_text("def start(layer):\n    layer.weight.data.normal_()\n")
    assert judge(ParametersNotInitialised, [met(path, files=[other])]) == []


def test_a_parameter_of_another_kind_is_clear(tmp_path):
    assert judged(tmp_path, name="bias") == []
    rule, run = ParametersNotInitialised(), Progress()
    run.note(met(tmp_path))
    assert rule.verdict(run).outcome is Outcome.CLEAR


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(3, 3))

    def forward(self, x):
        return x @ self.weight


def by_optimizer(layer, loss):
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    optimizer.zero_grad()
    loss().backward()
    optimizer.step()


def by_closure(layer, loss):
    optimizer = torch.optim.LBFGS(layer.parameters(), lr=0.1, max_iter=1)

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(closure)


def by_hand(layer, loss):
    for _ in range(2):
        layer.zero_grad()
        loss().backward()
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter -= 0.1 * parameter.grad


def update(layer, by=by_optimizer):
    x = torch.linspace(1, 2, 6).view(2, 3)
    by(layer, lambda: (layer(x) * torch.tensor([-1.0, 2.0, 3.0])).sum())


def unwritten(layer):
    with capture_events() as events:
        update(layer)
    return [(event.layer, event.name) for event in events if isinstance(event, ParameterUnwritten)]


MEMORY = torch.arange(9.0).reshape(3, 3)


class Memory(nn.Module):
    """A layer with a weight of known memory and a version of zero."""

    def __init__(self, values=MEMORY):
        super().__init__()
        self.weight = nn.Parameter(values.data.clone())

    def forward(self, x):
        return x @ self.weight


class Late(nn.Module):
    """A layer that gets its shape from its first input; this file says `empty`."""

    def __init__(self):
        super().__init__()
        self.weight = nn.UninitializedParameter()

    def forward(self, x):
        self.weight.materialize((3, 3))
        with torch.no_grad():
            self.weight.fill_(1.0)
        return x @ self.weight


def test_a_parameter_without_a_shape_has_no_values_yet():
    assert unwritten(nn.Sequential(nn.Linear(3, 3), Late())) == []


def as_is(layer):
    return layer


def by_numpy(layer):
    layer.weight.detach().numpy()[...] = 0.5
    return layer


def by_data(layer):
    layer.weight.data.normal_()
    return layer


def by_vector(layer):
    nn.utils.vector_to_parameters(torch.linspace(0, 1, 9), layer.parameters())
    return layer


def copied_before(layer):
    return copy.deepcopy(layer)


def copied_after(layer):
    nn.init.eye_(layer.weight)
    return copy.deepcopy(layer)


def assigned(layer):
    layer.load_state_dict({"weight": torch.linspace(0, 1, 9).view(3, 3)}, assign=True)
    return layer


def replaced(layer):
    layer._parameters["weight"] = nn.Parameter(torch.linspace(0, 1, 9).view(3, 3))
    return layer


def zero(layer):
    return Memory(torch.zeros(3, 3))


@pytest.mark.parametrize(
    ("change", "compared"),
    [
        (as_is, [True]), (by_numpy, []), (by_data, []), (by_vector, []), (copied_before, [True]),
        (copied_after, []), (assigned, []), (replaced, []), (zero, [False]),
    ],
)  # fmt: skip
def test_values_are_compared_with_those_of_the_registration(change, compared):
    with capture_events() as events:
        update(change(Memory()))
    assert [event.compared for event in events if isinstance(event, ParameterUnwritten)] == compared


@pytest.mark.parametrize("by", [by_optimizer, by_closure, by_hand])
def test_values_are_compared_before_the_first_update(by):
    with capture_events() as events:
        update(Memory(), by)
    assert [event.compared for event in events if isinstance(event, ParameterUnwritten)] == [True]


def called_first(layer):
    with torch.no_grad():
        layer(torch.ones(2, 3))
    return layer


def differentiated_first(layer):
    layer(torch.ones(2, 3)).sum().backward()
    layer.zero_grad()
    return layer


@pytest.mark.parametrize("before", [called_first, differentiated_first])
@pytest.mark.parametrize("change", [by_data, by_numpy, by_vector, assigned, replaced])
@pytest.mark.parametrize("by", [by_optimizer, by_hand])
def test_values_that_are_written_after_a_first_pass_are_quiet(before, change, by):
    with capture_events() as events:
        update(change(before(Memory())), by)
    assert [event for event in events if isinstance(event, ParameterUnwritten)] == []


def test_a_parameter_without_a_gradient_and_a_model_without_an_update_are_quiet():
    class Unused(Memory):
        def forward(self, x):
            return x + 0 * x.sum()

    both = nn.Sequential(nn.Linear(3, 3), Unused())
    assert unwritten(both) == []
    with capture_events() as events:
        layer = Memory()
        for _ in range(3):
            layer(torch.ones(2, 3)).sum().backward()
    assert [event for event in events if isinstance(event, ParameterUnwritten)] == []


def test_memory_that_a_parameter_of_the_same_name_had_before_is_not_sure():
    memory = torch.arange(9.0).view(3, 3)

    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(memory.data)

        def forward(self, x):
            return x @ self.weight

    with capture_events() as events:
        Shared()
        update(Shared())
    assert [event.compared for event in events if isinstance(event, ParameterUnwritten)] == [False]


def test_a_parameter_that_is_made_of_an_earlier_one_is_quiet():
    with capture_events() as events:
        layer = Memory()
        nn.init.eye_(layer.weight)
        weight = layer.weight
        del layer.weight
        layer.weight = nn.Parameter(weight.detach().clone())
        update(layer)
    assert [event for event in events if isinstance(event, ParameterUnwritten)] == []


OTHER = """
class Other(nn.Module):
    def __init__(self):
        self.weight = nn.Parameter(torch.empty(3, 3))
        self.weight.data.normal_()
        nn.init.normal_(self.weight)
        self.scale.data.fill_(1)
"""


def test_data_of_another_class_and_of_another_name_are_no_writes_to_values_that_were_compared(tmp_path):
    path = tmp_path / "layer.py"
    path.write_text(text(other=OTHER, init="self.bias.data.zero_()"))
    assert len(judge(ParametersNotInitialised, [met(path)])) == 1
    assert judge(ParametersNotInitialised, [met(path, compared=False)]) == []
    for line in ("self.weight.data.normal_()", "nn.init.normal_(self.weight.data)"):
        path.write_text(text(other=OTHER, init=line))
        assert judge(ParametersNotInitialised, [met(path)]) == []
    path.write_text(text(other=OTHER + "        layer.weight.data.normal_()\n"))
    assert judge(ParametersNotInitialised, [met(path)]) == []


def test_versions_of_parameters_are_read_before_the_first_update():
    assert unwritten(nn.Sequential(nn.Linear(3, 3), Layer())) == [("1", "weight")]
    layer = Layer()
    nn.init.eye_(layer.weight)
    assert unwritten(layer) == []
    loaded = Layer()
    loaded.load_state_dict(copy.deepcopy(layer.state_dict()))
    assert unwritten(loaded) == []
    frozen = Layer()
    frozen.weight.requires_grad_(False)
    assert unwritten(nn.Sequential(frozen, nn.Linear(3, 1))) == []
