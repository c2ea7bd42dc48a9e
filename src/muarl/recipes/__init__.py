"""The stages of a run, one script each; what several of them share is in subfolders."""
