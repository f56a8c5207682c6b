"""The web page: a model, looked at in a browser, on one's own machine and without a network."""
