"""What learners are worth elsewhere: trained on some tasks, tested on others.

``python -m benchmarks.generalisation`` trains every method anew for each study, lets
all methods crawl tasks that none has trained on, and reports what won, tied and lost.
"""
