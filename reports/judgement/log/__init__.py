"""A broker's log: lines of a split in; rows of requests and coordinator lines, and gaps, out."""
