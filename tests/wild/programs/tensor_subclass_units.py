"""A tensor subclass that keeps a unit with its values, used for parameters and data alike."""
import torch


class Quantity(torch.Tensor):
    """A tensor with a unit. Functions strip it, except for a few that know what to do."""

    @staticmethod
    def __new__(cls, data, unit=""):
        return torch.as_tensor(data, dtype=torch.float32).as_subclass(cls)

    def __init__(self, data, unit=""):
        self.unit = unit

    calls = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Quantity.calls += 1
        units = [a.unit for a in args if isinstance(a, Quantity) and getattr(a, "unit", "")]
        if func in (torch.Tensor.add, torch.Tensor.sub, torch.add, torch.sub) and len(set(units)) > 1:
            raise TypeError(f"units {units} do not add")
        out = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(out, Quantity) and not hasattr(out, "unit"):
            out.unit = "*".join(units)
        return out


torch.manual_seed(1)
t = Quantity(torch.linspace(0, 3, 60), "s")
height = Quantity(40 + 3 * torch.linspace(0, 3, 60) - 4.9 * torch.linspace(0, 3, 60) ** 2, "m")
h0 = torch.nn.Parameter(Quantity(10.0, "m"))
v0 = torch.nn.Parameter(Quantity(0.0, "m/s"))
g = torch.nn.Parameter(Quantity(1.0, "m/s2"))
opt = torch.optim.Adam([h0, v0, g], lr=0.3)
for i in range(400):
    opt.zero_grad()
    model = h0.as_subclass(torch.Tensor) + v0.as_subclass(torch.Tensor) * t.as_subclass(torch.Tensor)
    model = model - 0.5 * g.as_subclass(torch.Tensor) * t.as_subclass(torch.Tensor) ** 2
    loss = (model - height.as_subclass(torch.Tensor)).square().mean()
    loss.backward()
    opt.step()
    if i % 100 == 0:
        print(i, f"{float(loss):.3f}")
print(f"h0 {float(h0.data):.2f} v0 {float(v0.data):.2f} g {float(g.data):.2f}")
print("calls through the subclass:", Quantity.calls)
