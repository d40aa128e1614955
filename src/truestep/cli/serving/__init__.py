"""Commands for trained models.

- `export`: a checkpoint as a model to serve.
- `bench_inference`: the latency of a model, run in several ways.
- `given`: their common options.
"""
