"""Custom operators: torch.library with a registered backward, autocast-aware Functions, setup_context, once_differentiable, under bfloat16 autocast."""
import torch
from torch import nn
from torch.amp import custom_bwd, custom_fwd
from torch.autograd.function import once_differentiable


@torch.library.custom_op("wild::squareplus", mutates_args=())
def squareplus(x: torch.Tensor, b: float) -> torch.Tensor:
    return 0.5 * (x + torch.sqrt(x * x + b))


@squareplus.register_fake
def _(x, b):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.b = inputs[1]


def _backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * 0.5 * (1 + x / torch.sqrt(x * x + ctx.b)), None


squareplus.register_autograd(_backward, setup_context=_setup)


class ScaledMatmul(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.t() / w.size(1) ** 0.5

    @staticmethod
    @custom_bwd(device_type="cpu")
    @once_differentiable
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        s = w.size(1) ** 0.5
        return g @ w / s, g.t() @ x / s


class Clamp(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, lo, hi):
        return x.clamp(lo, hi)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable()

    @staticmethod
    def backward(ctx, g):
        return g, None, None


class Layer(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.w = nn.Parameter(torch.randn(o, i))

    def forward(self, x):
        return Clamp.apply(torch.ops.wild.squareplus(ScaledMatmul.apply(x, self.w), 1.0), -8.0, 8.0)


torch.manual_seed(0)
net = nn.Sequential(Layer(6, 32), Layer(32, 32), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(120):
    x = torch.randn(64, 6)
    y = (x[:, :1] * x[:, 1:2]).abs()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = net(x)
    loss = nn.functional.mse_loss(out.float(), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 0:
        print(step, out.dtype, round(loss.item(), 4))
print("end", round(loss.item(), 4))
