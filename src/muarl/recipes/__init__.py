"""The stages of a run, one script each; what they share is in subfolders and in the rooms below."""
