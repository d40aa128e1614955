# seq2seq with teacher forcing, two steps ahead, several variables; the decoder gets the last value and the first target
import torch
from torch import nn
torch.manual_seed(0)
t = torch.arange(1500).float()
s = torch.stack([torch.sin(t / 6), torch.cos(t / 9), torch.sin(t / 4)], 1) + .3 * torch.randn(1500, 3)
w = s.unfold(0, 18, 1).transpose(1, 2)
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.e = nn.GRU(3, 32, batch_first=True); self.d = nn.GRU(3, 32, batch_first=True); self.o = nn.Linear(32, 3)
    def forward(self, x, dec):
        return self.o(self.d(dec, self.e(x)[1])[0])
net = Net(); opt = torch.optim.Adam(net.parameters(), 3e-3)
for ep in range(4):
    net.train()
    for i in torch.randperm(1200).split(60):
        b = w[i]
        loss = nn.functional.mse_loss(net(b[:, :15], b[:, 15:17]), b[:, 16:18])
        opt.zero_grad(); loss.backward(); opt.step()
    net.eval()
    with torch.no_grad():
        b = w[1250:]; one = net(b[:, :15], b[:, 15:16]); two = net(b[:, :15], torch.cat([b[:, 15:16], one], 1))
        print(ep, loss.item(), nn.functional.mse_loss(two, b[:, 16:18]).item())
