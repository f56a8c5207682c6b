"""Pages about a model of one's own: one HTML file each, which needs no network and runs no script."""
