"""Claims about accumulation, precision, data, checkpoints, compiling and several processes."""
# ruff: noqa: E501
import copy
import tempfile
import time
import warnings

import numpy as np
import torch
import torch.distributed as dist
from claims_kit import X, Y, alive, error, fit, grads, mlp, seconds
from torch import nn
from torch._dynamo.testing import CompileCounter
from torch.nn.functional import cross_entropy
from torch.optim import SGD, Adam, AdamW, lr_scheduler
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset


def accumulation():
    out = []
    for extra, sizes in (((), (64,) * 4), ((), (64, 64, 64, 16)), ((nn.BatchNorm1d(128),), (64,) * 4)):
        one, parts = (copy.deepcopy(m) for m in [mlp(*extra)] * 2)
        cross_entropy(one(X[:sum(sizes)]), Y[:sum(sizes)]).backward()
        for x, y in zip(X[:sum(sizes)].split(sizes), Y[:sum(sizes)].split(sizes), strict=True):
            (cross_entropy(parts(x), y) / len(sizes)).backward()
        distance = (grads(one) - grads(parts)).norm() / grads(one).norm()
        out.append(f"{'BatchNorm ' if extra else ''}{sizes} {distance:.0e}")
    return "relative distance to the gradient of one large batch: " + ", ".join(out)


def accumulation_and_running_statistics():
    norms = {n: nn.BatchNorm1d(64) for n in (64, 16)}
    for size, norm in norms.items():
        for _ in range(20):
            for x in X[:1472][torch.randperm(1472)].split(size):
                norm(x)
    return ", ".join(f"batches of {size}: running_mean off by {(n.running_mean - X[:1472].mean(0)).abs().mean():.3f}, running_var by "
                     f"{(n.running_var - X[:1472].var(0)).abs().mean():.3f}" for size, n in norms.items())


def loss_scale():
    out = []
    for make in (lambda p: SGD(p, lr=0.1), lambda p: Adam(p, lr=0.1)):
        moved = []
        for reduction in ("mean", "sum"):
            torch.manual_seed(0)
            before = (model := mlp())[0].weight.detach().clone()
            optimizer = make(model.parameters())
            cross_entropy(model(X[:64]), Y[:64], reduction=reduction).backward()
            optimizer.step()
            moved.append((model[0].weight - before).norm())
        out.append(f"{type(optimizer).__name__} {moved[1] / moved[0]:.2f}x")
    return "first update with the loss 64 times larger: " + ", ".join(out)


def unscale_before_accumulating():
    model, scaler = nn.Linear(1, 1), torch.amp.GradScaler("cpu", init_scale=1024)
    optimizer = SGD(model.parameters(), lr=0.1)
    for unscale in (True, False):
        scaler.scale(model(torch.ones(1, 1)).sum()).backward()
        if unscale:
            scaler.unscale_(optimizer)
    return f"gradient {model.weight.grad.item():.0f} for 2; a second unscale_: {error(lambda: scaler.unscale_(optimizer))}"


def half_precision():
    half, weight = torch.finfo(torch.float16), torch.ones(1, dtype=torch.bfloat16)
    with torch.autocast("cpu"):
        logits = torch.randn(4, 4) @ torch.randn(4, 4)
        types = f"matmul {logits.dtype}, softmax {logits.softmax(1).dtype}, cross_entropy {cross_entropy(logits, Y[:4] % 4).dtype}"
    return (f"fp16 normal from {half.tiny:.1e}, subnormal from {half.smallest_normal * half.eps:.1e}, 1e-8 -> {torch.tensor(1e-8).half():.0e}, "
            f"bf16 1e-30 -> {torch.tensor(1e-30).bfloat16():.0e}, bf16 1 + 0.001 = {(weight + 0.001).item()}; CPU autocast: {types}")


def old_names():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.cuda.amp.GradScaler()
        layer = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        layer.register_backward_hook(lambda *_: None)
        layer(torch.ones(1, 2)).sum().backward()
    return "; ".join(f"{w.category.__name__}: {str(w.message)[:60]}" for w in seen)


def checkpointing_saves():
    out = []
    for name, make in {"Linear+ReLU": lambda: nn.Sequential(nn.Linear(256, 256), nn.ReLU()), "transformer layer":
                       lambda: nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)}.items():
        layers, x = nn.ModuleList(make() for _ in range(6)), torch.randn(16, 64, 256)
        def run(recompute, layers=layers, x=x):
            h = x
            for layer in layers:
                h = checkpoint(layer, h, use_reentrant=False) if recompute else layer(h)
            return h
        out.append(f"{name}: {alive(layers, lambda: run(False)) / 2**20:.0f} -> {alive(layers, lambda: run(True)) / 2**20:.0f} MiB")
        results = []
        for recompute in (False, True):
            torch.manual_seed(0)
            layers.zero_grad()
            run(recompute).square().mean().backward()
            results.append(grads(layers))
        out.append(f"gradients with dropout equal {torch.equal(*results)}")
    return ", ".join(out)


def compiling():
    counter, out = CompileCounter(), []
    model = torch.compile(mlp(nn.Dropout(0.1)), backend=counter)
    for sizes in ((64, 64, 30), (64, 64, 30), (10, 20, 40, 50)):
        for size in sizes:
            model(X[:size])
        out.append(counter.frame_count)
    model.eval()
    model(X[:64])
    branch = torch.compile(lambda x: x + 1 if x.sum() > 0 else x - 1, fullgraph=True, backend="eager")
    return f"compilations after epochs 1, 2 and four new sizes {out}, after eval() {counter.frame_count}; {error(lambda: branch(X))}"


def slow_generated_code():
    model = mlp().eval()
    start, fast = time.perf_counter(), torch.compile(model)
    with torch.no_grad():
        distance, first = (fast(X[:64]) - model(X[:64])).abs().max(), time.perf_counter() - start
        a, b = (seconds(lambda m=m: m(X[:64]), 300) * 1e6 for m in (model, fast))
    return f"first call {first:.0f} s, then {a:.0f} -> {b:.0f} us, outputs differ by {distance:.0e}"


def export_fixed_shape():
    exported = torch.export.export(mlp(), (X[:1],)).module()
    return f"exported with batch 1, called with 3: {error(lambda: exported(X[:3]))}"


def fused_on_cpu():
    model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(20)])
    model(torch.randn(8, 256)).sum().backward()
    return "Adam, 1.3 million weights: " + ", ".join(f"{name} {seconds(Adam(model.parameters(), **{name: True}).step) * 1e6:.0f} us"
                                                     for name in ("fused", "foreach")) + f", default {seconds(Adam(model.parameters()).step) * 1e6:.0f} us"


def weight_decay():
    out = []
    for make in (Adam, AdamW):
        torch.manual_seed(0)
        fit(model := mlp(), make(model.parameters(), lr=1e-3, weight_decay=0.1), 10)
        out.append(f"{make.__name__} weight norm {model[0].weight.norm():.2f}")
    return ", ".join(out)


def schedules_that_raise():
    optimizer = SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    cycle = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=3)
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return f"plateau without a metric: {error(plateau.step)}; OneCycle past its end: " + [error(cycle.step) for _ in range(4)][-1]


def workers_start():
    out = []
    for workers in (2, 4):
        loader = DataLoader(TensorDataset(X), batch_size=512, num_workers=workers)
        out.append(f"{workers} workers {seconds(lambda loader=loader: list(loader), 5) * 1e3:.0f} ms")
    return "an epoch of 4 batches: " + ", ".join(out) + f", none {seconds(lambda: list(DataLoader(TensorDataset(X), batch_size=512))) * 1e3:.0f} ms"


class _Memory(Dataset):
    def __init__(self, data):
        self.data, self.start = data, None

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        with open("/proc/self/smaps_rollup") as file:
            private = next(int(line.split()[1]) for line in file if line.startswith("Private_Dirty")) if index % 5000 == 4999 else 0
        return len(self.data[index]) * 0 + private


def workers_copy():
    out = []
    for name, data in {"tensor": torch.zeros(40000, 64), "list": [[float(i)] * 8 for i in range(40000)]}.items():
        seen = [int(v) for batch in DataLoader(_Memory(data), batch_size=500, num_workers=1) for v in batch if v]
        out.append(f"{name} {seen[0] / 1024:.0f} -> {seen[-1] / 1024:.0f} MiB")
    return "private memory of a worker over one epoch: " + ", ".join(out)


def resumed_run():
    def run(epochs, state=None, add=0):
        torch.manual_seed(0)
        optimizer = Adam((model := mlp()).parameters())
        first = 0
        if state:
            model.load_state_dict(state[0]), optimizer.load_state_dict(state[1]), torch.set_rng_state(state[2])
            first = state[3] + add
        fit(model, optimizer, epochs - first)
        return copy.deepcopy([model.state_dict(), optimizer.state_dict(), torch.get_rng_state(), epochs - 1])
    whole, half = run(4), run(2)
    return "largest difference in the weights: " + ", ".join(
        f"{name} {(run(4, copy.deepcopy(half), add)[0]['0.weight'] - whole[0]['0.weight']).abs().max():.0e}" for name, add in (("epoch", 0), ("epoch + 1", 1)))


def _rank(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(rank)
    model = nn.parallel.DistributedDataParallel(nn.Linear(64, 10))
    cross_entropy(model(X[rank * 32:rank * 32 + 32]), Y[rank * 32:rank * 32 + 32]).backward()
    twin = nn.Linear(64, 10)
    twin.load_state_dict(model.module.state_dict())
    cross_entropy(twin(X[:64]), Y[:64]).backward()
    if rank == 0:
        torch.save([(grads(model) - grads(twin)).abs().max().item(), next(iter(model.state_dict()))], f"{folder}/out.pt")
    dist.destroy_process_group()


def two_ranks():
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_rank, args=(folder,), nprocs=2)
        distance, key = torch.load(f"{folder}/out.pt")
    sampler = DistributedSampler(range(8), 2, 0)
    orders = [list(sampler), list(sampler), sampler.set_epoch(1) or list(sampler)]
    return f"gradient off the large batch's by {distance:.0e}; first key {key}; orders without set_epoch and with: {orders}"


def initialisation():
    model = mlp()
    for p in model.parameters():
        nn.init.constant_(p, 0.01)
    fit(model, SGD(model.parameters(), lr=0.1), 2)
    dead = mlp()
    nn.init.constant_(dead[0].bias, -1e3)
    cross_entropy(dead(X), Y).backward()
    return f"rows equal after training {torch.equal(model[0].weight, model[0].weight[:1].expand(128, 64))}; dead ReLU: gradient {dead[0].weight.grad.norm()}"


def seeds():
    out = []
    for _ in range(2):
        torch.manual_seed(0)
        out.append((mlp()[0].weight.detach(), next(iter(DataLoader(TensorDataset(X), 8, shuffle=True)))[0], np.random.rand()))
    return f"same weights {torch.equal(out[0][0], out[1][0])}, batches {torch.equal(out[0][1], out[1][1])}, numpy {out[0][2] == out[1][2]}"


def sequences():
    rnn, x = nn.GRU(4, 8), torch.randn(3, 5, 4)
    changed = x.clone()
    changed[0] += 1.0
    leak = (rnn(changed)[0] - rnn(x)[0])[1].abs().max()
    rnn, x = nn.GRU(4, 8, batch_first=True), torch.randn(1, 5, 4)
    padded = torch.cat([x, torch.zeros(1, 7, 4)], dim=1)
    packed = nn.utils.rnn.pack_padded_sequence(padded, [5], batch_first=True)
    return (f"batch_first forgotten: sample 2 moves by {leak:.2f} with sample 1; last state moves by {(rnn(padded)[1] - rnn(x)[1]).abs().max():.2f} with padding, "
            f"{(rnn(packed)[1] - rnn(x)[1]).abs().max():.0e} packed; pad_packed_sequence of a tensor: {error(lambda: nn.utils.rnn.pad_packed_sequence(padded))}")


def printed_numbers():
    lab = nn.Sequential(nn.Linear(784, 256), nn.Linear(256, 256), nn.Linear(256, 10))
    house = nn.Sequential(nn.Linear(3, 16), nn.Linear(16, 8), nn.Linear(8, 1))
    sizes = torch.tensor([750.0, 1200, 1800, 2400])
    return (f"parameters {[sum(p.numel() for p in m.parameters()) for m in (lab, house)]}; first normalised size {((sizes - sizes.mean()) / sizes.std())[0]:.4f}; "
            f"first loss {(0.01 * sizes + 0.01 - torch.tensor([140.0, 221, 329, 437])).square().mean():.2f}")


class _Noise(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return np.random.rand()


def _seed_worker(worker):
    np.random.seed(42 + worker)


def worker_randomness():
    def epochs(**more):
        torch.manual_seed(0)
        loader = DataLoader(_Noise(), num_workers=2, **more)
        return [torch.cat(list(loader)) for _ in range(2)]
    (a, b), (c, d), (again, _) = epochs(), epochs(worker_init_fn=_seed_worker), epochs()
    return (f"workers equal {torch.equal(a[::2], a[1::2])}, epochs equal {torch.equal(a, b)}, follows manual_seed "
            f"{torch.equal(a, again)}; with the seeded init: epochs equal {torch.equal(c, d)}")


class _Batched(_Noise):
    def __getitems__(self, indices):
        return [float(len(indices))] * len(indices)


def batch_of_indices():
    return f"__getitems__ received {next(iter(DataLoader(_Batched(), batch_size=4)))[0]:.0f} indices at once"


def load_elsewhere():
    with tempfile.TemporaryDirectory() as folder:
        torch.save(nn.Linear(2, 2), f"{folder}/model.pt")
        whole = error(lambda: torch.load(f"{folder}/model.pt"))
        real, torch.serialization.location_tag = torch.serialization.location_tag, lambda storage: "cuda:0"
        torch.save({"w": torch.ones(2)}, f"{folder}/cuda.pt")
        torch.serialization.location_tag = real
        cuda = error(lambda: torch.load(f"{folder}/cuda.pt"))
    names = error(lambda: nn.Linear(2, 2).load_state_dict({"other": torch.ones(1)}, strict=False))
    shape = error(lambda: nn.Linear(2, 2).load_state_dict({"weight": torch.ones(1)}, strict=False))
    return f"whole model {whole}; CUDA file {cuda}; strict=False names: {names}; shapes: {shape}"


def resume_without_state():
    torch.manual_seed(0)
    model = mlp()
    optimizer, out = Adam(model.parameters(), lr=1e-3), []
    fit(model, optimizer, 60)
    for keep in (True, False):
        twin = copy.deepcopy(model).train()
        new = Adam(twin.parameters(), lr=1e-3)
        if keep:
            new.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        out.append([])
        for i in range(30):
            new.zero_grad()
            cross_entropy(twin(X[50 * i:50 * i + 50]), Y[50 * i:50 * i + 50]).backward()
            new.step()
            out[-1].append(cross_entropy(twin(X[:1500]), Y[:1500]).item())
    return f"largest training loss in 30 steps with the state {max(out[0]):.1e}, without {max(out[1]):.1e}"
