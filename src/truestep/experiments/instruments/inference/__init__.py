"""Latency of a trained model, run in several ways that take turns.

script_model: the instrument, which finds the model of a script and its inputs
subject: the model or the exports to run, with their inputs
names: names of the ways
ways: eager, compiled, exported and quantised
measuring: outputs compared with eager, then blocks of timed calls in turns
"""
