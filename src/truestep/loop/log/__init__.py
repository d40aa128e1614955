"""Logging of a run.

logs            `metrics.jsonl`: buffered values, read without a synchronisation per step
line_file       the file of lines that logs and alerts append to
log_copies      copies of the log: trackers and `system.jsonl`
alerts          alerts on logged values, printed and written to `alerts.jsonl`
alert_rules     the rules that raise alerts
early_stopping  `run.stalled()`: patience without improvement
mean            `Mean`, a weighted mean over samples
metric          metrics of torchmetrics with their whole state
banner          the line on models and data at the first batch
progress_line   progress: a status line on a terminal, single lines elsewhere
throughput      speed, memory and model FLOPs utilisation
flops           floating-point operations of a model, and peak speeds of devices
"""
