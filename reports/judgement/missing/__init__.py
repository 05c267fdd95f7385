"""What the evidence lacks: holes in logs and numbers, and what was in no log as a broker ended."""
