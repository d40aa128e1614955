"""`Run` and its parts. Each part knows only those below it; `Run` builds them in this order, from the bottom up.

    run                      Run: its construction and its end
    setup_methods            its methods before the loops: model, optimizer, scheduler, loader, ...
    training_methods         its methods in the loops: epochs, train, step, backward, ...
    observation_methods      its methods for evaluation, logging and debugging
    rank_methods             its methods about processes: rank, gather, barrier

    loops                    Loops: the generators of epochs, batches and steps
    checkpointer             Checkpointer: saves, restores and stops between two steps
    stepper, step_alerts     Stepper: the step, its windows and optimizers; losses and norms for the alerts
    logging                  RunLog: log, alerts, speed and progress line
    models, evaluation, inspecting      models and averages; evaluation and prediction; inspection and profiles

    run_state                RunState: contents of checkpoints, order of restoring
    registry                 Parts: the parts of a run by name; State: the values of the user

Below them are the other rooms of `loop/`, above all `position/` (step, epoch and pass) and `optim/` (one optimizer).
A step: `training_methods`, `stepper`, `optim/updates`, `optim/window`, `position/progress`.
"""
