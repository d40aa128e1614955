"""`Run` and its parts. Each part knows only those below it; `Run` builds them in this order, from the bottom up.

    run                      Run: its construction and its end
    setup_methods            its methods before the loops: model, optimizer, scheduler, loader, ...
    training_methods         its methods in the loops: epochs, train, step, backward, ...
    observation_methods      its methods for evaluation, logging and debugging

    loops                    Loops: the generators of epochs, batches and steps
    checkpointer             Checkpointer: saves, restores and stops between two steps
    stepper                  Stepper: the step, its windows and optimizers
    logging                  RunLog: log, alerts, speed and progress line
    progress                 Progress: global step, epoch and position, shared by all parts above
    models, evaluation, inspecting      models and averages; evaluation and prediction; inspection and profiles

    position, passes         Position: the passes of the loops, and the way back to them after a resume
    habits, asking           record of passes between epochs; `for` or `next()`
    starts                   states at the beginning of an epoch's body
    run_state                RunState: contents of checkpoints, order of restoring
    registry, given_loaders  the parts of a run by name; DataLoaders
    modes                    train and eval mode

A step: `training_methods`, `stepper`, `optim/updates`, `optim/window`, `progress`.
"""
