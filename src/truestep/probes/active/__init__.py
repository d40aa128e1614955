"""Active checks: call the program's own code again, on small copies; `--passive` turns them off.

probe            `ActiveProbe`: runs the checks after calls of models
battery          the checks of a copy of a model, and the batch that shows its samples
grounds          conditions under which a check is possible, and the number of attempts
restored_states  random states that are restored after a check
trial            runs of a copied model
influence        checks: samples and masks without influence, draws of random numbers in eval mode
arguments        check: an argument has no influence, and the place where its influence ends
branches         the names that a method reads, without branches that an option turns off
sequences/       checks of sequence models
derivatives      check: the backward pass of a custom function is not the derivative
samples          check: the result for a sample depends on other samples of its batch
over_samples     the operation that runs over the samples
repeats          samples that are repeated in another order than the rows beside them
result_gradients columns and samples of a result without a gradient
pushes           directions in which a loss moves scores of one number for each sample
unsaved          check: state in plain attributes that a state dict leaves out
noise/           noise that a model is to predict, and its share in an input
data_sets/, rows/  checks of data sets; rows of batches looked up in the tables of the program
fitted/          the statistics that inputs were scaled with, by the rows of a table as measured
series/          the scale of series that windows were cut from
"""
