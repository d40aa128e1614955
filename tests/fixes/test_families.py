"""Fixes of single rules, on short programs: the edits, and programs without a certain one."""

import pytest

from truestep.events import Site
from truestep.fixes import propose

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def fixed(rule, text, code, *, related=(), nth=0, **texts):
    """Return a program with a fix for the failure at a piece of its code, or None; without the first lines."""
    fix = propose(
        HEAD + text, rule, place(HEAD + text, code, nth), [place(HEAD + text, one) for one in related], **texts
    )
    if fix is None:
        return None
    compile(fix.new, "train.py", "exec")
    return fix.new.removeprefix(HEAD)


def safe(rule, text, code, **texts):
    return propose(HEAD + text, rule, place(HEAD + text, code), **texts).safe


def place(text, code, nth=0):
    begin = -1
    for _ in range(nth + 1):
        begin = text.index(code, begin + 1)
    line = text.count("\n", 0, begin) + 1
    column = begin - (text.rfind("\n", 0, begin) + 1)
    return Site("train.py", line, column, line, column + len(code))


def test_gradients_are_cleared_after_the_step_with_several_backward_passes():
    text = "for x in xs:\n    a(x).backward()\n    b(x).backward()\n    opt.step()\n"
    assert fixed("missing-zero-grad", text, "opt.step()") == text + "    opt.zero_grad()\n"


def test_gradients_are_cleared_where_the_step_of_a_window_is():
    text = "for i, x in enumerate(xs):\n    loss(x).backward()\n    if i % 4 == 3:\n        opt.step()\n"
    assert fixed("missing-zero-grad", text, "opt.step()") == text + "        opt.zero_grad()\n"


def test_gradients_are_cleared_for_a_scaler_and_in_a_closure():
    text = "for x in xs:\n    scaler.scale(loss(x)).backward()\n    scaler.step(self.opt)\n    scaler.update()\n"
    assert "    self.opt.zero_grad()\n    scaler.scale" in fixed("missing-zero-grad", text, "scaler.step(self.opt)")
    text = "for x in xs:\n    def closure():\n        l = loss(x)\n        l.backward()\n    opt.step(closure)\n"
    assert "        opt.zero_grad()\n        l.backward()\n" in fixed("missing-zero-grad", text, "opt.step(closure)")


@pytest.mark.parametrize(
    "text",
    [
        "for x in xs:\n    opt.zero_grad()\n    loss(x).backward()\n    opt.step()\n",
        "[opt.step() for opt in opts]\n",
        "for x in xs:\n    make().step()\n",
    ],
)
def test_gradients_are_not_cleared_twice_or_for_an_unknown_optimizer(text):
    code = "opt.step()" if "opt.step" in text else "make().step()"
    assert fixed("missing-zero-grad", text, code) is None


def test_a_method_without_parentheses_is_called():
    text = "for x in xs:\n    opt.zero_grad\n    loss(x).backward()\n    opt.step()\n"
    assert "    opt.zero_grad()\n    loss" in fixed("missing-zero-grad", text, "opt.step()")


def test_a_clip_gets_unscaled_gradients_when_it_moves():
    text = "for x in xs:\n    scaler.scale(f(x)).backward()\n    scaler.step(opt)\n    clip(ps)\n    scaler.update()\n"
    new = fixed("clip-after-step", text, "clip(ps)", related=["scaler.step(opt)"])
    assert "    scaler.unscale_(opt)\n    clip(ps)\n    scaler.step(opt)\n" in new


def test_a_clip_stays_if_a_name_between_changes_its_meaning():
    text = "for x in xs:\n    f(x).backward()\n    opt.step()\n    ps = g(x)\n    clip(ps)\n"
    assert fixed("clip-after-step", text, "clip(ps)", related=["opt.step()"]) is None


def test_a_clip_in_another_loop_stays():
    text = "for x in xs:\n    f(x).backward()\n    opt.step()\nclip(ps)\n"
    assert fixed("clip-after-step", text, "clip(ps)", related=["opt.step()"]) is None


def test_unscaling_is_not_called_for_each_micro_batch():
    text = "for x in xs:\n    scaler.scale(f(x)).backward()\n    clip(ps)\n    if x:\n        scaler.step(opt)\n"
    assert fixed("clip-before-unscale", text, "clip(ps)") is None


def test_the_schedule_follows_the_update_of_the_scaler():
    text = "for x in xs:\n    sched.step()\n    scaler.step(opt)\n    scaler.update()\n"
    new = fixed("scheduler-before-optimizer", text, "sched.step()", related=["scaler.step(opt)"])
    assert new == "for x in xs:\n    scaler.step(opt)\n    scaler.update()\n    sched.step()\n"


def test_the_schedule_moves_into_the_loop_and_out_of_it():
    text = "for e in range(9):\n    for x in xs:\n        opt.step()\n    sched.step()\n"
    help = "call `sched.step()` after every `opt.step()`"
    new = fixed("scheduler-wrong-cadence", text, "sched.step()", help=help)
    assert new == "for e in range(9):\n    for x in xs:\n        opt.step()\n        sched.step()\n"
    help = "call `sched.step()` once per epoch, after the loop over batches"
    assert fixed("scheduler-wrong-cadence", new, "sched.step()", help=help) == text
    assert fixed("scheduler-wrong-cadence", new, "sched.step()", help="set its length") is None


def test_eval_mode_returns_to_train_mode_where_nothing_else_does():
    loop = "opt = torch.optim.SGD(model.parameters())\nfor e in es:\n    for x in xs:\n        f(model(x)).backward()\n"
    text = loop + "    with torch.no_grad():\n        print(model(test))\n"
    new = fixed("eval-mode-missing", text, "model(test)")
    assert new == loop + "    model.eval()\n    with torch.no_grad():\n        print(model(test))\n    model.train()\n"
    text = text.replace("    for x", "    model.train()\n    for x")
    assert fixed("eval-mode-missing", text, "model(test)").count("train()") == 1


def test_eval_mode_is_not_set_where_a_return_skips_train_mode():
    text = "def evaluate(model):\n    with torch.no_grad():\n        return model(test)\n"
    assert fixed("eval-mode-missing", text, "model(test)") is None


def test_modes_are_not_set_in_a_forward():
    text = "class N(nn.Module):\n    def forward(self, x):\n        return self.body(x)\n"
    assert fixed("eval-mode-missing", text, "self.body(x)") is None
    assert fixed("no-grad-missing", text, "self.body(x)") is None


def test_an_evaluation_in_a_training_function_gets_a_with():
    text = (
        "def fit(model):\n    for x in xs:\n        f(model(x)).backward()\n"
        "    for v in vs:\n        print(model(v))\n    return model\n"
    )
    new = fixed("no-grad-missing", text, "model(v)")
    assert new.endswith(
        "    with torch.no_grad():\n        for v in vs:\n            print(model(v))\n    return model\n"
    )


def test_train_mode_is_set_in_the_loop_that_evaluates():
    text = (
        "def check():\n    model.eval()\nmodel.train()\nfor e in range(2):\n    for x in xs:\n"
        "        f(model(x)).backward()\n        if x: check()\n"
    )
    new = fixed("train-mode-not-restored", text, "model(x)", related=["model.eval()"])
    assert "    for x in xs:\n        model.train()\n        f(model(x))" in new


def test_dropout_follows_the_mode():
    text = "class N(nn.Module):\n    def forward(self, x):\n        return F.dropout(x, {})\n"
    call = "F.dropout(x, {})"
    for before, after in (("0.5", "0.5, training=self.training"), ("0.5, True", "0.5, self.training")):
        new = fixed("functional-dropout-always-on", text.format(before), call.format(before))
        assert new == text.format(after)
    assert fixed("functional-dropout-always-on", "def f(x):\n    return F.dropout(x)\n", "F.dropout(x)") is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("F.cross_entropy(F.softmax(model(x), dim=1), y)", "F.cross_entropy(model(x), y)"),
        ("F.cross_entropy(model(x).softmax(1), y)", "F.cross_entropy(model(x), y)"),
        ("F.cross_entropy(nn.Softmax(dim=1)(model(x)), y)", "F.cross_entropy(model(x), y)"),
    ],
)
def test_a_softmax_in_the_loss_is_removed_safely(before, after):
    assert fixed("softmax-before-cross-entropy", f"loss = {before}\n", before) == f"loss = {after}\n"
    assert safe("softmax-before-cross-entropy", f"loss = {before}\n", before)


def test_a_softmax_of_the_model_is_to_be_reviewed():
    text = (
        "class N(nn.Module):\n    def __init__(self):\n        self.out = nn.Softmax(dim=1)\n"
        "    def forward(self, x):\n        return self.out(self.fc(x))\nmodel = N().to('cpu')\n"
        "loss = F.cross_entropy(model(x), y)\n"
    )
    new = fixed("softmax-before-cross-entropy", text, "F.cross_entropy(model(x), y)")
    assert "        return self.fc(x)\n" in new
    assert not safe("softmax-before-cross-entropy", text, "F.cross_entropy(model(x), y)")


def test_a_value_with_other_readers_keeps_its_softmax_or_is_reviewed():
    text = "p = model(x).softmax(1)\nloss = F.cross_entropy(p, y)\nprint(p.max())\n"
    assert not safe("softmax-before-cross-entropy", text, "F.cross_entropy(p, y)")


def test_losses_are_kept_without_graphs():
    for text, code, new in (
        ("total += loss\n", "total += loss", "total += loss.detach()\n"),
        ("total = total + loss * n\n", "total = total + loss * n", "total = total + (loss * n).detach()\n"),
        ("log['loss'] = f(x)\n", "log['loss'] = f(x)", "log['loss'] = f(x).detach()\n"),
    ):
        assert fixed("loss-kept-with-graph", text, code) == new
    for text in ("total += loss.item()\n", "rows.append((a, b))\n", "rows.extend(losses)\n"):
        assert fixed("loss-kept-with-graph", text, text.strip()) is None
    meter = "class M:\n    def update(self, value):\n        self.sum += value\n"
    assert fixed("loss-kept-with-graph", meter, "self.sum += value") is None


def test_a_pair_of_states_is_detached():
    text = (
        "lstm = nn.LSTM(3, 4)\nfor x in xs:\n    out, state = lstm(x, state)\n    f(out).backward(retain_graph=True)\n"
    )
    new = fixed("hidden-state-not-detached", text, "f(out).backward(retain_graph=True)")
    assert new.endswith("    f(out).backward()\n    state = tuple(part.detach() for part in state)\n")
    assert fixed("retain-graph-in-loop", text, "f(out).backward(retain_graph=True)") is None


def test_layers_are_registered():
    text = (
        "class N(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = {}\n"
        "        for n in (1, 2):\n            self.a.append(nn.Linear(n, n))\n"
        "    def forward(self, x):\n        return self.a[0](x)\n"
    )
    help = "make `self.a` an `nn.ModuleList`"
    new = fixed("layers-in-plain-container", text.format("[]"), "self.a[0](x)", help=help)
    assert "        self.a = nn.ModuleList()\n" in new
    assert fixed("layers-in-plain-container", new, "self.a[0](x)", help=help) is None
    assert fixed("layers-in-plain-container", text.format("[[f()]]"), "self.a[0](x)", help=help) is None
    assert fixed("layers-in-plain-container", text.format("{1: f()}"), "self.a[0](x)", help=help) is None


def test_a_tensor_with_gradients_is_a_parameter():
    text = (
        "class N(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.w = torch.randn(4, 4, requires_grad=True)\n    def forward(self, x):\n        return x @ self.w\n"
    )
    new = fixed("layers-in-plain-container", text, "x @ self.w", message="`w` of `N` is a plain tensor: it moves")
    assert "        self.w = nn.Parameter(torch.randn(4, 4))\n" in new


def test_super_forward_stays():
    text = "class N(M):\n    def forward(self, x):\n        return super().forward(x)\n"
    assert fixed("forward-called-directly", text, "super().forward(x)") is None


def test_a_copy_is_imported_where_imports_are():
    new = fixed("best-weights-aliased", "best = model.state_dict()\n", "model.state_dict()")
    assert new.startswith("import copy\nimport torch\n")
    assert new.endswith("best = copy.deepcopy(model.state_dict())\n")
    text = "from copy import deepcopy as clone\nbest = model.state_dict()\n"
    assert fixed("best-weights-aliased", text, "model.state_dict()").endswith("best = clone(model.state_dict())\n")
    assert fixed("best-weights-aliased", "best = dict(model.state_dict())\n", "model.state_dict()").endswith(
        "best = copy.deepcopy(model.state_dict())\n"
    )
    assert fixed("best-weights-aliased", "w = model.state_dict()['w']\n", "model.state_dict()") is None


def test_losses_are_divided_by_the_window():
    text = "for i, x in enumerate(xs):\n    {}\n    if (i + 1) % every == 0:\n        opt.step()\n"
    for before, after in (
        ("loss.backward()", "(loss / every).backward()"),
        ("scaler.scale(a + b).backward()", "scaler.scale((a + b) / every).backward()"),
    ):
        new = fixed("accumulation-not-normalised", text.format(before), before, related=["opt.step()"])
        assert new == text.format(after)
        assert fixed("accumulation-not-normalised", new, after, related=["opt.step()"]) is None


def test_the_target_or_the_prediction_is_squeezed():
    text = "loss = F.mse_loss(model(x), y)\n"
    new = fixed("broadcast-target", text, "F.mse_loss(model(x), y)", help="squeeze the target, `y.squeeze(-1)`, or")
    assert new == "loss = F.mse_loss(model(x), y.squeeze(-1))\n"
    assert fixed("broadcast-target", text, "F.mse_loss(model(x), y)", help="give both the same shape") is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "scaler = torch.cuda.amp.GradScaler(enabled=on)\nwith torch.cuda.amp.autocast(on): f()\n",
            'scaler = torch.amp.GradScaler("cuda", enabled=on)\nwith torch.amp.autocast("cuda", enabled=on): f()\n',
        ),
        (
            "from torch.cuda.amp import GradScaler, autocast as c\ns = GradScaler()\n@c()\ndef f(): pass\n",
            'from torch.amp import GradScaler, autocast as c\ns = GradScaler("cuda")\n@c("cuda")\ndef f(): pass\n',
        ),
        (
            "from torch.cuda import amp\nwith amp.autocast(dtype=torch.float16): f()\n",
            'from torch import amp\nwith amp.autocast("cuda", dtype=torch.float16): f()\n',
        ),
    ],
)
def test_old_names_of_amp(before, after):
    code = before.splitlines()[0]
    assert fixed("deprecated-amp-api", before, code) == after
    assert fixed("deprecated-amp-api", after, after.splitlines()[0]) is None


def test_old_names_of_amp_that_are_not_called_stay():
    text = "from torch.cuda.amp import autocast\n@autocast\ndef f(): pass\n"
    assert fixed("deprecated-amp-api", text, "from torch.cuda.amp import autocast") is None


def test_an_optimizer_is_built_before_the_loops_that_do_not_change_its_parameters():
    text = (
        "for k in ks:\n    net = make()\n    for x in xs:\n        opt = Adam(net.parameters())\n        opt.step()\n"
    )
    new = fixed("optimizer-rebuilt", text, "opt = Adam(net.parameters())")
    assert (
        new
        == "for k in ks:\n    net = make()\n    opt = Adam(net.parameters())\n    for x in xs:\n        opt.step()\n"
    )


def test_an_optimizer_that_may_be_that_of_a_task_is_to_be_reviewed():
    text = "for x in xs:\n    opt = Adam(net.parameters())\n    opt.step()\n"
    code = "opt = Adam(net.parameters())"
    message = "`opt` was built again for each {}, and the moments of the one before were lost"
    assert safe("optimizer-rebuilt", text, code, message=message.format("pass over the data"))
    assert not safe("optimizer-rebuilt", text, code, message=message.format("39 steps"))


def test_a_second_step_is_removed():
    text = "for x in xs:\n    f(x).backward()\n    opt.step()\n    opt.step()\n"
    second = place(HEAD + text, "opt.step()", nth=1)
    fix = propose(HEAD + text, "step-without-backward", second, [place(HEAD + text, "opt.step()")])
    assert fix.new.removeprefix(HEAD) == "for x in xs:\n    f(x).backward()\n    opt.step()\n"


def test_a_body_that_becomes_empty_has_a_pass():
    text = "def f():\n    torch.autograd.set_detect_anomaly(True)\n"
    assert fixed("anomaly-mode-left-on", text, "torch.autograd.set_detect_anomaly(True)") == "def f():\n    pass\n"


def test_an_unknown_rule_has_no_fix():
    assert fixed("no-such-rule", "f()\n", "f()") is None
