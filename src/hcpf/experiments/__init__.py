"""The paper's figure and tables, each computed anew by one command."""
