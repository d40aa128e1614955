"""Charts and shaded tables of a run.

- `curves`: values read during the run, as lines of a chart.
- `asked_schedules`: learning rates as they were asked for, beside those of the run.
- `time_and_memory`: time per step and memory over the run.
- `alerts`: losses at chance, evaluations that got worse after their best one, and spikes of gradients.
- `heat`: gradients and updates of the layers over the run, as tables of shaded cells.
"""
