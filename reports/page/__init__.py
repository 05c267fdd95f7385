"""The page: a verdict and the rows it rests on in; `report.html` and `junit.xml` out.

It knows `reports.judgement` and `scenarios`, and neither Spark nor how tables are stored; the rows
of tables that it shows are frames of pandas.
"""
