"""Quantisation for an export: int8 linear layers, their accuracy, speed and size before and after.

wanted      `Int8`: the wishes of the user; a quantised model that is as accurate as wanted
quantising  int8 linear layers by torchao, and graphs of them without torchao
scores      accuracy, mean squared error or the user's metric, before and after
speed       latency of two exports that take turns
table       both as one table
"""
