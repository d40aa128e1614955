"""`truestep tune`: time speed-ups against the unchanged script, and judge the ratios of the times.

tune: the experiment: choose, try and combine speed-ups within a budget of time
tuned: its results
trial_order: the order in which speed-ups are tried
turns: time two variants that take turns
"""
