"""Precision against hand-written loops of torch: the same weights, to the last bit."""

import gc
import weakref

import pytest
import torch

from truestep.errors import ClosureWithScaler, UnknownPrecision
from truestep.loop import precision as module
from truestep.loop.precision import Precision

STEPS = 12
HUGE = 1e30
"""A factor that makes the gradients of a loss infinite in fp16."""


def parts(seed=0, kind=torch.optim.SGD, **options):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    return model, kind(model.parameters(), lr=0.05, **options)


def batches(steps=STEPS):
    generator = torch.Generator().manual_seed(1)
    for step in range(steps):
        x, y = torch.randn(8, 6, generator=generator), torch.randint(3, (8,), generator=generator)
        yield step, x, y


def loss_of(model, x, y, step, bad=()):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    return loss * HUGE if step in bad else loss


def weights(*models):
    return torch.cat([parameter.detach().flatten() for model in models for parameter in model.parameters()])


def by_hand(dtype=None, scaler=None, bad=(), clip=None, **options):
    model, optimizer = parts(**options)
    for step, x, y in batches():
        with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
            loss = loss_of(model, x, y, step, bad)
        if scaler is None:
            loss.backward()
        else:
            scaler.scale(loss).backward()
            if clip:
                scaler.unscale_(optimizer)
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
        optimizer.zero_grad()
    return weights(model)


def with_precision(precision, bad=(), clip=None, unscale=1, **options):
    model, optimizer = parts(**options)
    applied = []
    for step, x, y in batches():
        with precision.autocast():
            loss = loss_of(model, x, y, step, bad)
        precision.scale(loss).backward()
        if clip:
            for _ in range(unscale):
                precision.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        applied.append(precision.step(optimizer))
        precision.update()
        optimizer.zero_grad()
    return weights(model), applied


@pytest.mark.parametrize("clip", [None, 0.1])
@pytest.mark.parametrize(
    ("name", "dtype"), [("fp32", None), ("bf16", torch.bfloat16), ("fp16", torch.float16)], ids=["fp32", "bf16", "fp16"]
)
def test_training_is_the_one_written_by_hand(name, dtype, clip):
    scaler = torch.amp.GradScaler("cpu") if name == "fp16" else None
    ours, applied = with_precision(Precision(name), clip=clip)
    assert torch.equal(ours, by_hand(dtype, scaler, clip=clip))
    assert applied == [True] * STEPS


def test_the_formats_differ():
    results = [with_precision(Precision(name))[0] for name in ("fp32", "bf16", "fp16")]
    assert not torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])
    assert not torch.equal(results[1], results[2])


@pytest.mark.parametrize("clip", [None, 0.1])
@pytest.mark.parametrize(
    "options",
    [{}, {"kind": torch.optim.AdamW}, {"kind": torch.optim.AdamW, "fused": True}],
    ids=["sgd", "adamw", "fused"],
)
def test_infinite_gradients_skip_the_step_and_halve_the_scale(options, clip):
    precision, scaler = Precision("fp16"), torch.amp.GradScaler("cpu")
    ours, applied = with_precision(precision, bad=(3, 7), clip=clip, **options)
    assert torch.equal(ours, by_hand(torch.float16, scaler, bad=(3, 7), clip=clip, **options))
    assert torch.isfinite(ours).all()
    assert [step for step, done in enumerate(applied) if not done] == [3, 7]
    assert precision.skipped_steps == 2
    assert precision.scaler.get_scale() == scaler.get_scale() == 2.0**16 / 4


def test_unscaling_twice_is_unscaling_once():
    once, _ = with_precision(Precision("fp16"), clip=0.1)
    thrice, _ = with_precision(Precision("fp16"), clip=0.1, unscale=3)
    assert torch.equal(once, thrice)


def test_unscaling_after_the_user_did_is_left_out():
    precision = Precision("fp16")
    model, optimizer = parts()
    precision.scale(model(torch.ones(2, 6)).sum()).backward()
    precision.scaler.unscale_(optimizer)
    before = model[0].weight.grad.clone()
    precision.unscale_(optimizer)
    assert torch.equal(model[0].weight.grad, before)


def two_by_hand(bad):
    (first, one), (second, two) = parts(0), parts(1)
    scaler = torch.amp.GradScaler("cpu")
    for step, x, y in batches():
        for model, optimizer in ((first, one), (second, two)):
            with torch.autocast("cpu", dtype=torch.float16):
                loss = loss_of(model, x, y, step, bad if model is second else ())
            scaler.scale(loss).backward()
        for optimizer in (one, two):
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
        scaler.update()
        one.zero_grad()
        two.zero_grad()
    return weights(first, second), scaler.get_scale()


def test_one_scaler_serves_two_optimizers_and_is_updated_once():
    precision = Precision("fp16")
    (first, one), (second, two) = parts(0), parts(1)
    for step, x, y in batches():
        for model in (first, second):
            with precision.autocast():
                loss = loss_of(model, x, y, step, (4,) if model is second else ())
            precision.scale(loss).backward()
        for optimizer in (one, two):
            precision.unscale_(optimizer)
            done = precision.step(optimizer)
            assert done is not (optimizer is two and step == 4)
        precision.update()
        precision.update()
        one.zero_grad()
        two.zero_grad()
    assert (weights(first, second).tolist(), precision.scaler.get_scale()) == (
        two_by_hand((4,))[0].tolist(),
        two_by_hand((4,))[1],
    )
    assert precision.skipped_steps == 1
    assert (precision.applied_steps(one), precision.applied_steps(two)) == (STEPS, STEPS - 1)


def test_updating_when_nothing_was_unscaled_does_nothing():
    precision = Precision("fp16")
    precision.update()
    precision.scale(torch.ones(()))
    precision.update()
    assert precision.scaler.get_scale() == 2.0**16


def test_steps_called_by_hand_count_as_applied():
    precision = Precision("fp32")
    _model, optimizer = parts()
    assert precision.applied_steps(optimizer) == 0
    optimizer.step()
    precision.step(optimizer)
    optimizer.step()
    assert precision.applied_steps(optimizer) == 3


@pytest.mark.parametrize("fused", [False, True])
def test_steps_of_the_scaler_called_by_hand_count_where_they_were_applied(fused):
    precision = Precision("fp16")
    model, optimizer = parts(kind=torch.optim.AdamW, fused=fused)
    precision.applied_steps(optimizer)
    for factor in (1.0, float("inf"), 1.0):
        precision.scale(model(torch.ones(2, 6)).sum() * factor).backward()
        precision.scaler.step(optimizer)
        precision.scaler.update()
        optimizer.zero_grad()
    assert precision.applied_steps(optimizer) == 2


def test_following_an_optimizer_does_not_keep_it_alive():
    precision = Precision("fp32")
    _model, optimizer = parts()
    precision.applied_steps(optimizer)
    gone = weakref.ref(optimizer)
    del optimizer
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("name", ["fp32", "bf16"])
def test_a_closure_steps_as_by_hand(name):
    def trained(step):
        model, optimizer = parts(kind=torch.optim.LBFGS)
        x = torch.randn(8, 6, generator=torch.Generator().manual_seed(2))

        def closure():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss

        return step(optimizer, closure), weights(model)

    applied, ours = trained(Precision(name).step)
    _, theirs = trained(lambda optimizer, closure: optimizer.step(closure))
    assert applied
    assert torch.equal(ours, theirs)


def test_a_closure_in_fp16_is_refused_before_anything_changes():
    precision = Precision("fp16")
    model, optimizer = parts(kind=torch.optim.LBFGS)
    before = weights(model)
    with pytest.raises(ClosureWithScaler) as raised:
        precision.step(optimizer, lambda: torch.zeros(()))
    assert "LBFGS was given a closure in fp16" in str(raised.value)
    assert 'precision="fp32"' in str(raised.value)
    assert torch.equal(weights(model), before)


def test_a_resumed_scale_goes_on_exactly(tmp_path):
    first = Precision("fp16")
    first.scaler.set_growth_interval(5)
    with_precision(first, bad=(3,))
    torch.save(first.state_dict(), tmp_path / "precision.pt")
    second = Precision("fp16")
    second.load_state_dict(torch.load(tmp_path / "precision.pt", weights_only=True))
    assert second.state_dict() == first.state_dict()
    assert second.skipped_steps == 1
    assert torch.equal(with_precision(second, bad=(2,))[0], with_precision(first, bad=(2,))[0])
    assert second.state_dict() == first.state_dict()
    assert second.scaler.get_scale() != 2.0**16


@pytest.mark.parametrize(("saved", "loading"), [("fp32", "fp16"), ("fp16", "bf16"), ("bf16", "fp32")])
def test_a_run_that_changes_its_precision_starts_a_fresh_scale(saved, loading):
    precision = Precision(loading)
    precision.load_state_dict(Precision(saved).state_dict())
    assert (precision.scaler is None) is (loading != "fp16")
    if precision.scaler is not None:
        assert precision.scaler.get_scale() == 2.0**16


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("fp32", "fp32"),
        ("32", "fp32"),
        ("32-true", "fp32"),
        ("bf16", "bf16"),
        ("bf16-mixed", "bf16"),
        ("fp16", "fp16"),
        ("16-mixed", "fp16"),
        ("fp16-mixed", "fp16"),
    ],
)
def test_names_of_other_projects_are_understood(name, chosen):
    precision = Precision(name)
    assert (precision.name, precision.reason) == (chosen, "")
    assert (precision.scaler is not None) is (chosen == "fp16")
    assert (precision.new_scaler() is not None) is (chosen == "fp16")


@pytest.mark.parametrize(
    ("device", "native", "chosen"),
    [("cpu", True, "fp32"), ("mps", True, "fp32"), ("cuda", True, "bf16"), ("cuda", False, "fp16")],
)
def test_auto_chooses_by_device_and_says_why(monkeypatch, device, native, chosen):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: native or including_emulation)
    name, reason = module._chosen("auto", torch.device(device))
    assert name == chosen
    assert reason


@pytest.mark.parametrize("name", ["fp8", "", "FP16", "64"])
def test_an_unknown_precision_is_named_with_one_that_works_here(name):
    with pytest.raises(UnknownPrecision) as raised:
        Precision(name)
    assert str(raised.value).splitlines() == [
        f'"{name}" is not a precision',
        '  expected one of "auto", "fp32", "bf16", "fp16"',
        '  use "fp32" on this CPU',
    ]


def test_the_remedy_is_true_for_the_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: True)
    with pytest.raises(UnknownPrecision, match='use "bf16" on this GPU'):
        Precision("fp8", "cuda")


def test_fp32_computes_in_fp32_and_enters_nothing():
    precision = Precision("fp32")
    assert precision.autocast() is precision.autocast()
    with precision.autocast():
        with precision.autocast():
            assert not torch.is_autocast_enabled("cpu")
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
    loss = torch.ones((), requires_grad=True)
    assert precision.scale(loss) is loss


def test_autocast_nests_and_ends_also_when_the_body_raises():
    precision = Precision("bf16")
    with pytest.raises(ZeroDivisionError):
        with precision.autocast():
            with precision.autocast():
                assert torch.get_autocast_dtype("cpu") == torch.bfloat16
            assert torch.is_autocast_enabled("cpu")
            raise ZeroDivisionError
    assert not torch.is_autocast_enabled("cpu")


def switches():
    return [
        torch.get_float32_matmul_precision(),
        torch.backends.cuda.matmul.fp32_precision,
        torch.backends.mkldnn.matmul.fp32_precision,
        torch.backends.cuda.matmul.allow_tf32,
    ]


@pytest.fixture
def legacy():
    """Put the switches back, whatever the test did."""
    places = [torch.backends.cuda.matmul, torch.backends.mkldnn.matmul]
    before = [place.fp32_precision for place in places]
    yield
    torch.set_float32_matmul_precision("highest")
    for place, value in zip(places, before, strict=True):
        place.fp32_precision = value


def test_tf32_is_on_until_closed_and_all_switches_are_put_back(monkeypatch, legacy):
    monkeypatch.setattr(module, "_has_tf32", lambda device: True)
    before = switches()
    with Precision("fp32") as precision:
        assert torch.backends.cuda.matmul.allow_tf32
        assert torch.get_float32_matmul_precision() == "high"
    assert switches() == before
    precision.close()
    assert switches() == before


def test_tf32_is_left_off_where_it_is_refused_or_not_there_or_not_fp32(monkeypatch, legacy):
    Precision("fp32")
    assert not torch.backends.cuda.matmul.allow_tf32
    monkeypatch.setattr(module, "_has_tf32", lambda device: True)
    Precision("fp32", tf32=False)
    Precision("bf16")
    assert not torch.backends.cuda.matmul.allow_tf32


def test_a_precision_of_products_that_the_user_chose_is_kept(monkeypatch, legacy):
    monkeypatch.setattr(module, "_has_tf32", lambda device: True)
    torch.set_float32_matmul_precision("medium")
    with Precision("fp32"):
        assert torch.get_float32_matmul_precision() == "medium"
    assert torch.get_float32_matmul_precision() == "medium"


@pytest.mark.parametrize(("chosen", "during"), [("ieee", "tf32"), ("tf32", "tf32")])
def test_the_newer_switch_is_used_where_the_program_uses_it(monkeypatch, legacy, chosen, during):
    monkeypatch.setattr(module, "_has_tf32", lambda device: True)
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    with pytest.raises(RuntimeError, match="mix of the legacy and new APIs"):
        torch.get_float32_matmul_precision()
    torch.backends.cuda.matmul.fp32_precision = chosen
    with Precision("fp32"):
        assert torch.backends.cuda.matmul.fp32_precision == during
    assert torch.backends.cuda.matmul.fp32_precision == chosen


@pytest.mark.parametrize(("capability", "there"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_tf32_is_there_since_ampere(monkeypatch, capability, there):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert module._has_tf32(torch.device("cuda")) is there
    assert not module._has_tf32(torch.device("cpu"))


def test_closing_takes_the_hooks_off():
    _model, optimizer = parts()
    with Precision("fp32") as precision:
        precision.step(optimizer)
        precision.applied_steps(optimizer)
        assert optimizer._optimizer_step_post_hooks
    assert not optimizer._optimizer_step_post_hooks


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("fused", [False, True])
def test_on_a_gpu_skipped_steps_are_known(fused):
    torch.manual_seed(0)
    model = torch.nn.Linear(6, 3).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=fused)
    precision = Precision("fp16", "cuda")
    applied = []
    for factor in (1.0, HUGE, 1.0):
        with precision.autocast():
            loss = model(torch.ones(2, 6, device="cuda")).float().sum() * factor
        precision.scale(loss).backward()
        applied.append(precision.step(optimizer))
        precision.update()
        optimizer.zero_grad()
    assert applied == [True, False, True]
