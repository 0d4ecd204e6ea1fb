"""Inner loops of the timing model; arrays and numbers only."""
