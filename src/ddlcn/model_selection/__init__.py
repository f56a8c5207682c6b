"""Splits, metrics and tuning: what is held out, what is counted, what is chosen."""
