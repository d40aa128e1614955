"""Variables of the program: the values that they hold, and the statements that make them.

arrays        tensors, arrays and lists of samples that variables hold
origins       the line that makes a variable
selected      use of these in the source of the program
selections    masks and indices of the rows of a training, a validation or a test
memory        tensors that share the memory of trained ones
trained       when variables with these are looked at
kept_names    variables that a branch for a new best figure assigns, by the source
kept_tensors  those with trained tensors, which change while the best figure stays
mixed_names   statements that write an average in place
own_averages  averages that are the trained tensors themselves
bellman       targets of the form reward plus discounted value, in the source
weighted_choices  weights of the log-probabilities of actions, by the tape
reward_sums   weights that are discounted sums of rewards, and their direction in time
reversals     loops that sum or run backwards, in the source
ended_rows    targets in reinforcement learning, at the rows that ended their episode
"""
