"""Optimizers of a run.

updates          `Updates`: the update of one optimizer, with its window, scaler, clipping and schedules
updates_index    `UpdatesIndex`: updates by optimizer, the optimizers of one loss, open windows
window           the window of gradient accumulation: divisors of losses, and the correction at its end
reached          detection of optimizers that a loss reaches and that never update
precision        fp32, bf16 and fp16: autocast and scalers
schedulers       learning rate schedules, stepped after each update, epoch or value
schedule_length  the length of a schedule compared with that of the run
cadence          planned and actual number of updates
averaging        EMA and SWA, updated after optimizer steps or epochs
"""
