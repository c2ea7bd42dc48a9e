"""What a run has shown: its report, and the last screen of the terminal."""
