"""Experiments: run the user's unmodified script again in child processes, change one thing, and compare.

running: child processes, their outcomes and the cache of outcomes
changes: the changes that a run can get: remedies, speed-ups, and changes that the experiments need
instruments: the measurements in a child process
figures: numbers of two variants over seeds, and the verdict on them
prove: does the remedy of a finding change the results?
compare: which of two choices is better?
overfit: can the loop learn a single batch?
tune: which speed-ups help?
repeat: is a script reproducible?
resume: does a resumed run equal the uninterrupted one?
inspect: layers, gradients and losses of one step
profile: where do time and memory go?
plan: does it fit into memory, and on how many devices?
inference: which way to run a trained model is fastest?
reports: results as text, JSON and charts
"""
