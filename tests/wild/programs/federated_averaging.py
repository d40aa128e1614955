"""Healthy: federated averaging: local optimizers on copies per client, a server optimizer stepping on pseudo-gradients."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Client:
    def __init__(self, cid, n, rule):
        g = torch.Generator().manual_seed(100 + cid)
        x = torch.randn(n, 6, generator=g) + 0.5 * torch.randn(1, 6, generator=g)  # not i.i.d. across clients
        y = (x @ rule).argmax(1)
        self.loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
        self.n = n

    def local_update(self, global_model, epochs=1, lr=0.1):
        model = copy.deepcopy(global_model)
        model.train()
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        for _ in range(epochs):
            for x, y in self.loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
        return model.state_dict()


def main(rounds=10, clients_per_round=4):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rule = torch.randn(6, 3)
    clients = [Client(i, n, rule) for i, n in enumerate([60, 80, 100, 40, 120, 80])]
    x_test = torch.randn(600, 6)
    y_test = (x_test @ rule).argmax(1)

    server = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
    server_opt = torch.optim.SGD(server.parameters(), lr=1.0, momentum=0.5)
    for rnd in range(rounds):
        chosen = torch.randperm(len(clients))[:clients_per_round].tolist()
        updates = [(clients[c].n, clients[c].local_update(server)) for c in chosen]
        total = sum(n for n, _ in updates)

        server_opt.zero_grad()
        for name, p in server.named_parameters():
            average = sum(n / total * state[name] for n, state in updates)
            p.grad = p.detach() - average  # the server's pseudo-gradient
        server_opt.step()

        server.eval()
        with torch.no_grad():
            acc = (server(x_test).argmax(1) == y_test).float().mean().item()
        print(f"round {rnd} clients {sorted(chosen)} test acc {acc:.4f}")


main()
