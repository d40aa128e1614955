"""Reports of experiments: text of 80 columns, JSON, charts. They need the experiments, which need `truestep.report`.

prove, compare, repeat, overfit, tune, resume, inspect, profile, plan, inference: the report of each command
pages: the reports of prove, compare, overfit, tune, profile and bench-inference as HTML pages
curve: charts of losses in characters
picture: charts of losses as SVG
text: wrapped text, and tables
"""
