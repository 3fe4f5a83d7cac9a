"""The experiments of the papers, run anew: their tables and figures beside ours.

One module for each paper: what it runs, what it claimed, and a report that says which
of the claims hold here. Nothing is tuned to make one hold.
"""
