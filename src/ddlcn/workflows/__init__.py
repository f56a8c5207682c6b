"""One file per verb of the tool: train, update, predict, evaluate, compare, demo."""
