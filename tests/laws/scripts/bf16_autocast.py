import torch
from _state import tell
from torch import nn

torch.manual_seed(5)
model = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), num_layers=2, enable_nested_tensor=False
)
head = nn.Linear(16, 4)
optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], 1e-3)
for step in range(15):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = head(model(torch.randn(4, 6, 16)).mean(1))
        loss = nn.functional.cross_entropy(out, torch.randint(0, 4, (4,)))
    loss.backward()
    optimizer.step()
    print(step, out.dtype, repr(loss.item()))
tell(model, head, optimizer)
