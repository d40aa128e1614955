"""Matrix factorisation in a dict of tensors: the optimizer is made of the factors, the biases stay at zero."""
import torch


def train(users, items, ratings, epochs=12):
    params = {
        "user": torch.randn(60, 8) * 0.1, "item": torch.randn(40, 8) * 0.1,
        "user_bias": torch.zeros(60), "item_bias": torch.zeros(40),
    }  # fmt: skip
    params = {name: value.requires_grad_() for name, value in params.items()}
    factors = [params["user"], params["item"]]
    optimizer = torch.optim.Adam(factors, lr=0.02, weight_decay=1e-4)  # error: parameters-not-optimized
    mean = ratings.mean()
    for _ in range(epochs):
        for rows in torch.randperm(len(ratings)).split(64):
            user, item = users[rows], items[rows]
            predicted = mean + (params["user"][user] * params["item"][item]).sum(1)
            predicted = predicted + params["user_bias"][user] + params["item_bias"][item]
            loss = ((predicted - ratings[rows]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return params, loss.item()


torch.manual_seed(0)
users, items = torch.randint(0, 60, (1500,)), torch.randint(0, 40, (1500,))
taste = torch.randn(60)[users] + torch.randn(40)[items]
_, last = train(users, items, 3 + taste + 0.3 * torch.randn(1500))
print(last)
