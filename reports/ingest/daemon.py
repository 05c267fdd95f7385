"""The daemon of Spark's Python workers on this machine: each worker is a fork of it.

PySpark's own daemon lets every worker import its code after the fork. This one imports what starts
no thread beforehand, once. (`pyarrow` starts threads, which a fork does not have.)
"""

from importlib import import_module

from pyspark import daemon

BEFOREHAND = ("pyspark.worker", "reports.judgement.broker_log", "reports.judgement.group")

if __name__ == "__main__":
    for name in BEFOREHAND:
        import_module(name)
    daemon.manager()
