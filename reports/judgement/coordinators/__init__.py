"""Who coordinated a group, and when: load lines or answers in; epochs and contradictions, out."""
