"""Steps of a training.

- `gradients`: gradients on or off.
- `missing`: backward passes and steps that are missing, repeated or useless.
- `modes`: train and eval mode.
- `order`: order of clearing, backward passes, clips and steps.
- `refused`: steps that are taken or left out by the value of a loss.
- `repetitions`: loops that repeat a training.
- `scaled`: losses that are divided or scaled for their step.
- `schedules`: schedules of the learning rate.
- `targets`: results without gradients that a loss is made of.
"""
