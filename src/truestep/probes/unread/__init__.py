"""Results that a training step makes and nothing reads.

statements: variables and expressions in the source of a function
rebound: variables of loops that get a new value
attributes: attributes with a next value that a local variable gets
effects: is the value of an expression its only effect?
masks: masks that are passed to a function, which never reads them
values: their values in the frames of the training
returned_states: models that return the next one of a state that they take, by their source
state_loops: loops over a sequence that drop the state of a model, by their source
states: these states, in the calls of the model
rates: learning rates that only a log reads
"""
