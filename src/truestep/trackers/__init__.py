"""Where else a run's log goes: TensorBoard, Weights & Biases, MLflow. One file per tracker, each an extra.

`metrics.jsonl` is the record; a tracker is a copy of it, made from it again where a run resumes.
"""
