"""Healthy: the PyTorch examples' sine-wave predictor: LSTMCells, LBFGS closure, evaluation by free-running prediction."""
import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim


class Sequence(nn.Module):
    def __init__(self, hidden=12):
        super().__init__()
        self.hidden = hidden
        self.lstm1 = nn.LSTMCell(1, hidden)
        self.lstm2 = nn.LSTMCell(hidden, hidden)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), self.hidden, dtype=input.dtype)
        c_t = torch.zeros(input.size(0), self.hidden, dtype=input.dtype)
        h_t2 = torch.zeros(input.size(0), self.hidden, dtype=input.dtype)
        c_t2 = torch.zeros(input.size(0), self.hidden, dtype=input.dtype)

        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for i in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


if __name__ == "__main__":
    np.random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    T, L, N = 8, 30, 40
    x = np.arange(L) + np.random.randint(-4 * T, 4 * T, N).reshape(N, 1)
    data = torch.from_numpy(np.sin(x / 1.0 / T).astype("float32"))
    input, target = data[5:, :-1], data[5:, 1:]
    test_input, test_target = data[:5, :-1], data[:5, 1:]

    seq = Sequence()
    criterion = nn.MSELoss()
    # LBFGS can load the whole set: it is small
    optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=6)
    for i in range(5):
        def closure():
            optimizer.zero_grad()
            out = seq(input)
            loss = criterion(out, target)
            loss.backward()
            return loss

        optimizer.step(closure)
        with torch.no_grad():
            pred = seq(test_input, future=10)
            loss = criterion(pred[:, :-10], test_target)
            print("STEP:", i, "test loss: %.5f" % loss.item())
