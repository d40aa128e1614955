"""Runs on disk: folders of `truestep.Run` and records of ``truestep run --record``. Needs no torch.

folders: find the runs below a folder
described: one run: state, settings, results
compared: two runs: settings and results that differ
"""
