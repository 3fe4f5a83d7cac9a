"""What is measured: who finds more (`leaderboard`), and how fast the worlds are."""
