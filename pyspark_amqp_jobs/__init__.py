"""Jobs on queues, archives and stores: `burrowmq-spark JOB`, or the same file with spark-submit.

Owns no state. Importing this module loads neither pyarrow nor pyspark.

    __main__      the command line
    arguments     what several jobs can be told
    session       the Spark session, progress
    java          what is said where there is no Java
    archive       queues to Parquet
    dead_letters  the dead-letter report
    replay        Parquet back into queues
    audit         live and garbage bytes of a store
    traffic       who publishes and gets what, out of the firehose
    spools        what lies in a spool, and getting it out
    table, page   rows as text, and as a page with its charts

Invariant: talks to brokers by `format("amqp")` and reads stores by `format("amqp-store")`; nothing of the server.
"""
