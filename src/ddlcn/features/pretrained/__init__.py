"""Pretrained networks: an image in, the responses of a convolutional layer out, position by position.

Nothing here is imported before a network is asked for: `pip install 'ddlcn[cnn]'` brings what it needs.
"""
