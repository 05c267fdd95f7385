"""A run folder: experiment, journal, history, samples of the machine in; what they say, out."""
