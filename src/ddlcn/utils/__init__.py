"""What every room needs and no room owns: threads, progress, checks, sparse rows, statistics, whole files."""
