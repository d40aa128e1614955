"""`run.inspect`, `run.features`, `run.profile`: for models, loops and folder of a run, and nothing else changes."""

import copy
import json

import pytest
import torch
import torch.nn.functional as F
from tiers import only
from torch import nn

import truestep as ts
from truestep.errors import BadPart, BadSettings, UnknownModule
from truestep.testing import assert_clean


def net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.Tanh(), nn.Linear(8, 3))


def dataset():
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(26, 6, generator=generator), torch.randint(0, 3, (26,), generator=generator)
    return torch.utils.data.TensorDataset(x, y)


def train(out=None, *, look=True, resume=None, epochs=2, **settings):
    """Train with all observers on; return weights and observations."""
    settings = {"accumulate": 2, "clip_norm": 0.5, "device": "cpu", "watch": False} | settings
    run = ts.Run(out=out, resume=resume, max_epochs=epochs, seed=3, **settings)
    model = run.model(net())
    optimizer = run.optimizer(torch.optim.AdamW(model.parameters(), lr=0.05))
    run.scheduler(ts.schedules.warmup_cosine(optimizer, warmup=0.2))
    loader = run.loader(dataset(), batch_size=4, shuffle=True)
    seen = []

    def loop():
        for _ in run.epochs():
            for x, y in run.train(loader, model):
                with run.inspect(when=look and run.global_step % 3 == 1) as inspection:
                    with run.autocast():
                        loss = F.cross_entropy(model(x), y)
                    run.step(loss)
                if inspection:
                    seen.append(inspection)
                if out is not None:
                    run.log({"loss": loss})
            if out is not None:
                run.save()

    if look:
        with run.profile(4) as profile, run.features(model, ["0"]):
            loop()
    else:
        loop()
        profile = None
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    rng = torch.get_rng_state()
    run.close()
    return weights, rng, seen, profile


@pytest.mark.parametrize("precision", only(["fp32"], ["fp32", "bf16", "fp16"]))
def test_a_run_that_is_looked_into_is_the_run_that_is_not(precision, tmp_path):
    looked = train(tmp_path / "a", precision=precision)
    plain = train(tmp_path / "b", precision=precision, look=False)
    assert all(torch.equal(a, b) for a, b in zip(looked[0].values(), plain[0].values(), strict=True))
    assert torch.equal(looked[1], plain[1])
    lines = [(tmp_path / name / "metrics.jsonl").read_text(encoding="utf-8") for name in "ab"]
    assert lines[0] == lines[1]
    assert len(looked[2]) >= 4
    assert looked[3].steps == 4


@pytest.mark.program
def test_a_run_that_was_looked_into_resumes_as_one_that_was_not(tmp_path):
    train(tmp_path / "run", epochs=1)
    resumed, *_ = train(tmp_path / "run", epochs=3, resume="auto")
    train(tmp_path / "other", epochs=1, look=False)
    plain, *_ = train(tmp_path / "other", epochs=3, look=False, resume="auto")
    assert all(torch.equal(a, b) for a, b in zip(resumed.values(), plain.values(), strict=True))


def test_gradients_of_an_open_window_are_distinguished_from_those_of_a_step():
    _, _, seen, _ = train(precision="fp32")
    assert {inspection.gradients for inspection in seen} == {
        "as the backward pass left them",
        "as the optimizer used them",
    }
    stepped = next(inspection for inspection in seen if inspection.gradients == "as the optimizer used them")
    norm = sum(p.gradient.rms**2 * torch.Size(p.shape).numel() for p in stepped.parameters) ** 0.5
    assert norm <= 0.5 * 1.001


def test_gradients_in_the_scale_of_fp16_say_so():
    _, _, seen, _ = train(precision="fp16")
    left = next(inspection for inspection in seen if inspection.gradients == "as the backward pass left them")
    assert left.scales == (65536.0,)
    assert "in the scale of fp16: 65,536" in str(left).replace("\n", " ")
    used = next(inspection for inspection in seen if inspection.gradients == "as the optimizer used them")
    assert "fp16" not in str(used)


def test_all_models_of_the_run_are_inspected_under_their_names():
    run = ts.Run(device="cpu", watch=False)
    generator, critic = run.model(net(), name="generator"), run.model(net(1), name="critic")
    with run.inspect() as seen:
        critic(generator(torch.randn(2, 6)) @ torch.randn(3, 6)).sum().backward()
    assert [layer.name for layer in seen.layers if layer.depth == 0] == ["generator", "critic"]
    assert "generator.0.weight" in seen.reached
    with run.inspect(critic) as seen:
        critic(torch.randn(2, 6))
    assert [layer.name for layer in seen.layers][:2] == ["", "0"]
    run.close()


def test_a_run_without_a_model_has_nothing_to_inspect():
    run = ts.Run(device="cpu", watch=False)
    with pytest.raises(BadPart, match="the run has no model"), run.inspect():
        pass
    run.close()


def test_features_of_a_run_are_those_of_debugging():
    run = ts.Run(device="cpu", watch=False)
    model = run.model(net())
    with run.evaluate(model), run.features(model, ["2"], patch={"0": torch.zeros(4, 8)}) as kept:
        model(torch.randn(4, 6))
    assert torch.equal(kept["2"], torch.zeros(4, 8))
    with pytest.raises(UnknownModule, match="no module"), run.features(model, ["9"]):
        pass
    run.close()


@pytest.mark.program
def test_trace_is_written_into_the_folder_of_the_run(tmp_path):
    *_, profile = train(tmp_path / "run")
    assert profile.trace == tmp_path / "run" / "profile" / "trace-step-000000.json.gz"
    assert profile.trace.is_file()
    *_, without = train()
    assert without.trace is None


def test_steps_without_a_loader_are_profiled_and_the_loops_are_as_before():
    run = ts.Run(device="cpu", watch=False)
    model = run.model(net())
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    with run.profile(2, skip=1) as profile:
        for _ in run.steps(5, model):
            run.step(model(torch.randn(4, 6)).square().mean())
    assert profile.steps == 2
    assert [module.name for module in profile.modules] == ["(model)", "0", "1", "2", "3"]
    assert run._loops.around is None
    assert run.global_step == 5
    run.close()


def test_a_loop_that_is_left_while_it_is_profiled_is_left():
    run = ts.Run(device="cpu", watch=False)
    model = run.model(net())
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    with run.profile(9, skip=0):
        for step in run.steps(5, model):
            run.step(model(torch.randn(4, 6)).square().mean())
            if step == 2:
                break
        with run.evaluate(model):
            model(torch.randn(1, 6))
    assert not run._progress.position.active
    run.close()


def test_numbers_that_mean_nothing_are_refused_before_anything_is_hooked():
    run = ts.Run(device="cpu", watch=False)
    with pytest.raises(BadSettings, match="steps must be an integer of at least 1, got 0"), run.profile(0):
        pass
    assert run._loops.around is None
    run.close()


@pytest.mark.program
def test_looking_is_quiet_under_supervision(tmp_path):
    with assert_clean():
        train(tmp_path / "run", epochs=3)


@pytest.mark.program
def test_copies_of_what_was_seen_hold_no_tensor():
    _, _, seen, _ = train()
    copy.deepcopy(seen)
    json.dumps([inspection.unreached for inspection in seen])
    assert not any(isinstance(value, torch.Tensor) for inspection in seen for value in vars(inspection).values())
