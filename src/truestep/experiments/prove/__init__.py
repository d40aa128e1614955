"""`truestep prove`: the script with and without the remedy of a finding, over several seeds."""
