import torch
from _state import tell
from torch import nn
from torch.nn.modules import module as modules
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

torch.manual_seed(17)
seen = []
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
model.register_forward_pre_hook(lambda m, a: seen.append("pre") or (a[0] * 2,))
model.register_forward_hook(lambda m, a, k, o: seen.append("post") or o + 1, with_kwargs=True)
model[0].register_full_backward_hook(lambda m, i, o: seen.append("backward"))
model[2].register_full_backward_pre_hook(lambda m, o: seen.append("backward pre"))
model.register_state_dict_post_hook(lambda *_: seen.append("state"))
modules.register_module_forward_hook(lambda m, a, o: seen.append(f"global {type(m).__name__}"))
modules.register_module_parameter_registration_hook(lambda m, n, p: seen.append(f"registered {n}"))
register_optimizer_step_pre_hook(lambda o, a, k: seen.append("before step"))
register_optimizer_step_post_hook(lambda o, a, k: seen.append("after step"))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
optimizer.register_step_pre_hook(lambda o, a, k: seen.append("own before"))
each = {p: torch.optim.Adam([p], 1e-3) for p in nn.Linear(2, 2).parameters()}


def fused(p):
    each[p].step()
    each[p].zero_grad()
    seen.append("fused")


head = list(each)
for p in head:
    p.register_post_accumulate_grad_hook(fused)
    p.register_hook(lambda grad: grad * 0.5)
for step in range(8):
    optimizer.zero_grad()
    out = nn.functional.linear(model(torch.randn(8, 4)), *head)
    loss = nn.functional.cross_entropy(out, torch.randint(0, 2, (8,)))
    loss.backward()
    optimizer.step()
    print(step, repr(loss.item()), len(seen), seen[-30:])
    seen.clear()
extra = nn.Bilinear(2, 2, 1)
print(seen, torch.equal(model.forward(torch.ones(1, 4)), model.forward(torch.ones(1, 4))))
tell(model, optimizer)
