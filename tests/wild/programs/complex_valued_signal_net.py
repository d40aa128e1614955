"""A complex-valued network that undoes the channel of a radio link: complex weights, complex activations, FFT."""

import torch
import torch.nn as nn


class ModReLU(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.full((features,), -0.01))

    def forward(self, z):
        size = z.abs() + 1e-6
        return torch.relu(size + self.bias) / size * z


class ComplexLinear(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(fan_out, fan_in, dtype=torch.cfloat) / fan_in**0.5)

    def forward(self, z):
        return z @ self.weight.mT


class Equaliser(nn.Module):
    def __init__(self, n=32, hidden=64):
        super().__init__()
        self.first, self.act, self.second = ComplexLinear(n, hidden), ModReLU(hidden), ComplexLinear(hidden, n)
        self.gain = nn.Parameter(torch.ones(n, dtype=torch.cfloat))

    def forward(self, received):
        spectrum = torch.fft.fft(received, norm="ortho")
        return torch.fft.ifft(self.gain * spectrum + self.second(self.act(self.first(spectrum))), norm="ortho")


def symbols(batch, n=32):
    bits = torch.randint(0, 2, (batch, n, 2)).float() * 2 - 1
    return torch.view_as_complex(bits) / 2**0.5


if __name__ == "__main__":
    torch.manual_seed(0)
    channel = torch.zeros(32, dtype=torch.cfloat)
    channel[:4] = torch.tensor([1.0 + 0.2j, 0.4 - 0.3j, -0.2 + 0.1j, 0.05j])

    def transmit(sent):
        through = torch.fft.ifft(torch.fft.fft(sent) * torch.fft.fft(channel))
        return through + 0.05 * torch.randn_like(through)

    net = Equaliser()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for it in range(150):
        sent = symbols(64)
        error = net(transmit(sent)) - sent
        loss = (error.abs() ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 50 == 0:
            with torch.no_grad():
                test = symbols(256)
                wrong = (torch.view_as_real(net(transmit(test))).sign() != torch.view_as_real(test).sign()).float().mean()
            print(f"iteration {it} loss {loss.item():.3f} bit errors {wrong:.3f}")
