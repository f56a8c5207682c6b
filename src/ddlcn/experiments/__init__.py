"""The paper's evidence: protocol, grid of runs, result store, and its tables and figures as data (`paper/*.toml`)."""
