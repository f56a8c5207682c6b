"""`python -m ddlcn`."""

from ddlcn.cli import main

main()
