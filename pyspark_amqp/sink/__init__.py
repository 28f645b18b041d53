"""Writing rows to queues and exchanges with Spark.

Owns no state. Called by the data source (datasource.py).

    identity  message ids that are the same when a task runs again
    pace      so many messages a second
    task      one task's rows, published and confirmed
    writers   Spark's writers: batch and stream
"""
