"""`truestep prove`: compare the script with and without the remedy of a finding, over several seeds.

prove: the experiment: runs of both variants, the proof and its errors
costs: time and memory as compared numbers
"""
