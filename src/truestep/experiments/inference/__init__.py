"""`truestep bench-inference`: which way to run a trained model is fastest, at equal outputs?

measured: latencies of each way, and their verdicts
of_script: the model of an unmodified script
of_artefact: a checkpoint, or exports
"""
