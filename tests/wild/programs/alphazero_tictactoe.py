"""Healthy: AlphaZero on tic-tac-toe: self-play and tree search in eval mode without gradients, then epochs over the examples in train mode."""
import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def result(board):
    for line in LINES:
        total = sum(board[i] for i in line)
        if abs(total) == 3:
            return total // 3
    return None if 0 in board else 1e-4


class TicTacToeNNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.bn1 = nn.Linear(9, 48), nn.BatchNorm1d(48)
        self.fc2 = nn.Linear(48, 48)
        self.fc_pi, self.fc_v = nn.Linear(48, 9), nn.Linear(48, 1)

    def forward(self, s):
        s = torch.relu(self.bn1(self.fc1(s)))
        s = torch.dropout(torch.relu(self.fc2(s)), 0.1, self.training)
        return torch.log_softmax(self.fc_pi(s), dim=1), torch.tanh(self.fc_v(s))


class NNetWrapper:
    def __init__(self):
        self.nnet = TicTacToeNNet()

    def train(self, examples, epochs=3, batch_size=32):
        optimizer = optim.Adam(self.nnet.parameters(), lr=5e-3)
        for epoch in range(epochs):
            self.nnet.train()
            for _ in range(max(1, len(examples) // batch_size)):
                ids = np.random.randint(len(examples), size=batch_size)
                boards, pis, vs = list(zip(*[examples[i] for i in ids]))
                boards = torch.FloatTensor(np.array(boards).astype(np.float64))
                target_pis, target_vs = torch.FloatTensor(np.array(pis)), torch.FloatTensor(np.array(vs).astype(np.float64))
                out_pi, out_v = self.nnet(boards)
                l_pi = -torch.sum(target_pis * out_pi) / target_pis.size()[0]
                l_v = torch.sum((target_vs - out_v.view(-1)) ** 2) / target_vs.size()[0]
                total_loss = l_pi + l_v
                optimizer.zero_grad()
                total_loss.backward()
                optimizer.step()
        return l_pi.item(), l_v.item()

    def predict(self, board):
        self.nnet.eval()
        with torch.no_grad():
            pi, v = self.nnet(torch.FloatTensor([board]))
        return torch.exp(pi).data.cpu().numpy()[0], v.data.cpu().numpy()[0, 0]


class MCTS:
    def __init__(self, net, sims=10):
        self.net, self.sims, self.Q, self.N, self.P = net, sims, {}, {}, {}

    def probabilities(self, board):
        for _ in range(self.sims):
            self.search(board)
        counts = np.array([self.N.get((board, a), 0) for a in range(9)], dtype=float)
        return counts / counts.sum()

    def search(self, board):
        over = result(board)
        if over is not None:
            return -over
        if board not in self.P:
            p, v = self.net.predict(list(board))
            p = p * np.array([c == 0 for c in board])
            self.P[board] = p / (p.sum() + 1e-8)
            return -v
        total = math.sqrt(sum(self.N.get((board, a), 0) for a in range(9)) + 1e-8)
        best = max((a for a in range(9) if board[a] == 0), key=lambda a: self.Q.get((board, a), 0) + self.P[board][a] * total / (1 + self.N.get((board, a), 0)))
        following = tuple(-(1 if i == best else c) for i, c in enumerate(board))
        v = self.search(following)
        n = self.N.get((board, best), 0)
        self.Q[board, best] = (n * self.Q.get((board, best), 0) + v) / (n + 1)
        self.N[board, best] = n + 1
        return -v


random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)
net, history = NNetWrapper(), []
for iteration in range(3):
    for game in range(8):
        board, examples, mcts = (0,) * 9, [], MCTS(net)
        while result(board) is None:
            pi = mcts.probabilities(board)
            examples.append((board, pi, len(examples) % 2))
            action = np.random.choice(9, p=pi)
            board = tuple(-(1 if i == action else c) for i, c in enumerate(board))
        outcome, last = result(board), len(examples) % 2
        history += [(b, p, outcome if player == last else -outcome) for b, p, player in examples]
    random.shuffle(history)
    print("iteration", iteration, "examples", len(history), "losses %.3f %.3f" % net.train(history))
