"""Trackers, which get copies of a run's log: TensorBoard, Weights & Biases, MLflow. One file each, each an extra.

`metrics.jsonl` is the original; when a run resumes, a tracker gets the history from it again.
`of_script` writes findings and curves to the trackers that a supervised script uses itself; `script_wandb` is the part
for Weights & Biases.
"""
