"""Many runs: the tables of judged runs, appended to one place; measures of runs side by side.

`run_tables` writes the tables, partitioned by run; `measures` lets Spark compute with them. Any
tool that reads Parquet can query them, too.
"""
