"""Logs of a run: metrics, alerts, early stopping, throughput, progress."""
