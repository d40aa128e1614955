"""Speed-ups made from outside: each applies where it should, leaves results as it says, and is undone."""

import warnings
from contextlib import ExitStack, contextmanager
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

from truestep.experiments.changes.speedups import SPEEDUPS
from truestep.experiments.instruments.timing.clock import PHASES
from truestep.experiments.running.inside.one_time import Aside


@contextmanager
def tuned(*names, **arguments):
    with ExitStack() as stack:
        made = [speedup(**arguments) for name, speedup in SPEEDUPS.items() if name in names]
        for change in made:
            change.install(stack)
        yield made[0] if len(made) == 1 else {change.name: change for change in made}


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def losses(steps=5, kind=torch.optim.AdamW, net=None, zero=True, **options):
    net = model() if net is None else net
    optimizer = kind(net.parameters(), lr=0.01, **options)
    x, y = torch.linspace(-1, 1, 24).view(6, 4), torch.tensor([0, 1, 0, 1, 1, 0])
    seen = []
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=zero)
        loss = functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    return seen


def test_every_speed_up_says_what_it_does_and_what_to_write():
    for name, speedup in SPEEDUPS.items():
        assert speedup.summary
        assert not speedup.summary.endswith(".")
        assert speedup.lines or name == "nothing"
        assert set(speedup.excludes) | set(speedup.follows) <= set(SPEEDUPS)
        assert not [other for other in speedup.excludes if name in SPEEDUPS[other].excludes], "declared on one of both"
        assert set(speedup.phases) <= set(PHASES)
        assert not (speedup.accelerator and speedup.cpu)


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad])
@pytest.mark.parametrize("name", ["fused-optimizer", "foreach-optimizer"])
def test_optimizers_take_the_implementation_and_learn_the_same(name, kind):
    plain = losses(kind=kind)
    with tuned(name) as change:
        assert losses(kind=kind) == pytest.approx(plain, rel=1e-5)
        assert change.applied == 1


def test_optimizers_get_their_parameters_in_every_form():
    net = model()
    forms = [
        net.parameters(),
        list(net.parameters()),
        net.named_parameters(),
        [{"params": net[0].parameters()}, {"params": net[2].weight, "lr": 0.1}],
    ]
    with tuned("fused-optimizer") as change:
        for form in forms:
            optimizer = torch.optim.Adam(form, lr=0.01)
            assert all(group["fused"] for group in optimizer.param_groups)
            assert sum(len(group["params"]) for group in optimizer.param_groups) >= 3
        assert torch.optim.SGD(params=net.parameters(), lr=0.1).param_groups[0]["fused"]
    assert change.applied == 5


def test_what_a_script_chooses_itself_stays():
    net = model()
    with tuned("fused-optimizer") as change:
        for options in ({"foreach": True}, {"fused": False}, {"fused": True}, {"differentiable": True}):
            optimizer = torch.optim.Adam(net.parameters(), **options)
            assert bool(optimizer.param_groups[0]["fused"]) is bool(options.get("fused"))
        with pytest.raises(TypeError, match="nonsense"):
            torch.optim.Adam(net.parameters(), nonsense=1)
        torch.optim.RMSprop(net.parameters())
    assert change.applied == 0


def test_an_optimizer_of_the_script_is_still_asked_for_its_arguments():
    import inspect

    class Mine(torch.optim.Adam):
        def __init__(self, params, lr):
            super().__init__(params, lr=lr)

    with tuned("fused-optimizer") as change:
        assert "fused" in inspect.signature(torch.optim.AdamW).parameters
        assert Mine(model().parameters(), 0.1).param_groups[0]["fused"]
    assert change.applied == 1


def test_autocast_reaches_the_loss_and_ends_before_the_backward_pass():
    net = model()
    x = torch.randn(3, 4)
    with tuned("bf16-autocast") as change:
        out = net(x)
        assert out.dtype is torch.bfloat16
        assert torch.is_autocast_enabled("cpu")
        out.float().sum().backward()
        assert not torch.is_autocast_enabled("cpu")
        with torch.no_grad():
            assert net(x).dtype is torch.bfloat16
        assert not torch.is_autocast_enabled("cpu")
        net(x)
    assert not torch.is_autocast_enabled("cpu")
    assert change.applied == 3
    assert net(x).dtype is torch.float32


def test_losses_under_autocast_are_near_the_others():
    plain = losses()
    with tuned("bf16-autocast"):
        cast = losses()
    assert cast != plain
    assert cast == pytest.approx(plain, rel=0.03)


def test_a_script_under_autocast_keeps_its_own():
    with tuned("bf16-autocast") as change, torch.autocast("cpu", dtype=torch.bfloat16):
        model()(torch.randn(3, 4))
    assert change.applied == 0


@pytest.mark.parametrize("name", ["nothing", "set-to-none", "inference-mode"])
def test_exact_speed_ups_leave_losses_equal(name):
    plain = losses(zero=False)
    with tuned(name) as change:
        assert losses(zero=False) == plain
        assert change.applied == {"nothing": 1, "set-to-none": 5, "inference-mode": 0}[name]


def test_gradients_of_modules_are_dropped_too_and_the_default_counts_as_nothing():
    net = model()
    net(torch.randn(3, 4)).sum().backward()
    with tuned("set-to-none") as change:
        net.zero_grad()
        assert change.applied == 0
        net.zero_grad(set_to_none=False)
        assert change.applied == 1
    assert net[0].weight.grad is None


def test_evaluations_are_under_inference_mode_and_target_networks_in_train_mode_are_not():
    net = model()
    x = torch.randn(3, 4)
    with tuned("inference-mode") as change, torch.no_grad():
        assert not net(x).is_inference()
        net.eval()
        assert net(x).is_inference()
        assert not torch.is_inference_mode_enabled()
    assert change.applied == 1


def images():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2))


def test_images_and_convolutions_are_laid_out_channels_last():
    x = torch.randn(2, 3, 8, 8)
    plain = images()(x)
    net, seen = images(), []
    net[0].register_forward_hook(lambda module, args, out: seen.append(args[0].stride()))
    with tuned("channels-last") as change:
        assert net(x).allclose(plain, atol=1e-5)
        assert net[0].weight.is_contiguous(memory_format=torch.channels_last)
        model()(torch.randn(3, 4))
    assert change.applied == 1
    net(x)
    assert seen == [(192, 1, 24, 3), (192, 64, 8, 1)]


class Squares(Dataset):
    """Samples decoded one by one, as a beginner writes it."""

    def __init__(self, count=20, noise=0.0, kind="tuple"):
        self.count, self.noise, self.kind, self.read = count, noise, kind, 0

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        self.read += 1
        x = torch.full((3,), float(index)) + (torch.randn(3) * self.noise if self.noise else 0)
        if self.kind == "dict":
            return {"x": x, "y": index**2}
        if self.kind == "text":
            return x, str(index)
        if self.kind == "ragged":
            return torch.zeros(1 + index // 19)
        return (x, index**2) if self.kind == "tuple" else np.float32(index)


def batches(dataset, seed=0, epochs=2, **options):
    torch.manual_seed(seed)
    loader = DataLoader(dataset, batch_size=6, shuffle=True, **options)
    return [batch for _ in range(epochs) for batch in loader]


def same(first, second):
    assert type(first) is type(second)
    if isinstance(first, torch.Tensor):
        assert first.dtype == second.dtype
        return first.equal(second)
    if isinstance(first, str):
        return first == second
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[name], second[name]) for name in first)
    return len(first) == len(second) and all(map(same, first, second))


@pytest.mark.parametrize("kind", ["tuple", "dict", "number"])
def test_samples_are_read_once_and_batches_stay_what_they_were(kind):
    plain = batches(Squares(kind=kind))
    with tuned("samples-once") as change:
        data = Squares(kind=kind)
        assert same(batches(data), plain)
        read = data.read
        batches(data)
        assert data.read == read == 20 + 2 * 20
    assert change.applied == 2


@pytest.mark.parametrize(
    "data",
    [Squares(noise=0.1), Squares(kind="text"), Squares(kind="ragged"), [torch.zeros(2)] * 5, Squares(count=0)],
    ids=["random", "text", "ragged", "list", "empty"],
)
def test_samples_that_cannot_be_kept_are_read_as_before(data):
    def given():
        torch.manual_seed(0)
        return list(DataLoader(data, batch_size=1))

    plain = given()
    with tuned("samples-once") as change:
        assert same(given(), plain)
    assert change.applied == 0


def test_a_data_set_that_fails_is_left_to_fail_where_it_did():
    class Broken(Squares):
        def __getitem__(self, index):
            if index > 10:
                raise OSError("no file")
            return super().__getitem__(index)

    with tuned("samples-once") as change:
        loader = DataLoader(Broken(), batch_size=6)
        with pytest.raises(OSError, match="no file"):
            list(loader)
    assert change.applied == 0


@pytest.mark.parametrize("part", [False, True])
def test_whole_batches_are_the_same_batches(part):
    data = TensorDataset(torch.arange(20.0).view(20, 1), torch.arange(20))
    data = Subset(data, [3, 5, 1, 7, 9, 11, 13]) if part else data
    plain = batches(data)
    with tuned("whole-batches") as change:
        assert same(batches(data), plain)
        assert same(batches(data, num_workers=2, prefetch_factor=3, persistent_workers=True), plain)
        batches(Squares())
        list(DataLoader(data, collate_fn=list))
    assert change.applied == 2


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(4))


def test_workers_read_the_same_batches_and_streams_get_none():
    plain = batches(Squares(noise=0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with tuned("loader-workers") as change:
            loader = DataLoader(Squares(), batch_size=6)
            assert loader.num_workers > 0
            assert same(batches(Squares()), plain)
            assert DataLoader(Stream()).num_workers == 0
            assert DataLoader(Squares(), num_workers=1).num_workers == 1
        assert change.applied == 2


def test_workers_that_stay_read_further_ahead_and_can_be_compared():
    plain = batches(Squares(), num_workers=1)
    with ExitStack() as stack:
        persistent = SPEEDUPS["persistent-workers"](draws=True)
        prefetch = SPEEDUPS["prefetch"]()
        persistent.install(stack)
        prefetch.install(stack)
        loader = DataLoader(Squares(), num_workers=1)
        assert (loader.persistent_workers, loader.prefetch_factor) == (True, 4)
        assert DataLoader(Squares()).prefetch_factor is None
        assert same(batches(Squares(), num_workers=1), plain)
    assert (persistent.applied, prefetch.applied) == (2, 2)


def test_what_is_given_to_workers_reaches_those_that_another_speed_up_gives():
    with tuned("loader-workers", "persistent-workers", "prefetch") as changes:
        loader = DataLoader(Squares(), batch_size=2)
        assert (loader.persistent_workers, loader.prefetch_factor) == (True, 4)
    assert {change.applied for change in changes.values()} == {1}


def test_larger_batches_are_twice_as_large_and_pinned_ones_are_pinned():
    with tuned("larger-batch", "pin-memory") as changes:
        loader = DataLoader(Squares(), batch_size=3)
        assert (loader.batch_size, loader.pin_memory) == (6, True)
        assert DataLoader(Squares(), batch_sampler=[[0, 1]]).batch_size is None
        assert DataLoader(Squares(), batch_size=None).batch_size is None
    assert {name: change.applied for name, change in changes.items()} == {"larger-batch": 1, "pin-memory": 3}


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_threads_are_those_of_the_speed_up_whatever_the_script_says(two_threads):
    with tuned("one-thread") as change:
        assert torch.get_num_threads() == 1
        torch.set_num_threads(2)
        assert torch.get_num_threads() == 1
        assert change.applied == 1
        torch.set_num_threads(1)
        assert change.applied == 0
    assert torch.get_num_threads() == 2


def test_switches_are_set_back():
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark
    with tuned("tf32", "cudnn-benchmark") as changes:
        assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark) == ("high", True)
        assert [change.applied for change in changes.values()] == [1, 1]
        torch.set_float32_matmul_precision("medium")
        assert changes["tf32"].applied == 0
        assert torch.get_float32_matmul_precision() == "medium"
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark) == before


def test_tensors_that_go_nowhere_are_not_touched():
    x = torch.zeros(2)
    with tuned("non-blocking") as change:
        assert x.to("cpu") is x
        assert x.to(torch.float64).dtype is torch.float64
        assert x.to(torch.ones(1, dtype=torch.int32)).dtype is torch.int32
    assert change.applied == 0


def blocks():
    torch.manual_seed(0)
    layers = [nn.TransformerEncoderLayer(8, 2, 16, batch_first=True) for _ in range(3)]
    return nn.Sequential(nn.Linear(4, 8), nn.Sequential(*layers), nn.Linear(8, 2))


def test_repeated_blocks_are_recomputed_with_the_same_losses():
    def losses_of(net):
        out = net(torch.linspace(-1, 1, 24).view(2, 3, 4))
        out.square().mean().backward()
        return [parameter.grad.clone() for parameter in net.parameters()]

    torch.manual_seed(1)
    plain = losses_of(blocks())
    net = blocks()
    torch.manual_seed(1)
    net, seen = blocks(), []
    net[1][0].linear1.register_forward_hook(lambda *_: seen.append(1))
    with tuned("activation-checkpointing") as change:
        assert all(map(torch.allclose, losses_of(net), plain))
    assert (change.applied, len(seen)) == (3, 2)
    assert not any("forward" in vars(part) for part in net.modules())


def test_time_aside_counts_nested_work_once(monkeypatch):
    from truestep.experiments.running.inside import one_time

    clock = iter(range(100))
    monkeypatch.setattr(one_time.time, "perf_counter", lambda: float(next(clock)))
    aside = Aside()
    with aside(), aside():
        pass
    with pytest.raises(KeyError), aside():
        raise KeyError
    assert aside.seconds == 2


@pytest.mark.parametrize("names", [("bf16-autocast", "channels-last"), ("channels-last", "inference-mode")])
def test_speed_ups_at_the_same_seam_work_together(names):
    x = torch.randn(2, 3, 8, 8)
    with tuned(*names) as changes:
        net = images()
        net(x).float().sum().backward()
        net.eval()
        with torch.no_grad():
            net(x)
    assert all(change.applied for change in changes.values())


@pytest.mark.parametrize("own", [False, True])
def test_models_are_compiled_also_those_of_torch_itself_and_get_their_forward_back(monkeypatch, own):
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    net = model()
    if own:
        net.compile(backend="eager")
    plain = losses(net=model())
    with tuned("compile") as change:
        assert losses(net=net) == plain
        assert ("forward" in vars(net)) is not own
        assert change.applied == 0 if own else change.applied >= 1
        with torch.no_grad():
            model()(torch.randn(2, 4))
    assert "forward" not in vars(net)
    torch._dynamo.reset()
