"""What the evidence lacks: holes in logs and numbers, and silences that a cut log would leave."""
