"""The audit: rule-based evaluation of every episode in five layers; findings point at turns."""
