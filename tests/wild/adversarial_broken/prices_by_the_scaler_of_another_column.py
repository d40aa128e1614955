"""Prices of houses: predictions are put back on their scale by the scaler that was fitted to the areas."""

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.manual_seed(5)
rng = np.random.default_rng(5)
area = rng.gamma(6.0, 20.0, (900, 1))
rooms = rng.integers(1, 8, (900, 1)).astype(float)
price = 2500.0 * area + 9000.0 * rooms + rng.normal(0, 9000, (900, 1))
areas, others, prices = (StandardScaler().fit(column[:700]) for column in (area, rooms, price))
x = torch.tensor(np.hstack([areas.transform(area), others.transform(rooms)]), dtype=torch.float32)
y = torch.tensor(prices.transform(price), dtype=torch.float32)
model = nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(15):
    for rows in torch.randperm(700).split(70):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    guess = areas.inverse_transform(model(x[700:]).numpy())
    print(f"mean error {np.mean(np.abs(guess - price[700:])):,.0f}")  # error: metric-off-target
